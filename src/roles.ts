import { startWorkers } from '../jobs/start-workers.ts'
import type { Context } from './context.ts'
import { errorLine } from './domain/errors.ts'
import { startServer } from './http/server.ts'
import { createEnqueuer, type Enqueuer } from './queue/enqueue.ts'
import { ErrorRepeats } from './queue/error-repeats.ts'
import type { QueueBackend } from './queue/job-queue.ts'
import { openQueueBackend } from './queue/queue-backend.ts'
import { checkCron, tickIntervalMs } from './queue/schedule-ticks.ts'
import { createScheduler } from './queue/schedules.ts'
import { createJobServices } from './services.ts'
import { cryptoRandom } from './store/random-source.ts'
import { readLastTick, recordTick } from './store/schedule-ticks.ts'

type Stop = () => Promise<void>

/** One per process: every role and caller shares its connections. */
export interface OpenQueue {
  readonly backend: QueueBackend
  readonly enqueue: Enqueuer
}

export async function openQueue({ config, connectionString, log, now }: Context): Promise<OpenQueue> {
  const repeats = new ErrorRepeats()
  const backend = await openQueueBackend({
    connectionString,
    ...(config.redisUrl === null ? {} : { redisUrl: config.redisUrl }),
    // A job that nobody works on any more comes back when its registration's lease is over.
    stalledIntervalMs: config.leaseMs,
    observer: {
      onError: (queue, error) => {
        const line = errorLine(error)
        const untold = repeats.tell(line)
        if (untold !== null)
          log.warn({ event: 'queue.error', queue, error: line, repeated: untold }, 'The queue met an error')
      },
      onJobFailed: (failure) => log.warn({ event: 'job.failed', ...failure }, 'A job failed'),
    },
    now,
  })
  const onMissed = (what: string, error: unknown): void =>
    log.warn(
      { event: 'queue.missed', what, error: errorLine(error) },
      'A job was not added; the poll will find the work',
    )
  return { backend, enqueue: createEnqueuer({ backend, now, onMissed }) }
}

/** Answers where it listens, and how to stop it. */
export async function startApi(
  context: Context,
  { enqueue }: OpenQueue,
): Promise<{ readonly url: string; readonly stop: Stop }> {
  const { db, sealer, now, log, config, engine, passwords, userTokens } = context
  const server = await startServer(
    { db, sealer, now, log, config, enqueue, random: cryptoRandom, engine, passwords, userTokens },
    { host: config.host, port: config.port },
  )
  return { url: server.url, stop: () => server.close() }
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
