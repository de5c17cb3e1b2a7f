import { createHash, randomUUID } from 'node:crypto'
import { chmod, link, mkdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { KeymeshError } from '../domain/errors.ts'
import { directoryError, errnoOf } from './embedded-postgres-errors.ts'
import { canReach, serverUserFor } from './embedded-postgres-user.ts'

/** Where root keeps what an unprivileged user must reach. */
export const ROOT_STATE_DIRECTORY = '/var/lib/keymesh'

const POINTER = 'postgres-location'

export interface ClusterHome {
  /** Holds the cluster (`data`), its lock and the connection details. */
  readonly directory: string
  /** True when the data directory is closed to the user that PostgreSQL runs as. */
  readonly outside: boolean
}

/** Creates the data directory when it is missing; returns its real path. */
export async function openDataDirectory(dataDirectory: string): Promise<string> {
  try {
    await makeDirectory(dataDirectory)
    return await realpath(dataDirectory)
  } catch (error) {
    throw directoryError('use the data directory', dataDirectory, error)
  }
}

/**
 * Where the cluster of a data directory lives: in its `postgres` directory, or, when PostgreSQL cannot run as root and its
 * user cannot reach that, under `/var/lib/keymesh`. The answer is kept, so that a change of permissions never leads to a
 * second, empty database.
 */
export async function clusterHome(dataDirectory: string): Promise<ClusterHome> {
  const inside = join(dataDirectory, 'postgres')
  if (await isDirectory(inside)) return { directory: inside, outside: false }
  const known = await pointedHome(dataDirectory)
  if (known !== null) return { directory: known, outside: true }
  const user = await serverUserFor(inside)
  if (await canReach(user, [dataDirectory])) {
    await makeDirectory(inside)
    return { directory: inside, outside: false }
  }
  return { directory: await makeOutsideHome(dataDirectory), outside: true }
}

/** Makes what is missing of the path, open for passing through when root makes it for another user, else closed. */
export async function makeDirectory(path: string, rootMode = 0o711): Promise<void> {
  const mode = process.getuid?.() === 0 ? rootMode : 0o700
  const first = await mkdir(path, { recursive: true, mode })
  // The umask of root may have closed it again.
  if (first !== undefined) await chmod(path, mode)
}

async function makeOutsideHome(dataDirectory: string): Promise<string> {
  const hash = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 16)
  await makeDirectory(ROOT_STATE_DIRECTORY, 0o755)
  let home = join(ROOT_STATE_DIRECTORY, hash)
  // What an earlier data directory of this name left there is not this one's database; its keys are gone too.
  if (await isDirectory(join(home, 'data'))) home = join(ROOT_STATE_DIRECTORY, `${hash}-${randomUUID().slice(0, 8)}`)
  await makeDirectory(home)
  const draft = join(dataDirectory, `${POINTER}.${randomUUID()}`)
  try {
    await writeFile(draft, `${home}\n`, { mode: 0o600, flag: 'wx', flush: true })
    await link(draft, join(dataDirectory, POINTER))
    return home
  } catch (error) {
    // Another process chose first.
    const chosen = errnoOf(error) === 'EEXIST' ? await pointedHome(dataDirectory) : null
    if (chosen !== null) return chosen
    throw directoryError('write to', dataDirectory, error)
  } finally {
    await rm(draft, { force: true })
  }
}

async function pointedHome(dataDirectory: string): Promise<string | null> {
  const pointer = join(dataDirectory, POINTER)
  let home: string
  try {
    home = (await readFile(pointer, 'utf8')).trim()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw directoryError('read', pointer, error)
  }
  if (home.startsWith('/') && (await isDirectory(home))) return home
  throw new KeymeshError({
    code: 'DATABASE_MISSING',
    fate: 'stop',
    message: `The database of ${dataDirectory} is recorded to be in ${home === '' ? 'no directory' : home}, where nothing is.`,
    hint: `Restore that directory from a backup, or delete ${pointer} to begin with an empty database.`,
  })
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw directoryError('use', path, error)
  }
}
