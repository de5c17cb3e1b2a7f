import { startWorkers } from '../jobs/start-workers.ts'
import type { Context } from './context.ts'
import { errorLine } from './domain/errors.ts'
import type { HttpDependencies, QueueDepths } from './http/dependencies.ts'
import { startServer } from './http/server.ts'
import type { Observer } from './observability/observer.ts'
import { queueGauges, sharedReading, storeGauges } from './observability/stored-metrics.ts'
import { createEnqueuer, type Enqueuer } from './queue/enqueue.ts'
import { ErrorRepeats } from './queue/error-repeats.ts'
import type { QueueBackend } from './queue/job-queue.ts'
import { openQueueBackend } from './queue/queue-backend.ts'
import { readQueueDepths } from './queue/queue-depths.ts'
import { brokerQueue, CATALOGUE_QUEUE, NOTIFICATIONS_QUEUE, REGISTRATIONS_QUEUE } from './queue/queue-names.ts'
import { checkCron, tickIntervalMs } from './queue/schedule-ticks.ts'
import { createScheduler } from './queue/schedules.ts'
import { createJobServices } from './services.ts'
import { listManagedBrokers } from './store/broker-settings.ts'
import { readMetricsView } from './store/metrics-view.ts'
import { cryptoRandom } from './store/random-source.ts'
import { readLastTick, recordTick } from './store/schedule-ticks.ts'
import { VERSION } from './version.ts'

type Stop = () => Promise<void>

/** One per process: every role and caller shares its connections. */
export interface OpenQueue {
  readonly backend: QueueBackend
  readonly enqueue: Enqueuer
}

export async function openQueue(context: Context): Promise<OpenQueue> {
  const { config, connectionString, log, now, observer, tracing } = context
  const repeats = new ErrorRepeats()
  const backend = await openQueueBackend({
    connectionString,
    ...(config.redisUrl === null ? {} : { redisUrl: config.redisUrl }),
    // A job that nobody works on any more comes back when its registration's lease is over.
    stalledIntervalMs: config.leaseMs,
    observer: {
      onError: (queue, error) => {
        observer.queueError()
        const line = errorLine(error)
        const untold = repeats.tell(line)
        if (untold !== null)
          log.warn({ event: 'queue.error', queue, error: line, repeated: untold }, 'The queue met an error')
      },
      onJobFailed: (failure) => log.warn({ event: 'job.failed', ...failure }, 'A job failed'),
    },
    now,
  })
  const onMissed = (what: string, error: unknown): void => {
    observer.jobsMissed()
    log.warn(
      { event: 'queue.missed', what, error: errorLine(error) },
      'A job was not added; the poll will find the work',
    )
  }
  const enqueue = createEnqueuer({ backend, now, onMissed, trace: () => tracing.traceparent() })
  readForMetrics(context, backend)
  return { backend, enqueue: inSpans(enqueue, observer) }
}

function inSpans(enqueue: Enqueuer, observer: Observer): Enqueuer {
  return {
    registration: (...of) => observer.enqueuing('reconcile-registration', () => enqueue.registration(...of)),
    pairs: (...of) => observer.enqueuing('reconcile-pair', () => enqueue.pairs(...of)),
    sweep: (...of) => observer.enqueuing('sweep-broker', () => enqueue.sweep(...of)),
    verify: (...of) => observer.enqueuing('verify-broker', () => enqueue.verify(...of)),
    notifications: (...of) => observer.enqueuing('deliver-notifications', () => enqueue.notifications(...of)),
  }
}

/** Scrapes that come together, or one after another, cost one reading. */
const METRICS_FRESH_MS = 5_000
const METRICS_PATIENCE_MS = 4_000
const METRICS_STATEMENT_MS = 10_000

