import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'
import type { PostgresBinaries } from './embedded-postgres-binaries.ts'
import { databaseStartError, directoryError, errnoOf } from './embedded-postgres-errors.ts'
import { type ServerUser, spawnIdentity } from './embedded-postgres-user.ts'

export const SUPERUSER = 'keymesh'

const recordSchema = z.object({ password: z.string().min(1), initialised: z.boolean() })
type ClusterRecord = z.infer<typeof recordSchema>

export interface Cluster {
  readonly dataDirectory: string
  /** Of the superuser `keymesh`. */
  readonly password: string
}

/**
 * The cluster in `home/data`, made when there is none. initdb works under another name that is renamed at the end, so a
 * crash leaves either no cluster or a whole one. The caller holds the lock of `home`.
 */
export async function openCluster(
  home: string,
  binaries: PostgresBinaries,
  user: ServerUser,
  unsafeFast: boolean,
): Promise<Cluster> {
  const dataDirectory = join(home, 'data')
  const record = await readRecord(home)
  const version = await clusterVersion(dataDirectory)
  if (version === null) {
    if (record?.initialised === true) throw missingCluster(dataDirectory, home)
    const password = record?.password ?? randomBytes(32).toString('base64url')
    await writeRecord(home, { password, initialised: false })
    await initialise(home, dataDirectory, password, binaries, user, unsafeFast)
    await writeRecord(home, { password, initialised: true })
    return { dataDirectory, password }
  }
  if (version !== binaries.majorVersion) throw otherVersion(dataDirectory, version, binaries.majorVersion)
  if (record === null) throw missingRecord(home)
  if (!record.initialised) await writeRecord(home, { ...record, initialised: true })
  return { dataDirectory, password: record.password }
}

async function initialise(
  home: string,
  dataDirectory: string,
  password: string,
  binaries: PostgresBinaries,
  user: ServerUser,
  unsafeFast: boolean,
): Promise<void> {
  await removeDrafts(home)
  const draft = join(home, `initdb-draft.${randomBytes(4).toString('hex')}`)
  const passwordFile = `${draft}.password`
  try {
    await mkdir(draft, { mode: 0o700 })
    await writeFile(passwordFile, password, { mode: 0o600 })
    if (user !== null) {
      await chown(draft, user.uid, user.gid)
      await chown(passwordFile, user.uid, user.gid)
    }
    await runInitdb(draft, passwordFile, binaries, user, unsafeFast)
    await rename(draft, dataDirectory)
    if (!unsafeFast) await syncDirectory(home)
  } catch (error) {
    throw directoryError('create its cluster in', home, error)
  } finally {
    await rm(passwordFile, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

/** No locale of the machine is used, so none needs to be installed. */
async function runInitdb(
  directory: string,
  passwordFile: string,
  binaries: PostgresBinaries,
  user: ServerUser,
  unsafeFast: boolean,
): Promise<void> {
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--locale=C', '--builtin-locale=C.UTF-8']
  const access = ['--auth=scram-sha-256', `--username=${SUPERUSER}`, `--pwfile=${passwordFile}`]
  try {
    await promisify(execFile)(
      join(binaries.directory, 'bin', 'initdb'),
      [`--pgdata=${directory}`, ...locale, ...access, '--no-instructions', ...(unsafeFast ? ['--no-sync'] : [])],
      { ...spawnIdentity(user), cwd: process.platform === 'win32' ? undefined : '/', env: { LC_ALL: 'C' } },
    )
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    throw databaseStartError(`create its cluster in ${directory}`, said === '' ? String(error) : said, error)
  }
}

async function removeDrafts(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (name.startsWith('initdb-draft.')) await rm(join(home, name), { recursive: true, force: true })
  }
}

async function clusterVersion(dataDirectory: string): Promise<string | null> {
  try {
    return (await readFile(join(dataDirectory, 'PG_VERSION'), 'utf8')).trim()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw directoryError('read the database in', dataDirectory, error)
  }
}

async function readRecord(home: string): Promise<ClusterRecord | null> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(recordPath(home), 'utf8')))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    if (error instanceof SyntaxError || error instanceof z.ZodError) throw missingRecord(home)
    throw directoryError('read', recordPath(home), error)
  }
}

async function writeRecord(home: string, record: ClusterRecord): Promise<void> {
  try {
    await writeFileAtomically(recordPath(home), JSON.stringify(record))
  } catch (error) {
    throw directoryError('write', recordPath(home), error)
  }
}

/** Readable by its owner only; after a crash the file is the old one or the new one. */
export async function writeFileAtomically(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    await chmod(draft, 0o600)
    await rename(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
}

async function syncDirectory(path: string): Promise<void> {
  // Windows has no such call.
  if (process.platform === 'win32') return
  const handle = await open(path)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const recordPath = (home: string): string => join(home, 'cluster.json')

function otherVersion(dataDirectory: string, found: string, ours: string): KeymeshError {
  return new KeymeshError({
    code: 'DATABASE_VERSION',
    fate: 'stop',
    message: `The database in ${dataDirectory} was made by PostgreSQL ${found}; this program brings PostgreSQL ${ours}.`,
    hint: 'Nothing was changed. Run `keymesh backup` of the Keymesh that made it, then `keymesh restore` of this one into a new KEYMESH_DATA_DIR with the same keys.json.',
  })
}

function missingCluster(dataDirectory: string, home: string): KeymeshError {
  return new KeymeshError({
    code: 'DATABASE_MISSING',
    fate: 'stop',
    message: `The database that was in ${dataDirectory} is gone.`,
    hint: `Restore it from a backup, or delete ${home} to begin with an empty database.`,
  })
}

function missingRecord(home: string): KeymeshError {
  return new KeymeshError({
    code: 'DATABASE_RECORD_MISSING',
    fate: 'stop',
    message: `${recordPath(home)}, which holds the password of the embedded database, is missing or cut short.`,
    hint: 'Nothing was changed. Restore that file from a backup of the data directory.',
  })
}
