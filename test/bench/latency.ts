import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { Pool } from 'undici'
import type { Context } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { addApiToken } from './api-token.ts'
import { benchDirectory, type Environment, importCatalogue, openBenchContext, settle } from './bench-context.ts'
import { quantile, round } from './figures.ts'
import { BENCH_PLAN_ID, benchProductId, meshCatalogue } from './fixture.ts'
import { SandboxProcess } from './sandbox-process.ts'
import { neverNow, ServiceProcess } from './service-process.ts'

export interface LatencyBenchOptions {
  readonly brokers: number
  /** On each broker, before the first request. */
  readonly registrations: number
  /** Access requests of each measurement. */
  readonly requests: number
  /** Between two of them, whatever became of the first. */
  readonly everyMs: number
  readonly latencyMs: number
  readonly rounds: number
  readonly print: (line: object) => void
}

const GOAL = 1.5
const WARM_UP_REQUESTS = 20
const PATIENCE_MS = 120_000
const LOOK_EVERY_MS = 250
const MODES = ['idle', 'swept'] as const
type Mode = (typeof MODES)[number]

interface Sample {
  /** From the answer, and from the moment at which the request was sent, to the accepted login. */
  readonly fromAnswerMs: number
  readonly fromSendMs: number
}

/**
 * From the answer to an access request to the accepted login over MQTT with its credential: with nothing else to do, and
 * while every broker is swept over and over. One JSON line; the ratio is of the slowest hundredth.
 */
export async function benchLatency(options: LatencyBenchOptions): Promise<void> {
  const { brokers, registrations, requests, everyMs, latencyMs, rounds, print } = options
  const opened = new Disposer()
  try {
    const bench = await prepare(options, opened)
    const samples: Record<Mode, Sample[]> = { idle: [], swept: [] }
    const sweeps: Record<Mode, number> = { idle: 0, swept: 0 }
    for (let index = 0; index < rounds; index += 1) {
      for (const mode of index % 2 === 0 ? MODES : MODES.toReversed()) {
        const measured = await measure(bench, mode, `${mode}${index}`, options)
        samples[mode].push(...measured.samples)
        sweeps[mode] += measured.sweeps
      }
    }
    const [idle, swept] = [figures(samples.idle), figures(samples.swept)]
    print({
      case: `access-to-login-${brokers}x${registrations}-at-${latencyMs}ms`,
      ratio: round(swept.p99Ms / idle.p99Ms),
      goal: GOAL,
      idle: { ...idle, sweeps: sweeps.idle },
      swept: { ...swept, sweeps: sweeps.swept },
      failed: 2 * rounds * requests - samples.idle.length - samples.swept.length,
      requests,
      everyMs,
      rounds,
    })
  } finally {
    await opened.dispose()
  }
}

function figures(samples: readonly Sample[]) {
  const fromAnswer = samples.map(({ fromAnswerMs }) => fromAnswerMs)
  const fromSend = samples.map(({ fromSendMs }) => fromSendMs)
  return {
    p50Ms: round(quantile(fromAnswer, 0.5)),
    p99Ms: round(quantile(fromAnswer, 0.99)),
    maxMs: round(quantile(fromAnswer, 1)),
    p50FromSendMs: round(quantile(fromSend, 0.5)),
    p99FromSendMs: round(quantile(fromSend, 0.99)),
  }
}

interface Bench {
  readonly context: Context
  readonly env: Environment
  readonly token: string
}

/** All registrations on their brokers, each credential proved, so that sweeps find nothing to do. */
async function prepare({ brokers, registrations, latencyMs }: LatencyBenchOptions, opened: Disposer): Promise<Bench> {
  const sandbox = await SandboxProcess.start({ brokers, logins: ['mqtt'] })
  opened.defer(() => sandbox.stop())
  const env = { KEYMESH_DATA_DIR: join(await benchDirectory(opened), 'data') }
  const context = await openBenchContext(env, opened)
  const file = meshCatalogue(sandbox.brokers, {
    registrations,
    broker: (declared, index) => {
      const protocols = sandbox.brokers[index]?.endpoints ?? []
      return { ...declared, messaging: { host: '127.0.0.1', protocols } }
    },
  })
  await importCatalogue(context, file)
  await settle(context, file)
  await sandbox.control('latency', { latencyMs })
  return { context, env, token: await addApiToken(context) }
}