/** What this process does not count itself is read when it is asked for. */
function readForMetrics({ db, metrics, now }: Context, backend: QueueBackend): void {
  const limits = { freshMs: METRICS_FRESH_MS, patienceMs: METRICS_PATIENCE_MS }
  const readStore = sharedReading({ ...limits, read: () => readMetricsView(db, METRICS_STATEMENT_MS) })
  metrics.read('store', storeGauges(metrics, readStore))
  const readQueues = async () => {
    const brokers = (await listManagedBrokers(db)).map((broker) => ({
      name: brokerQueue(broker),
      label: 'broker' as const,
      account: broker.accountId,
      broker: broker.brokerId,
    }))
    const shared = SHARED_QUEUES.map((name) => ({ name, label: name, account: '', broker: '' }))
    const queues = [...shared, ...brokers]
    return { queues, backlog: await backend.backlog(queues.map(({ name }) => name)) }
  }
  metrics.read('queue', queueGauges(metrics, sharedReading({ ...limits, read: readQueues }), now))
}

const SHARED_QUEUES = [CATALOGUE_QUEUE, REGISTRATIONS_QUEUE, NOTIFICATIONS_QUEUE] as const

/** Answers where it listens, and how to stop it. */
export async function startApi(
  context: Context,
  queue: OpenQueue,
): Promise<{ readonly url: string; readonly stop: Stop }> {
  const { config } = context
  const server = await startServer(httpDependencies(context, queue), { host: config.host, port: config.port })
  return { url: server.url, stop: () => server.close() }
}

/** For a process that serves: which version it is, and how it is. */
export function watchProcess({ metrics, config }: Context): void {
  metrics.set('keymesh_build_info', { version: VERSION, roles: config.roles.join(',') }, 1)
  metrics.watchProcess()
}

/** Health and metrics on a port of their own, whatever the roles of the process. */
export async function startHealth(
  context: Context,
  queue: OpenQueue,
  port: number,
): Promise<{ readonly url: string; readonly stop: Stop }> {
  const options = { host: context.config.host, port, surface: 'health' } as const
  const server = await startServer(httpDependencies(context, queue), options)
  return { url: server.url, stop: () => server.close() }
}

function httpDependencies(context: Context, { backend, enqueue }: OpenQueue): HttpDependencies {
  const { db, sealer, now, log, config, engine, passwords, userTokens, metrics, observer } = context
  const known = { db, sealer, now, log, config, enqueue, engine, passwords, userTokens, metrics }
  const queueDepths: QueueDepths = (brokers) => readQueueDepths(backend, brokers)
  return { ...known, random: cryptoRandom, observe: observer.request, queueDepths }
}

const PATIENCE_MS = 20_000
/** How long a broker that was just declared waits for its worker. */
const FOLLOW_BROKERS_EVERY_MS = 5_000
const SWEEP_SPREAD_MS = 10 * 60_000

export async function startWorkerRole(context: Context, { backend, enqueue }: OpenQueue): Promise<Stop> {
  const { log, config, now } = context
  checkCron('sweep-brokers', config.sweepCron)
  // Sweeps of one tick are over before the next: those that still wait for their place would swallow it.
  const intervalMs = tickIntervalMs(config.sweepCron, now()) ?? Number.POSITIVE_INFINITY
  const workers = await startWorkers({
    backend,
    enqueue,
    services: createJobServices(context),
    brokerConcurrency: config.concurrency,
    sweepSpreadMs: Math.min(SWEEP_SPREAD_MS, intervalMs / 2),
    followEveryMs: FOLLOW_BROKERS_EVERY_MS,
    observe: context.observer.job,
    onError: (what, error) =>
      log.error({ event: 'worker.error', what, error: errorLine(error) }, 'The worker met an error'),
  })
  return async () => {
    if (!(await workers.close(PATIENCE_MS))) log.warn({ event: 'worker.impatient' }, 'Jobs were left to be run again')
  }
}

export async function startScheduler(context: Context, { backend }: OpenQueue): Promise<Stop> {
  const { config, db, log, now } = context
  const scheduler = createScheduler({
    backend,
    ticks: {
      lastTick: (schedule) => readLastTick(db, schedule),
      recordTick: (schedule, tickMs) => recordTick(db, schedule, tickMs),
    },
    expressions: {
      'poll-catalogue': config.remotePollCron,
      'poll-registrations': config.pollCron,
      'sweep-brokers': config.sweepCron,
    },
    now,
    onError: (schedule, error) =>
      log.error({ event: 'schedule.error', schedule, error: errorLine(error) }, 'A schedule could not fire'),
  })
  await scheduler.start()
  return () => scheduler.stop()
}
