import { sql } from 'kysely'
import { Disposer } from '../../src/disposer.ts'
import type { PortalBroker } from '../../src/domain/portal-file.ts'
import type { FaultRule } from '../../src/sandbox/faults.ts'
import { BenchCluster } from './bench-cluster.ts'
import { importCatalogue, openBenchContext } from './bench-context.ts'
import { median, round } from './figures.ts'
import { type FirstApply, firstApply } from './first-apply.ts'
import { benchBrokerId, meshCatalogue } from './fixture.ts'
import { control, type SandboxedBroker, SandboxProcess } from './sandbox-process.ts'
import { neverNow, ServiceProcess } from './service-process.ts'

export interface FleetBenchOptions {
  readonly brokers: number
  /** How many of them are sick: the last ones. */
  readonly sick: number
  /** On each broker. */
  readonly registrations: number
  readonly latencyMs: number
  readonly ailments: readonly Ailment[]
  readonly rounds: number
  readonly print: (line: object) => void
}

export const AILMENTS = ['refused', 'silent', 'slow', 'unavailable', 'failing'] as const
export type Ailment = (typeof AILMENTS)[number]

const GOAL = 0.95
const PATIENCE_MS = 300_000
/** Of a broker that a portal file says nothing else of. */
const REQUEST_TIMEOUT_MS = 10_000
const SLOW_MS = 3_000

/** One answer in two is as it should be. */
const FAILING: readonly FaultRule[] = [
  { fault: 'http-503', rate: 0.15 },
  { fault: 'reset', rate: 0.15 },
  { fault: 'half-body', rate: 0.1 },
  { fault: 'junk-json', rate: 0.1 },
  { fault: 'timeout', rate: 0.1 },
]

/**
 * First apply on the healthy brokers of a fleet while the others are sick, against the same when the sick ones are not
 * there; one JSON line per ailment. The ratio is that of the registrations applied per second.
 */
export async function benchFleet(options: FleetBenchOptions): Promise<void> {
  const { brokers, sick, registrations, latencyMs, ailments, rounds, print } = options
  const opened = new Disposer()
  try {
    const sandbox = await SandboxProcess.start({ brokers })
    opened.defer(() => sandbox.stop())
    const cluster = await BenchCluster.start(opened)
    for (const ailment of ailments) {
      const alone: FirstApply[] = []
      const beside: Measurement[] = []
      for (let index = 0; index < rounds; index += 1) {
        alone.push(await measure({ sandbox, cluster, ailment: null }, options))
        beside.push(await measure({ sandbox, cluster, ailment }, options))
      }
      print({
        case: `fleet-${brokers - sick}-beside-${sick}-${ailment}`,
        ratio: round(median(beside.map((run, index) => run.perSecond / (alone[index]?.perSecond ?? Number.NaN)))),
        goal: GOAL,
        seconds: round(median(beside.map((run) => run.seconds))),
        aloneSeconds: round(median(alone.map((run) => run.seconds))),
        registrationsPerSecond: round(median(beside.map((run) => run.perSecond))),
        aloneRegistrationsPerSecond: round(median(alone.map((run) => run.perSecond))),
        sickFailures: median(beside.map((run) => run.sickFailures)),
        registrations: (brokers - sick) * registrations,
        latencyMs,
        rounds,
      })
    }
  } finally {
    await opened.dispose()
  }
}

interface Measurement extends FirstApply {
  /** Runs that failed on the sick brokers until then. */
  readonly sickFailures: number
}

interface Measured {
  readonly sandbox: SandboxProcess
  readonly cluster: BenchCluster
  /** Null: the sick brokers are not there at all. */
  readonly ailment: Ailment | null
}

/** By the service itself, whose poll finds what has to be done when it starts. */
async function measure(
  { sandbox, cluster, ailment }: Measured,
  { brokers, sick, registrations, latencyMs }: FleetBenchOptions,
): Promise<Measurement> {
  const opened = new Disposer()
  try {
    const healthy = brokers - sick
    await sandbox.control('clear', {})
    await sandbox.control('faults', [])
    await sandbox.control('latency', { latencyMs })
    const env = { ...(await cluster.create(opened)), KEYMESH_LOGINS: 'false' }
    const context = await openBenchContext(env, opened)
    const declared = ailment === null ? sandbox.brokers.slice(0, healthy) : sandbox.brokers
    if (ailment !== null) await Promise.all(sandbox.brokers.slice(healthy).map((each) => makeSick(each, ailment)))
    const file = meshCatalogue(declared, {
      registrations,
      broker: (broker, index) => (index < healthy ? broker : declaredSick(broker, ailment, index)),
    })
    await importCatalogue(context, file)
    const service = await ServiceProcess.start({
      ...env,
      KEYMESH_POLL_CRON: '* * * * * *',
      KEYMESH_SWEEP_CRON: neverNow(),
    })
    // Not told to stop: it would let its requests to silent brokers end first.
    opened.defer(() => service.kill())
    const ids = Array.from({ length: healthy }, (_, index) => benchBrokerId(index))
    const applied = await firstApply(context, ids, PATIENCE_MS)
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from runs
      where error_code is not null and not broker_id = any(${ids})`.execute(context.db)
    return { ...applied, sickFailures: rows[0]?.count ?? Number.NaN }
  } finally {
    await opened.dispose()
  }
}

async function makeSick(broker: SandboxedBroker, ailment: Ailment): Promise<void> {
  switch (ailment) {
    case 'refused':
      return
    case 'silent':
      return control(broker, 'faults', [{ fault: 'timeout' }])
    case 'slow':
      return control(broker, 'latency', { latencyMs: SLOW_MS })
    case 'unavailable':
      return control(broker, 'faults', [{ fault: 'http-503' }])
    case 'failing':
      return control(broker, 'faults', FAILING)
    default: {
      const unreachable: never = ailment
      return unreachable
    }
  }
}

function declaredSick(broker: PortalBroker, ailment: Ailment | null, index: number): PortalBroker {
  if (broker.management === null) return broker
  // The lowest ports are nobody's: connections to them are refused.
  const url = ailment === 'refused' ? `http://127.0.0.1:${index + 1}` : broker.management.url
  return { ...broker, management: { ...broker.management, url, requestTimeoutMs: REQUEST_TIMEOUT_MS } }
}
