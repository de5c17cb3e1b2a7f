import process from 'node:process'
import { Pool } from 'undici'

/**
 * Sends one GET again and again over some connections, in a process of its own. Told by the environment: BENCH_ORIGIN,
 * BENCH_PATH, BENCH_TOKEN, BENCH_CONNECTIONS, BENCH_SECONDS. Prints one JSON line.
 */
export interface LoadResult {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers other than 200. */
  readonly failed: number
}

const { BENCH_ORIGIN = '', BENCH_PATH = '', BENCH_TOKEN = '', BENCH_CONNECTIONS = '', BENCH_SECONDS = '' } = process.env
const connections = Number(BENCH_CONNECTIONS)
const pool = new Pool(BENCH_ORIGIN, { connections, pipelining: 1 })
const headers = { authorization: `Bearer ${BENCH_TOKEN}` }
const startedMs = performance.now()
const endMs = startedMs + Number(BENCH_SECONDS) * 1000
const latenciesMs: number[] = []
let failed = 0

const loop = async (): Promise<void> => {
  while (performance.now() < endMs) {
    const sentMs = performance.now()
    const { statusCode, body } = await pool.request({ method: 'GET', path: BENCH_PATH, headers })
    await body.dump()
    latenciesMs.push(performance.now() - sentMs)
    if (statusCode !== 200) failed += 1
  }
}
await Promise.all(Array.from({ length: connections }, loop))
const seconds = (performance.now() - startedMs) / 1000
await pool.close()
latenciesMs.sort((one, other) => one - other)
const quantile = (share: number): number => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? Number.NaN
const result: LoadResult = {
  requestsPerSecond: latenciesMs.length / seconds,
  p50Ms: quantile(0.5),
  p99Ms: quantile(0.99),
  failed,
}
process.stdout.write(`${JSON.stringify(result)}\n`)
