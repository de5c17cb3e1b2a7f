import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

export interface TestRedis {
  readonly url: string
  stop(): Promise<void>
}

/** Null when there is neither `REDIS_URL` nor a `redis-server` or `valkey-server` program: then say why and skip. */
export function redisAvailable():
  | { readonly available: true }
  | { readonly available: false; readonly reason: string } {
  if (process.env.REDIS_URL !== undefined || serverProgram() !== null) return { available: true }
  return { available: false, reason: 'REDIS_URL is not set and no redis-server program is installed' }
}

/** A server of its own on a free port, or the one of `REDIS_URL`, whose keys the caller tells apart by a prefix. */
export async function startTestRedis(): Promise<TestRedis> {
  const given = process.env.REDIS_URL
  if (given !== undefined) return { url: given, stop: async () => undefined }
  const program = serverProgram()
  if (program === null) throw new Error('no redis-server program is installed')
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-redis-'))
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'no']
  const child = spawn(program, args, { stdio: 'ignore' })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `redis://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await exited
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await answers(url)
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function serverProgram(): string | null {
  for (const program of ['redis-server', 'valkey-server']) {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' })
      return program
    } catch {
      // Not this one.
    }
  }
  return null
}

async function answers(url: string): Promise<void> {
  const client = new Redis(url, { retryStrategy: (times) => (times > 200 ? null : 25), maxRetriesPerRequest: 200 })
  client.on('error', () => undefined)
  try {
    await client.ping()
  } finally {
    client.disconnect()
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
