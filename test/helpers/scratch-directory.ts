import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { freemem } from 'node:os'
import { join } from 'node:path'

/** A file system in memory, where Linux has one. */
const IN_MEMORY = '/dev/shm'
/** Several times what the databases of all tests at a moment hold. */
const ROOM_BYTES = 6 * 1024 ** 3

/**
 * Makes the temporary directory of this process, and of those that it starts, one in memory, when there is room. Tests
 * make and drop hundreds of databases, each of hundreds of files: on a disk that is a good part of all their time.
 */
export async function useScratchDirectory(): Promise<() => Promise<void>> {
  if ((await roomBytes()) < ROOM_BYTES) return async () => undefined
  const given = process.env.TMPDIR
  const directory = await mkdtemp(join(IN_MEMORY, 'keymesh-'))
  // As root PostgreSQL runs as another user.
  await chmod(directory, 0o1777)
  process.env.TMPDIR = directory
  return async () => {
    if (given === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = given
    await rm(directory, { recursive: true, force: true })
  }
}

async function roomBytes(): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(IN_MEMORY)
    return Math.min(bavail * bsize, freemem())
  } catch {
    return 0
  }
}
