import { execFile } from 'node:child_process'
import { readFile, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { KeymeshError } from '../domain/errors.ts'
import { directoryError, errnoOf } from './embedded-postgres-errors.ts'

const FAST_STOP_MS = 5_000
const IMMEDIATE_STOP_MS = 5_000

export interface PostmasterFile {
  readonly pid: number
  readonly ready: boolean
}

/** What `postmaster.pid` says; null when there is none or it is being written. */
export async function readPostmasterFile(dataDirectory: string): Promise<PostmasterFile | null> {
  try {
    const lines = (await readFile(join(dataDirectory, 'postmaster.pid'), 'utf8')).split('\n')
    const pid = Number(lines[0])
    if (!Number.isInteger(pid) || pid <= 0) return null
    return { pid, ready: lines[7]?.trim() === 'ready' }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw directoryError('read the database in', dataDirectory, error)
  }
}

/**
 * Stops a server that an earlier process left on this cluster; the caller holds the lock, so nobody serves it. Returns a
 * process id that `postmaster.pid` names and that belongs to something else (a reused id, or one not yet reaped), which
 * the new server must not take for a rival.
 */
export async function stopOrphan(dataDirectory: string): Promise<{ reusedPid: number | null }> {
  const file = await readPostmasterFile(dataDirectory)
  if (file === null || !isRunning(file.pid)) return { reusedPid: null }
  if (!(await serves(file.pid, dataDirectory))) return { reusedPid: file.pid }
  for (const [signal, withinMs] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const) {
    signalServer(file.pid, signal)
    const end = performance.now() + withinMs
    while (performance.now() < end) {
      if (!isRunning(file.pid) || !(await serves(file.pid, dataDirectory))) return { reusedPid: null }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  throw new KeymeshError({
    code: 'DATABASE_BUSY',
    fate: 'stop',
    message: `A PostgreSQL server (process ${file.pid}) that nobody uses still runs on ${dataDirectory} and does not stop.`,
    hint: 'Stop that process, then start again.',
  })
}

function signalServer(pid: number, signal: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw directoryError('stop an earlier server, process', String(pid), error)
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errnoOf(error) !== 'ESRCH'
  }
}

/** Whether this process is PostgreSQL with this very cluster on its command line. */
async function serves(pid: number, dataDirectory: string): Promise<boolean> {
  try {
    if (process.platform !== 'linux') return (await commandElsewhere(pid)).includes(dataDirectory)
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
    if (!words.includes(dataDirectory)) return false
    return basename(await readlink(`/proc/${pid}/exe`)).startsWith('postgres')
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT' || errno === 'ESRCH' || errno === 'EACCES') return false
    throw error
  }
}

async function commandElsewhere(pid: number): Promise<string> {
  try {
    return (await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { env: { LC_ALL: 'C' } }))
      .stdout
  } catch {
    return ''
  }
}
