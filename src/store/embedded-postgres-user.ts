import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { KeymeshError } from '../domain/errors.ts'
import { errnoOf } from './embedded-postgres-errors.ts'

/** The customary id of `nobody`: PostgreSQL refuses to run as root. */
const UNPRIVILEGED_ID = 65_534

/** Whom PostgreSQL runs as; null means the user of this process. */
export type ServerUser = { readonly uid: number; readonly gid: number } | null

/** For root: the owner of a cluster that exists already, else an unprivileged user. Everyone else: themselves. */
export async function serverUserFor(clusterDirectory: string): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return null
  try {
    const { uid, gid } = await stat(clusterDirectory)
    if (uid !== 0) return { uid, gid }
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
  return { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID }
}

export function spawnIdentity(user: ServerUser): { uid?: number; gid?: number } {
  return user === null ? {} : { uid: user.uid, gid: user.gid }
}

/** Asks the kernel, as that user, rather than guess from mode bits: every path must be readable, or searchable. */
export async function canReach(user: ServerUser, paths: readonly string[]): Promise<boolean> {
  if (user === null) return true
  const script = 'for path; do if test -d "$path"; then test -x "$path"; else test -r "$path"; fi || exit 1; done'
  try {
    await promisify(execFile)('/bin/sh', ['-c', script, 'sh', ...paths], {
      ...spawnIdentity(user),
      cwd: '/',
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
    })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 1) return false
    const errno = errnoOf(error)
    if (errno === 'EPERM' || errno === 'EINVAL') throw userRefused(user.uid, error)
    throw error
  }
}

/** A container may take root's right to become another user, or not know that user. */
function userRefused(uid: number, cause: unknown): KeymeshError {
  return new KeymeshError({
    code: 'DATABASE_USER_REFUSED',
    fate: 'stop',
    message: `PostgreSQL refuses to run as root, and this process may not start it as user ${uid}.`,
    hint: 'Run Keymesh as an ordinary user, or set DATABASE_URL to a PostgreSQL server of your own.',
    cause,
  })
}
