import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import type { Context } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { benchDirectory, forgetBrokers, importCatalogue, openBenchContext } from './bench-context.ts'
import type { ChildResult } from './child.ts'
import { median, round } from './figures.ts'
import { benchCatalogue, OBJECTS_PER_REGISTRATION } from './fixture.ts'
import { authorization, SandboxProcess } from './sandbox-process.ts'

interface Case {
  readonly case: string
  readonly registrations: number
  readonly latencyMs: number
  readonly kind: 'apply' | 'in-sync' | 'drift'
  readonly goal: number
}

const APPLY_GOAL = 1.25
const SWEEP_GOAL = 1.15
const RSS_GOAL = 1.25

export interface ReconcileBenchOptions {
  readonly sizes: readonly number[]
  readonly latenciesMs: readonly number[]
  readonly rounds: number
  readonly print: (line: object) => void
}

/** First apply and sweeps against a sandbox in a process of its own; one JSON line per case. */
export async function benchReconcile({ sizes, latenciesMs, rounds, print }: ReconcileBenchOptions): Promise<void> {
  const smallest = Math.min(...sizes)
  const peaksMb = new Map<number, number>()
  let samePeakMb = Number.NaN
  for (const registrations of sizes) {
    const bench = await Bench.start(registrations)
    try {
      for (const latencyMs of latenciesMs) {
        const of = { registrations, latencyMs }
        if (registrations === smallest) {
          print(await bench.measure({ ...of, kind: 'apply', case: name('first-apply', of), goal: APPLY_GOAL }, rounds))
        } else await bench.settle(latencyMs)
        const inSync = await bench.measure(
          { ...of, kind: 'in-sync', case: name('sweep-in-sync', of), goal: SWEEP_GOAL },
          rounds,
        )
        print(inSync)
        if (registrations === smallest && latencyMs === latenciesMs[0]) {
          samePeakMb = await bench.peakOfSweeps(Math.max(...sizes) / smallest)
        }
        peaksMb.set(registrations, Math.max(peaksMb.get(registrations) ?? 0, inSync.peakRssMb))
        print(
          await bench.measure(
            { ...of, kind: 'drift', case: name('sweep-5-percent-drift', of), goal: SWEEP_GOAL },
            rounds,
          ),
        )
      }
    } finally {
      await bench.close()
    }
  }
  // A process that has just started has not taken the memory that its collector works with: both figures are told, the
  // ratio to one sweep of the small broker and to as many as make the same work.
  const base = peaksMb.get(smallest) ?? Number.NaN
  for (const [registrations, peakRssMb] of peaksMb) {
    if (registrations === smallest) continue
    const of = { goal: RSS_GOAL, peakRssMb }
    const name = `sweep-peak-rss-${registrations}-to-${smallest}`
    print({ case: name, ratio: round(peakRssMb / base), ...of, baseRssMb: base })
    print({ case: `${name}-same-work`, ratio: round(peakRssMb / samePeakMb), ...of, baseRssMb: samePeakMb })
  }
}

const name = (what: string, { registrations, latencyMs }: { registrations: number; latencyMs: number }): string =>
  `${what}-${registrations}-at-${latencyMs}ms`

class Bench {
  readonly #opened: Disposer
  readonly #directory: string
  readonly #sandbox: SandboxProcess
  readonly #context: Context

  private constructor(opened: Disposer, directory: string, sandbox: SandboxProcess, context: Context) {
    this.#opened = opened
    this.#directory = directory
    this.#sandbox = sandbox
    this.#context = context
  }

