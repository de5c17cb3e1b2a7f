import { subscribe } from 'node:diagnostics_channel'
import { readFile, writeFile } from 'node:fs/promises'
import process from 'node:process'
import { Pool } from 'undici'
import { exchange } from '../../src/brokers/solace/http-exchange.ts'
import { toConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { accountId, brokerId } from '../../src/domain/ids.ts'
import { BENCH_BROKER_ID, REQUEST_CONCURRENCY } from './fixture.ts'

/**
 * One measured run in a process of its own, so that its memory is its own. Told by the environment:
 * BENCH_MODE=sweep runs a sweep on the joined database; BENCH_MODE=bare sends BENCH_SCRIPT's requests and does no more.
 * BENCH_RECORD=FILE also writes the requests that a sweep sends, BENCH_REPEAT=N sweeps N times and gives the seconds of
 * the last. Prints one JSON line.
 */
export interface ChildResult {
  readonly seconds: number
  readonly requests: number
  readonly failed: number
  /** Of this process: user and system. */
  readonly cpuSeconds: number
  readonly maxRssMb: number
}

export interface RecordedRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body: string | null
}

const { BENCH_MODE: mode, BENCH_SCRIPT: script = '', BENCH_RECORD: record, ...environment } = process.env

const result = mode === 'bare' ? await bare() : await sweep()
const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6
process.stdout.write(`${JSON.stringify({ ...result, cpuSeconds, maxRssMb: maxRSS / 1024 })}\n`)

async function sweep(): Promise<Omit<ChildResult, 'cpuSeconds' | 'maxRssMb'>> {
  const recorded: RecordedRequest[] = []
  if (record !== undefined) {
    subscribe('undici:request:create', (message) => {
      const { request } = message as {
        request: Omit<RecordedRequest, 'body'> & { readonly body: Uint8Array | string | null }
      }
      recorded.push({
        method: request.method,
        path: request.path,
        body: request.body === null ? null : Buffer.from(request.body).toString(),
      })
    })
  }
  const config = toConfig({
    env: {
      KEYMESH_DATA_DIR: environment.KEYMESH_DATA_DIR,
      KEYMESH_LOG_LEVEL: 'error',
      KEYMESH_CONCURRENCY: environment.KEYMESH_CONCURRENCY,
    },
    pid: process.pid,
    hostname: 'bench',
  })
  const context = await openContext(config)
  try {
    const broker = { accountId: accountId('default'), brokerId: brokerId(BENCH_BROKER_ID) }
    for (let round = 1; round < Number(environment.BENCH_REPEAT ?? 1); round += 1) {
      await context.engine.sweep(broker, { trigger: 'operator' })
    }
    const startedMs = performance.now()
    const { failed, waiting, busy } = await context.engine.sweep(broker, { trigger: 'operator' })
    const seconds = (performance.now() - startedMs) / 1000
    if (record !== undefined) await writeFile(record, JSON.stringify(recorded), { mode: 0o600 })
    return { seconds, requests: recorded.length, failed: failed + waiting + busy }
  } finally {
    await context[Symbol.asyncDispose]()
  }
}

/** The same requests in the same order, with the same concurrency, through the same HTTP client. */
async function bare(): Promise<Omit<ChildResult, 'cpuSeconds' | 'maxRssMb'>> {
  const requests = JSON.parse(await readFile(script, 'utf8')) as readonly RecordedRequest[]
  const pool = new Pool(environment.BENCH_URL ?? '', { connections: REQUEST_CONCURRENCY, pipelining: 1 })
  const limits = { timeoutMs: 60_000, timedOut: new Error('no answer') }
  const authorization = `Basic ${Buffer.from(environment.BENCH_LOGIN ?? '').toString('base64')}`
  const first = await exchange(
    pool,
    { method: 'GET', path: '/SEMP/v2/config/about/api', headers: { authorization } },
    limits,
  )
  const cookie = first.setCookie.map((each) => each.split(';')[0] ?? '').join('; ')
  let failed = 0
  let next = 0
  const startedMs = performance.now()
  const loop = async (): Promise<void> => {
    for (;;) {
      const request = requests[next++]
      if (request === undefined) return
      const { method, path, body } = request
      const headers: Record<string, string> =
        body === null ? { cookie } : { cookie, 'content-type': 'application/json' }
      const { status } = await exchange(pool, { method, path, headers, body: body ?? undefined }, limits)
      if (status !== 200 && method !== 'GET') failed += 1
    }
  }
  await Promise.all(Array.from({ length: REQUEST_CONCURRENCY }, loop))
  const seconds = (performance.now() - startedMs) / 1000
  await pool.close()
  return { seconds, requests: requests.length, failed }
}
