import type { BullEngine, BullQueue } from './bullmq-engine.ts'
import { BullmqQueue } from './bullmq-queue.ts'
import { BullmqWorker, type WorkerDependencies } from './bullmq-worker.ts'
import { ClockWatch } from './clock-watch.ts'
import { DEFAULT_RETRY, type RetryPolicy } from './job-options.ts'
import type { JobFailure, JobWorker, QueueBackend, QueueObserver } from './job-queue.ts'
import { openPostgresEngine } from './postgres-engine.ts'
import { DEFAULT_WAIT, type WaitPolicy } from './queue-wait.ts'
import { openRedisEngine } from './redis-engine.ts'
import { settlesWithin } from './settles-within.ts'

export interface QueueBackendOptions {
  /** The service's database, over TCP. Used when no `redisUrl` is given. */
  readonly connectionString: string
  readonly redisUrl?: string
  /** On Redis: the beginning of every key. */
  readonly prefix?: string
  /** On PostgreSQL: connections for queries, beside one per worker. */
  readonly baseConnections?: number
  readonly observer: QueueObserver
  readonly retry?: RetryPolicy
  readonly wait?: WaitPolicy
  /** After this a job whose process died is run again. */
  readonly stalledIntervalMs?: number
  readonly now?: () => number
  readonly random?: () => number
}

const CLOSE_PATIENCE_MS = 10_000
const ENGINE_PATIENCE_MS = 5_000
const LOOK_AT_CLOCK_EVERY_MS = 1_000

/**
 * BullMQ on PostgreSQL, or on Redis or Valkey when `redisUrl` is given. Only what works on both is used: no queue events,
 * no global concurrency (on PostgreSQL the former loses events and the latter spins).
 */
export async function openQueueBackend(options: QueueBackendOptions): Promise<QueueBackend> {
  const observer = new UntilGoodbye(options.observer)
  const onError = (error: Error): void => observer.onError('*', error)
  const { redisUrl, prefix = 'keymesh', connectionString, baseConnections = 8 } = options
  const engine =
    redisUrl === undefined
      ? await openPostgresEngine({ connectionString, baseConnections, onError })
      : await openRedisEngine({ redisUrl, prefix, onError })
  return backendOn(engine, {
    engine,
    observer,
    retry: options.retry ?? DEFAULT_RETRY,
    wait: options.wait ?? DEFAULT_WAIT,
    stalledIntervalMs: options.stalledIntervalMs ?? 30_000,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
  })
}

/** A connection that is being given back may still be told that its server stops, and that is nobody's trouble. */
class UntilGoodbye implements QueueObserver {
  goodbye = false
  readonly #observer: QueueObserver

  constructor(observer: QueueObserver) {
    this.#observer = observer
  }

  onError(queueName: string, error: Error): void {
    if (!this.goodbye) this.#observer.onError(queueName, error)
  }

  onJobFailed(failure: JobFailure): void {
    this.#observer.onJobFailed(failure)
  }
}

interface BackendDependencies extends WorkerDependencies {
  readonly observer: UntilGoodbye
}

function backendOn(engine: BullEngine, dependencies: BackendDependencies): QueueBackend {
  const opened = new Map<string, { readonly bull: BullQueue; readonly queue: BullmqQueue }>()
  const workers = new Set<JobWorker>()
  let closing: Promise<void> | undefined
  const clock = new ClockWatch(dependencies.now)
  const timer = setInterval(() => {
    // What is delayed, and queues that are held, wait for a time of the old clock: they go on a little early instead.
    if (clock.movedMs() < 0) for (const { bull } of opened.values()) void hurry(bull, dependencies)
  }, LOOK_AT_CLOCK_EVERY_MS)
  const close = async (): Promise<void> => {
    clearInterval(timer)
    await Promise.all([...workers].map((worker) => worker.close(CLOSE_PATIENCE_MS)))
    dependencies.observer.goodbye = true
    // An engine that is away says no goodbye, and is not waited for.
    const closed = Promise.all([...opened.values()].map(({ bull }) => bull.close())).then(() => engine.close())
    if (!(await settlesWithin(closed, ENGINE_PATIENCE_MS))) engine.abandon()
  }
  const open = (name: string): { readonly bull: BullQueue; readonly queue: BullmqQueue } => {
    const known = opened.get(name)
    if (known !== undefined) return known
    const bull = engine.newQueue(name)
    bull.on('error', (error) => dependencies.observer.onError(name, error))
    const made = new BullmqQueue(bull, dependencies.retry.attempts, dependencies.now)
    const both = { bull, queue: made }
    opened.set(name, both)
    return both
  }
  const queue = (name: string): BullmqQueue => open(name).queue
  return {
    engine: engine.engine,
    queue,
    backlog: (names) =>
      engine.backlog(
        names.map((name) => open(name).bull),
        dependencies.now(),
      ),
    worker(name, processor, options) {
      const worker = new BullmqWorker(dependencies, queue(name), processor, options)
      const handle: JobWorker = {
        queueName: name,
        setConcurrency: (concurrency) => worker.setConcurrency(concurrency),
        async close(patienceMs) {
          workers.delete(handle)
          return worker.close(patienceMs)
        },
      }
      workers.add(handle)
      return handle
    },
    maxConnections: () => engine.maxConnections(),
    close() {
      closing ??= close()
      return closing
    },
  }
}

async function hurry(bull: BullQueue, { observer }: WorkerDependencies): Promise<void> {
  try {
    await bull.removeRateLimitKey()
    await bull.promoteJobs()
  } catch (error) {
    observer.onError(bull.name, error instanceof Error ? error : new Error(String(error)))
  }
}
