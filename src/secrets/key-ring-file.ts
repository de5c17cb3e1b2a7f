import { randomUUID } from 'node:crypto'
import { link, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { KeymeshError } from '../domain/errors.ts'
import { Secret } from '../domain/secret.ts'
import { formatKeyRing, type KeyRing, newKeyRing, parseKeyRing } from './key-ring.ts'

export interface KeyRingLog {
  warn(fields: object, message: string): void
}

export interface KeyRingFileOptions {
  readonly dataDirectory: string
  /** False when the database holds sealed secrets: a new ring could not open them, so its absence is an error then. */
  readonly mayCreate: boolean
  readonly log: KeyRingLog
}

export const keyRingPath = (dataDirectory: string): string => join(dataDirectory, 'keys.json')

/**
 * The ring in `keys.json` of the data directory, made at the first start. Throws KEY_RING_MISSING, KEY_RING_EXPOSED,
 * KEY_RING_INVALID or KEY_RING_UNAVAILABLE; a file that is there is never written over.
 */
export async function openKeyRingFile({ dataDirectory, mayCreate, log }: KeyRingFileOptions): Promise<KeyRing> {
  const path = keyRingPath(dataDirectory)
  const found = await readKeyRingFile(path)
  if (found !== null) return found
  if (!mayCreate) throw missing(path)
  const ring = newKeyRing()
  if (await create(path, ring)) {
    log.warn(
      { event: 'keys.created', path, kid: ring.current },
      `A key ring was created in ${path}: back it up, without it no secret can be opened`,
    )
    return ring
  }
  // Another process was first.
  const theirs = await readKeyRingFile(path)
  if (theirs === null) throw missing(path)
  return theirs
}

/** Null when there is none. */
export async function readKeyRingFile(path: string): Promise<KeyRing | null> {
  let text: string
  try {
    const { mode } = await stat(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) throw exposed(path, mode)
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw unavailable('read', path, error)
  }
  return parseKeyRing(new Secret(text), path)
}

/**
 * Replaces the ring for good: after a crash the file holds the old ring or the new one, whole. One at a time: drafts that
 * a killed process left hold keys, and go.
 */
export async function writeKeyRingFile(path: string, ring: KeyRing): Promise<void> {
  try {
    await removeDrafts(path)
    const draft = await writeDraft(path, ring)
    try {
      await rename(draft, path)
    } finally {
      await rm(draft, { force: true })
    }
    await syncDirectory(dirname(path))
  } catch (error) {
    throw unavailable('write', path, error)
  }
}

/** False when the file exists already. */
async function create(path: string, ring: KeyRing): Promise<boolean> {
  try {
    const draft = await writeDraft(path, ring)
    try {
      await link(draft, path)
    } finally {
      await rm(draft, { force: true })
    }
    await syncDirectory(dirname(path))
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw unavailable('write', path, error)
  }
}

const DRAFT = /^\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

async function removeDrafts(path: string): Promise<void> {
  const name = basename(path)
  const left = (await readdir(dirname(path))).filter(
    (each) => each.startsWith(name) && DRAFT.test(each.slice(name.length)),
  )
  await Promise.all(left.map((each) => rm(join(dirname(path), each), { force: true })))
}

async function writeDraft(path: string, ring: KeyRing): Promise<string> {
  const draft = `${path}.${randomUUID()}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(formatKeyRing(ring).reveal())
    await file.sync()
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  } finally {
    await file.close()
  }
  return draft
}

async function syncDirectory(path: string): Promise<void> {
  // Windows has no such call.
  if (process.platform === 'win32') return
  const directory = await open(path)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

function errnoOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function missing(path: string): KeymeshError {
  return new KeymeshError({
    code: 'KEY_RING_MISSING',
    fate: 'stop',
    message: `The database holds sealed secrets and the key ring ${path} that opens them is missing.`,
    hint: 'Restore that file from a backup, or give the ring in KEYMESH_KEYS. Nothing was changed.',
  })
}

function exposed(path: string, mode: number): KeymeshError {
  return new KeymeshError({
    code: 'KEY_RING_EXPOSED',
    fate: 'stop',
    message: `The key ring ${path} may be read by others than its owner (mode ${(mode & 0o777).toString(8)}).`,
    hint: `Close it with: chmod 600 ${path}. If others may have read it, rotate the keys.`,
  })
}

function unavailable(what: string, path: string, error: unknown): KeymeshError {
  if (error instanceof KeymeshError) return error
  return new KeymeshError({
    code: 'KEY_RING_UNAVAILABLE',
    fate: 'stop',
    message: `Cannot ${what} the key ring ${path}: ${error instanceof Error ? error.message : String(error)}`,
    hint: 'Check the permissions of the data directory and the free disk space. No existing ring was changed.',
    cause: error,
  })
}
