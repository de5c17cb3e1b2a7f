import { cpus } from 'node:os'
import type { Context } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import type { PortalBroker } from '../../src/domain/portal-file.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import { allDone } from '../../src/reconcile/concurrently.ts'
import { type OpenQueue, openQueue } from '../../src/roles.ts'
import { laggingPairs } from '../../src/store/pairs.ts'
import { pause, resume } from '../../src/store/pause.ts'
import { BenchCluster } from './bench-cluster.ts'
import { importCatalogue, openBenchContext } from './bench-context.ts'
import { median, round } from './figures.ts'
import { type FirstApply, firstApply } from './first-apply.ts'
import { meshCatalogue } from './fixture.ts'
import { SandboxProcess } from './sandbox-process.ts'
import { ServiceProcess } from './service-process.ts'

export interface ScaleOutBenchOptions {
  /** Processes, each count of them measured; the first is what the others are compared with. */
  readonly workers: readonly number[]
  readonly brokers: number
  /** On each broker. */
  readonly registrations: number
  readonly latencyMs: number
  /** Registrations reconciled side by side on one broker by one process; the service's own when null. */
  readonly concurrency: number | null
  readonly rounds: number
  readonly print: (line: object) => void
}

const GOAL = 0.9
const PATIENCE_MS = 600_000
const ENQUEUED_TOGETHER = 25
/** Above it, more workers would need more cores: what is measured then is the machine. */
const BUSY_SHARE = 0.9

interface Measurement extends FirstApply {
  /** Of all cores, over all processes of the machine. */
  readonly busyShare: number
}

/**
 * First apply by one worker process and by several, on one database and queue; one JSON line per count. The ratio is the
 * speed-up to one process, divided by the count: 1 is linear.
 */
export async function benchScaleOut(options: ScaleOutBenchOptions): Promise<void> {
  const { workers, rounds, brokers, registrations, latencyMs, print } = options
  const opened = new Disposer()
  try {
    const sandboxes = await startSandboxes(brokers, Math.max(...workers), opened)
    const cluster = await BenchCluster.start(opened)
    const runs = new Map<number, Measurement[]>(workers.map((count) => [count, []]))
    for (let index = 0; index < rounds; index += 1) {
      for (const count of workers) runs.get(count)?.push(await measure({ sandboxes, cluster, count }, options))
    }
    const [first = 1] = workers
    const base = runs.get(first) ?? []
    for (const [count, measured] of runs) {
      const speedUps = measured.map((run, index) => run.perSecond / (base[index]?.perSecond ?? Number.NaN))
      const busyShare = median(measured.map((run) => run.busyShare))
      print({
        case: `scale-out-${count}-workers-${brokers}x${registrations}-at-${latencyMs}ms`,
        ratio: round((median(speedUps) * first) / count),
        goal: GOAL,
        speedUp: round(median(speedUps)),
        seconds: round(median(measured.map((run) => run.seconds))),
        registrationsPerSecond: round(median(measured.map((run) => run.perSecond))),
        cores: cpus().length,
        busyShare: round(busyShare),
        boundBy: busyShare >= BUSY_SHARE ? 'the cores of this machine' : 'the workers',
        rounds,
      })
    }
  } finally {
    await opened.dispose()
  }
}

/** In several processes, so that theirs is not the one core that bounds the workers. */
async function startSandboxes(brokers: number, atMost: number, opened: Disposer) {
  const processes = Math.min(brokers, atMost)
  const sandboxes: SandboxProcess[] = []
  for (let index = 0; index < processes; index += 1) {
    const sandbox = await SandboxProcess.start({ brokers: Math.floor((brokers + index) / processes) })
    opened.defer(() => sandbox.stop())
    sandboxes.push(sandbox)
  }
  return sandboxes
}

interface Measured {
  readonly sandboxes: readonly SandboxProcess[]
  readonly cluster: BenchCluster
  readonly count: number
}

async function measure(
  { sandboxes, cluster, count }: Measured,
  { registrations, latencyMs, concurrency }: ScaleOutBenchOptions,
): Promise<Measurement> {
  const opened = new Disposer()
  try {
    for (const sandbox of sandboxes) {
      await sandbox.control('clear', {})
      await sandbox.control('latency', { latencyMs })
    }
    const env = { ...(await cluster.create(opened)), KEYMESH_LOGINS: 'false' }
    const context = await openBenchContext(env, opened)
    const file = meshCatalogue(
      sandboxes.flatMap(({ brokers }) => brokers),
      { registrations },
    )
    await importCatalogue(context, file)
    const queue = await openQueue(context)
    opened.defer(() => queue.backend.close())
    // All work is there, and all workers, before the first begins.
    const account = { accountId: context.accountId, registrationId: null }
    const pairs = await laggingPairs(context.db, registrations * file.brokers.length)
    await pause(context.db, account, 'bench')
    await startWorkers(count, { ...env, ...(concurrency && { KEYMESH_CONCURRENCY: String(concurrency) }) }, opened)
    for (let start = 0; start < pairs.length; start += ENQUEUED_TOGETHER) {
      const queued = await queue.enqueue.pairs(pairs.slice(start, start + ENQUEUED_TOGETHER), 'on-demand')
      if (!queued) throw new Error('the queue did not take the jobs in time')
    }
    await resume(context.db, account)
    const before = cpuTimes()
    await letGo(context, queue, file.brokers)
    const applied = await firstApply(
      context,
      file.brokers.map(({ id }) => id),
      PATIENCE_MS,
    )
    return { ...applied, busyShare: busyShareSince(before) }
  } finally {
    await opened.dispose()
  }
}

/** No scheduler and no API: nothing else is done. */
async function startWorkers(count: number, env: Readonly<Record<string, string>>, opened: Disposer): Promise<void> {
  const start = async (): Promise<void> => {
    const worker = await ServiceProcess.start({ ...env, KEYMESH_ROLES: 'worker' })
    opened.defer(() => worker.kill())
  }
  await allDone(Array.from({ length: count }, start))
}

async function letGo({ accountId }: Context, { backend }: OpenQueue, brokers: readonly PortalBroker[]) {
  await allDone(brokers.map(({ id }) => backend.queue(brokerQueue({ accountId, brokerId: id })).setPaused(false)))
}

interface CpuTimes {
  readonly busyMs: number
  readonly allMs: number
}

function cpuTimes(): CpuTimes {
  let [busyMs, allMs] = [0, 0]
  for (const { times } of cpus()) {
    const { user, nice, sys, irq, idle } = times
    busyMs += user + nice + sys + irq
    allMs += user + nice + sys + irq + idle
  }
  return { busyMs, allMs }
}

function busyShareSince(before: CpuTimes): number {
  const now = cpuTimes()
  return (now.busyMs - before.busyMs) / (now.allMs - before.allMs)
}