  static async start(registrations: number): Promise<Bench> {
    const opened = new Disposer()
    try {
      const directory = await benchDirectory(opened)
      const sandbox = await SandboxProcess.start({ brokers: 1 })
      opened.defer(() => sandbox.stop())
      const context = await openBenchContext({ KEYMESH_DATA_DIR: join(directory, 'data') }, opened)
      await importCatalogue(context, benchCatalogue(sandbox.only, registrations))
      return new Bench(opened, directory, sandbox, context)
    } catch (error) {
      await opened.dispose()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#opened.dispose()
  }

  /** Everything on the broker, unmeasured. */
  async settle(latencyMs: number): Promise<void> {
    await this.#setLatency(0)
    await this.#run({ BENCH_MODE: 'sweep' })
    await this.#setLatency(latencyMs)
  }

  /** Of one process that sweeps so many times. */
  async peakOfSweeps(times: number): Promise<number> {
    return Math.round((await this.#run({ BENCH_MODE: 'sweep', BENCH_REPEAT: String(times) })).maxRssMb)
  }

  async measure(of: Case, rounds: number) {
    const script = join(this.#directory, 'requests.json')
    await this.#setLatency(of.latencyMs)
    await this.#prepare(of)
    await this.#sandbox.control('reset', {})
    await this.#run({ BENCH_MODE: 'sweep', BENCH_RECORD: script })
    const requests = await this.#sandbox.requests()
    const ours: ChildResult[] = []
    const bare: ChildResult[] = []
    for (let index = 0; index < rounds; index += 1) {
      await this.#prepare(of)
      ours.push(await this.#run({ BENCH_MODE: 'sweep' }))
      await this.#prepare(of)
      bare.push(await this.#run({ BENCH_MODE: 'bare', BENCH_SCRIPT: script }))
    }
    // The bare loop leaves a broker that the ledger knows nothing of.
    if (of.kind === 'apply') {
      await this.#prepare(of)
      await this.#run({ BENCH_MODE: 'sweep' })
    }
    const seconds = median(ours.map((run) => run.seconds))
    const bareSeconds = median(bare.map((run) => run.seconds))
    return {
      case: of.case,
      ratio: round(median(ours.map((run, index) => run.seconds / (bare[index]?.seconds ?? Number.NaN)))),
      goal: of.goal,
      seconds: round(seconds),
      bareSeconds: round(bareSeconds),
      cpuSeconds: round(median(ours.map((run) => run.cpuSeconds))),
      bareCpuSeconds: round(median(bare.map((run) => run.cpuSeconds))),
      requests,
      requestsPerObject: round(requests / (of.registrations * OBJECTS_PER_REGISTRATION)),
      registrationsPerSecond: Math.round(of.registrations / seconds),
      peakRssMb: Math.round(Math.max(...ours.map((run) => run.maxRssMb))),
      failed: Math.max(...ours.map((run) => run.failed)),
      bareFailed: Math.max(...bare.map((run) => run.failed)),
      rounds,
    }
  }

  /** The state of broker and ledger that the case starts from. */
  async #prepare({ kind }: Case): Promise<void> {
    switch (kind) {
      case 'apply':
        await this.#sandbox.control('clear', {})
        return forgetBrokers(this.#context)
      case 'in-sync':
        return
      case 'drift':
        return this.#breakFivePercent()
      default: {
        const unreachable: never = kind
        return unreachable
      }
    }
  }

  /** Every twentieth registration, in turn: a username is disabled, an exception is removed, a queue is switched off. */
  async #breakFivePercent(): Promise<void> {
    await this.#setLatency(0)
    const { rows } = await sql<{ kind: string; name: string }>`
      select kind, name from (
        select l.*, row_number() over (partition by kind order by registration_id) as position from ledger l
        where registration_id is not null
      ) l
      where position % 20 = 0 and kind = (array['clientUsername', 'aclProfile', 'queue'])[1 + (position / 20) % 3]`.execute(
      this.#context.db,
    )
    for (const { kind, name: object } of rows) await this.#breakObject(kind, encodeURIComponent(object))
    await this.#setLatency(this.#latencyMs)
  }

  async #breakObject(kind: string, object: string): Promise<void> {
    if (kind === 'clientUsername') await this.#semp('PATCH', `clientUsernames/${object}`, { enabled: false })
    else if (kind === 'queue') await this.#semp('PATCH', `queues/${object}`, { egressEnabled: false })
    else {
      const topic = encodeURIComponent(`shop/${decodeURIComponent(object)}/orders/shipped`)
      await this.#semp('DELETE', `aclProfiles/${object}/subscribeTopicExceptions/smf,${topic}`)
    }
  }

  #latencyMs = 0
  #cookie = ''

  async #semp(method: string, path: string, body?: object): Promise<void> {
    const { only } = this.#sandbox
    const { url, msgVpnName } = only
    const login = this.#cookie === '' ? authorization(only) : { cookie: this.#cookie }
    const response = await fetch(`${url}/SEMP/v2/config/msgVpns/${msgVpnName}/${path}`, {
      method,
      headers: { ...login, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    await response.arrayBuffer()
    this.#cookie = response.headers.get('set-cookie')?.split(';')[0] ?? this.#cookie
    if (!response.ok && method !== 'DELETE') throw new Error(`${method} ${path} answered ${response.status}`)
  }

  async #setLatency(latencyMs: number): Promise<void> {
    if (latencyMs !== 0) this.#latencyMs = latencyMs
    await this.#sandbox.control('latency', { latencyMs })
  }

  async #run(env: Record<string, string>): Promise<ChildResult> {
    const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'child.js')], {
      env: {
        ...process.env,
        ...env,
        KEYMESH_DATA_DIR: join(this.#directory, 'data'),
        BENCH_URL: this.#sandbox.only.url,
        BENCH_LOGIN: `${this.#sandbox.only.username}:${this.#sandbox.only.password}`,
      },
      maxBuffer: 64 * 1024 * 1024,
    })
    return JSON.parse(stdout) as ChildResult
  }
}
