import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { link, readdir, readFile, readlink, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { errnoOf } from './embedded-postgres-errors.ts'

const HEARTBEAT_MS = 2_000
/** A holder whose process cannot be seen from here counts as dead after this long without a heartbeat. */
const UNSEEN_HOLDER_DEAD_AFTER_MS = 10_000
const LOCK_NAME = /^lock\.(\d+)$/

const holderSchema = z.object({
  token: z.string(),
  released: z.boolean(),
  pid: z.number().int().positive(),
  /** Start time of the process as the operating system gives it, so that a reused process id is not mistaken. */
  processStart: z.string(),
  /** Where the process id means something: machine, boot and process-id namespace. */
  scope: z.string(),
})
type Holder = z.infer<typeof holderSchema>

export interface DataDirectoryLock {
  readonly token: string
  release(): Promise<void>
}

export type LockAttempt =
  | { readonly lock: DataDirectoryLock; readonly holder?: never }
  | { readonly lock?: never; readonly holder: { readonly token: string; readonly pid: number } }

/**
 * An exclusive lock on a directory, dead with its holder. Node has no flock, so a lock is the file `lock.N` with the
 * highest N: a live holder is never replaced, a dead or released one is followed by creating `lock.N+1`, which only one
 * process can do. The highest file is never removed, so a number is never given out twice.
 */
export async function tryLockDirectory(
  directory: string,
  unseenHolderDeadAfterMs: number = UNSEEN_HOLDER_DEAD_AFTER_MS,
): Promise<LockAttempt> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const current = await highestLock(directory)
    if (
      current !== null &&
      current.holder !== null &&
      (await isAlive(current.path, current.holder, unseenHolderDeadAfterMs))
    ) {
      return { holder: { token: current.holder.token, pid: current.holder.pid } }
    }
    const number = (current?.number ?? 0) + 1
    const lock = await createLock(directory, number)
    if (lock !== null) return { lock }
  }
  throw new Error(`the lock of ${directory} changes hands too often`)
}

async function createLock(directory: string, number: number): Promise<DataDirectoryLock | null> {
  const path = join(directory, `lock.${number}`)
  const holder: Holder = {
    token: randomUUID(),
    released: false,
    pid: process.pid,
    ...(await processPlace(process.pid)),
  }
  const draft = join(directory, `lock-draft.${holder.token}`)
  await writeFile(draft, JSON.stringify(holder), { mode: 0o600, flag: 'wx' })
  try {
    await link(draft, path)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return null
    throw error
  } finally {
    await rm(draft, { force: true })
  }
  // A process that was slow between reading and creating may have made a number that was passed long ago.
  if ((await highestLock(directory))?.number !== number) {
    await rm(path, { force: true })
    return null
  }
  await removeOlder(directory, number)
  return keepLock(directory, path, holder)
}

function keepLock(directory: string, path: string, holder: Holder): DataDirectoryLock {
  const heartbeat = setInterval(() => {
    const now = new Date()
    utimes(path, now, now).catch(() => undefined)
  }, HEARTBEAT_MS)
  heartbeat.unref()
  let released = false
  return {
    token: holder.token,
    async release() {
      if (released) return
      released = true
      clearInterval(heartbeat)
      const draft = join(directory, `lock-draft.${holder.token}`)
      try {
        await writeFile(draft, JSON.stringify({ ...holder, released: true }), { mode: 0o600 })
        await rename(draft, path)
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT') throw error
      }
    },
  }
}

async function highestLock(directory: string): Promise<{ number: number; path: string; holder: Holder | null } | null> {
  const numbers = await lockNumbers(directory)
  if (numbers.length === 0) return null
  const number = Math.max(...numbers)
  const path = join(directory, `lock.${number}`)
  return { number, path, holder: await readHolder(path) }
}

async function lockNumbers(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  return names
    .map((name) => LOCK_NAME.exec(name)?.[1])
    .flatMap((digits) => (digits === undefined ? [] : Number(digits)))
}

async function readHolder(path: string): Promise<Holder | null> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    // A lock appears whole, so one that cannot be parsed was cut short by a crash of the machine: its holder is dead.
    if (errnoOf(error) === 'ENOENT' || error instanceof SyntaxError || error instanceof z.ZodError) return null
    throw error
  }
}

async function removeOlder(directory: string, number: number): Promise<void> {
  for (const older of await lockNumbers(directory)) {
    if (older < number) await rm(join(directory, `lock.${older}`), { force: true })
  }
}

async function isAlive(path: string, holder: Holder, unseenHolderDeadAfterMs: number): Promise<boolean> {
  if (holder.released) return false
  const here = await processPlace(holder.pid)
  if (here.scope === holder.scope) return here.processStart === holder.processStart
  return heartbeats(path, unseenHolderDeadAfterMs)
}

/**
 * Watches the file's time change by this machine's own clock only. A holder of another boot of this machine, or in a
 * container that is gone, costs this wait once.
 */
async function heartbeats(path: string, withinMs: number): Promise<boolean> {
  const first = await modifiedAt(path)
  const end = performance.now() + withinMs
  while (performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    if ((await modifiedAt(path)) !== first) return true
  }
  return false
}

async function modifiedAt(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** `processStart` is `gone` when no such process runs. */
async function processPlace(pid: number): Promise<Pick<Holder, 'processStart' | 'scope'>> {
  if (process.platform !== 'linux') return { processStart: await processStartElsewhere(pid), scope: hostname() }
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => hostname())).trim()
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '')
  return { processStart: await linuxProcessStart(pid), scope: `${boot} ${namespace}` }
}

async function linuxProcessStart(pid: number): Promise<string> {
  try {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The command in parentheses may hold spaces; the state follows it, and the start time is the 20th field after that.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
    // A zombie holds nothing any more.
    if (fields[0] === 'Z' || fields[0] === 'X') return 'gone'
    return fields[19] ?? 'unknown'
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return 'gone'
    throw error
  }
}

async function processStartElsewhere(pid: number): Promise<string> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return 'gone'
  }
  if (process.platform === 'win32') return 'unknown'
  try {
    return (
      await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { env: { LC_ALL: 'C' } })
    ).stdout.trim()
  } catch {
    return 'gone'
  }
}
