import { stat, statfs } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Config } from '../config.ts'
import type { Problem } from '../domain/errors.ts'
import { type Finding, failed, ok, problem, warning } from './finding.ts'

export function checkSettings(problems: readonly Problem[]): readonly Finding[] {
  if (problems.length === 0) return [ok('settings', 'All that is set can be used.')]
  return problems.map(({ path = '', message }) =>
    problem(
      'settings',
      `${path} ${message}`,
      `Correct ${path} in the environment; docs/configuration.md has them all.`,
    ),
  )
}

/** As `engines` of the package says. */
const OLDEST_NODE = [20, 19, 0] as const

export function checkNode(version: string): Finding {
  const parts = version.replace(/^v/, '').split('.').map(Number)
  const isOld = compare(parts, OLDEST_NODE) < 0
  const oldest = OLDEST_NODE.join('.')
  return isOld
    ? problem('node', `Node.js ${version} is older than ${oldest}.`, `Install Node.js ${oldest} or newer.`)
    : ok('node', `Node.js ${version}`)
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [index, part] of other.entries()) {
    const difference = (one[index] ?? 0) - part
    if (difference !== 0) return difference
  }
  return 0
}

const MIBIBYTE = 1024 * 1024
const LITTLE_ROOM_BYTES = 2048 * MIBIBYTE
const NO_ROOM_BYTES = 256 * MIBIBYTE

/** Of the embedded database: a full disk ends it. */
export async function checkDisk({ dataDirectory }: Pick<Config, 'dataDirectory'>): Promise<Finding> {
  const fix = `Free some space where ${dataDirectory} is, or let KEYMESH_DATA_DIR name a directory with more room.`
  try {
    const { bavail, bsize } = await statfs(dataDirectory)
    const bytes = bavail * bsize
    const found = `${Math.floor(bytes / MIBIBYTE).toLocaleString('en')} MiB are free where ${dataDirectory} is.`
    if (bytes < NO_ROOM_BYTES) return problem('disk', found, fix)
    return bytes < LITTLE_ROOM_BYTES ? warning('disk', found, fix) : ok('disk', found)
  } catch (error) {
    return failed('disk', error, fix)
  }
}

/** Others who may write there may replace the key ring and the database. */
export async function checkDataDirectory({ dataDirectory }: Pick<Config, 'dataDirectory'>): Promise<Finding> {
  const check = 'data directory'
  try {
    const { mode } = await stat(dataDirectory)
    const others = mode & 0o022
    if (process.platform === 'win32' || others === 0)
      return ok(check, `${dataDirectory} is writable by its owner alone.`)
    return problem(check, `Others may write to ${dataDirectory}.`, `Run chmod go-w ${dataDirectory}.`)
  } catch (error) {
    return failed(check, error, 'Let KEYMESH_DATA_DIR name a directory that this user may read and write.')
  }
}

/** The version of solclientjs that is installed here; null when none is. */
export function installedSmfClient(): string | null {
  try {
    const manifest: unknown = createRequire(import.meta.url)('solclientjs/package.json')
    return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : '?'
  } catch {
    return null
  }
}

/** `exposedOn`: brokers where clients log in over SMF; null when that is not known. */
export function checkSmfClient(version: string | null, exposedOn: readonly string[] | null): Finding {
  const check = 'solclientjs'
  if (version !== null) return ok(check, `solclientjs ${version} is installed: logins over SMF can be proved.`)
  if (exposedOn !== null && exposedOn.length === 0) {
    return ok(check, 'solclientjs is not installed, and no broker exposes SMF.')
  }
  const where = exposedOn === null ? 'SMF' : `SMF on ${exposedOn.join(', ')}`
  return warning(
    check,
    `solclientjs is not installed: logins over ${where} cannot be proved.`,
    'Run npm install solclientjs where Keymesh is installed; it is optional and has a licence of its own.',
  )
}
