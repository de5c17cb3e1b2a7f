import type { Enqueuer } from '../src/queue/enqueue.ts'
import type { JobProcessor, JobWorker, QueueBackend } from '../src/queue/job-queue.ts'
import { brokerQueue, CATALOGUE_QUEUE, REGISTRATIONS_QUEUE } from '../src/queue/queue-names.ts'
import type { JobServices } from './job-services.ts'
import { runJob } from './run-job.ts'

export interface StartWorkersOptions {
  readonly backend: QueueBackend
  readonly services: JobServices
  readonly enqueue: Enqueuer
  /** Jobs of one broker at a time in this process, at least 2: one slot may hold the broker's sweep. */
  readonly brokerConcurrency?: number
  /** Each process looks for brokers that came or went this often, whoever ran the poll. */
  readonly followEveryMs?: number
  readonly onError: (what: string, error: unknown) => void
}

export interface Workers {
  followBrokers(): Promise<void>
  /** Queues with a worker here. */
  queues(): readonly string[]
  /**
   * Takes no more jobs and waits for those that run, then aborts their signals; they go back to the queue. False when
   * one ignored that.
   */
  close(patienceMs: number): Promise<boolean>
}

const DEFAULT_BROKER_CONCURRENCY = 4
const REGISTRATIONS_CONCURRENCY = 4
/** A slow prune does not hold up the poll. */
const CATALOGUE_CONCURRENCY = 3
/** A broker that left the list gives its jobs this long. */
const REMOVED_PATIENCE_MS = 10_000

/** Workers for the two shared queues and one per usable broker, which follow the list of brokers until closed. */
export async function startWorkers(options: StartWorkersOptions): Promise<Workers> {
  const { backend, services, enqueue, onError } = options
  const concurrency = Math.max(2, options.brokerConcurrency ?? DEFAULT_BROKER_CONCURRENCY)
  const brokers = new Map<string, JobWorker>()
  const leaving = new Set<Promise<unknown>>()
  let closed = false
  let following: Promise<void> | undefined

  const processor: JobProcessor = (job) => runJob(job, { services, enqueue, followBrokers })
  const follow = async (): Promise<void> => {
    const usable = new Map((await services.usableBrokers()).map((broker) => [brokerQueue(broker), broker] as const))
    if (closed) return
    for (const [queue, worker] of brokers) {
      if (usable.has(queue)) continue
      brokers.delete(queue)
      const left = worker.close(REMOVED_PATIENCE_MS).finally(() => leaving.delete(left))
      leaving.add(left)
    }
    for (const [queue, { paused }] of usable) {
      await backend.queue(queue).setPaused(paused)
      if (!closed && !brokers.has(queue)) brokers.set(queue, backend.worker(queue, processor, { concurrency }))
    }
  }
  /** One at a time; a call while one runs shares it. */
  const followBrokers = (): Promise<void> => {
    following ??= follow().finally(() => {
      following = undefined
    })
    return following
  }

  await followBrokers()
  const shared = [
    backend.worker(CATALOGUE_QUEUE, processor, { concurrency: CATALOGUE_CONCURRENCY }),
    backend.worker(REGISTRATIONS_QUEUE, processor, { concurrency: REGISTRATIONS_CONCURRENCY }),
  ]
  const timer = setInterval(() => {
    followBrokers().catch((error: unknown) => onError('following the list of brokers', error))
  }, options.followEveryMs ?? 30_000)

  return {
    followBrokers,
    queues: () => [CATALOGUE_QUEUE, REGISTRATIONS_QUEUE, ...brokers.keys()],
    async close(patienceMs) {
      closed = true
      clearInterval(timer)
      await following?.catch(() => undefined)
      const clean = await Promise.all([...shared, ...brokers.values()].map((worker) => worker.close(patienceMs)))
      await Promise.all(leaving)
      return clean.every((each) => each)
    },
  }
}