async function measure({ context, env, token }: Bench, mode: Mode, name: string, options: LatencyBenchOptions) {
  const sinceMs = Date.now()
  const service = await ServiceProcess.start({
    ...env,
    KEYMESH_SWEEP_CRON: mode === 'swept' ? '* * * * * *' : neverNow(),
    // No credential's turn comes a second time, which would be taken for its first login.
    KEYMESH_LOGIN_EVERY: '3650d',
  })
  const client = new ApiClient(service.url, token)
  try {
    await sweepsAre(context, mode, { brokers: options.brokers, sinceMs })
    await client.requestAccess(context, { ...options, name: `warm-${name}`, requests: WARM_UP_REQUESTS })
    const startedAtMs = Date.now()
    const samples = await client.requestAccess(context, { ...options, name })
    return { samples, sweeps: await sweepsSince(context, startedAtMs) }
  } finally {
    await client.close()
    await service.stop()
  }
}

/** Waits until a sweep of every broker began, or until none runs: what the last service left over runs first. */
async function sweepsAre({ db }: Context, mode: Mode, { brokers, sinceMs }: { brokers: number; sinceMs: number }) {
  const count = async (which: RawBuilder<boolean>): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from broker_status where ${which}`.execute(db)
    return rows[0]?.count ?? Number.NaN
  }
  if (mode === 'swept') {
    const began = sql<boolean>`sweep_started_at > ${new Date(sinceMs).toISOString()}`
    return until('every broker is swept', async () => (await count(began)) === brokers)
  }
  // A job that was left is taken up in this time.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  return until('no broker is swept', async () => (await count(sql<boolean>`sweep_outcome = 'running'`)) === 0)
}

/** Under way at some moment since then. */
async function sweepsSince({ db }: Context, startedAtMs: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from runs
    where kind = 'sweep' and (finished_at is null or finished_at > ${new Date(startedAtMs).toISOString()})`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

interface RequestOptions extends Pick<LatencyBenchOptions, 'brokers' | 'requests' | 'everyMs'> {
  readonly name: string
}

class ApiClient {
  readonly #pool: Pool
  readonly #headers: Readonly<Record<string, string>>

  constructor(url: string, token: string) {
    this.#pool = new Pool(url, { connections: 4, pipelining: 1 })
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  /** For registrations of their own, on the brokers in turn, at an even pace: a slow one holds up none after it. */
  async requestAccess(context: Context, { name, requests, everyMs, brokers }: RequestOptions) {
    const ids = Array.from({ length: requests }, (_, index) => `${name}-${index}`)
    for (const id of ids) await this.#register(id)
    const sent = new Map<string, { readonly sentAtMs: number; readonly answeredAtMs: number }>()
    const startedMs = performance.now()
    const request = async (id: string, index: number): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, startedMs + index * everyMs - performance.now()))
      const sentAtMs = Date.now()
      await this.#post(`/api/v2/apim/appRegistrations/${id}/accessRequests`, {
        accessRequestId: 'orders',
        eventApiProductId: benchProductId(index % brokers),
        planId: BENCH_PLAN_ID,
      })
      sent.set(id, { sentAtMs, answeredAtMs: Date.now() })
    }
    await Promise.all(ids.map(request))
    const acceptedAtMs = await acceptedLogins(context, ids)
    return ids.flatMap((id): readonly Sample[] => {
      const [times, atMs] = [sent.get(id), acceptedAtMs.get(id)]
      if (times === undefined || atMs === undefined) return []
      return [{ fromAnswerMs: atMs - times.answeredAtMs, fromSendMs: atMs - times.sentAtMs }]
    })
  }

  async #register(id: string): Promise<void> {
    await this.#post('/api/v2/apim/appRegistrations', { registrationId: id, source: 'bench', name: id })
    await this.#post(`/api/v2/apim/appRegistrations/${id}/credentials`, { name: 'main' })
  }

  async #post(path: string, content: object): Promise<void> {
    const options = { method: 'POST', path, headers: this.#headers, body: JSON.stringify(content) } as const
    const { statusCode, body } = await this.#pool.request(options)
    const text = await body.text()
    if (statusCode >= 300) throw new Error(`POST ${path} answered ${statusCode}: ${text}`)
  }
}

/** When the login with each registration's credential was accepted, as the verdict says; those that never were are missing. */
async function acceptedLogins({ db }: Context, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const read = async (): Promise<ReadonlyMap<string, number>> => {
    const { rows } = await sql<{ id: string; at: Date }>`
      select registration_id as id, checked_at as at from login_verdicts
      where registration_id = any(${[...ids]}) and outcome = 'accepted'`.execute(db)
    return new Map(rows.map(({ id, at }) => [id, at.getTime()]))
  }
  const giveUpAtMs = performance.now() + PATIENCE_MS
  for (;;) {
    const found = await read()
    if (found.size === ids.length || performance.now() > giveUpAtMs) return found
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    if (performance.now() > giveUpAtMs) throw new Error(`waited ${PATIENCE_MS / 1000} seconds in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}
