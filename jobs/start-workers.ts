import type { Enqueuer } from '../src/queue/enqueue.ts'
import { isJobName, type JobName } from '../src/queue/job-payloads.ts'
import type { JobOutcome, JobProcessor, JobWorker, QueueBackend, RunningJob } from '../src/queue/job-queue.ts'
import { brokerQueue, CATALOGUE_QUEUE, NOTIFICATIONS_QUEUE, REGISTRATIONS_QUEUE } from '../src/queue/queue-names.ts'
import { settlesWithin } from '../src/queue/settles-within.ts'
import { DONE } from './job-handler.ts'
import type { JobServices } from './job-services.ts'
import { runJob } from './run-job.ts'

export interface StartWorkersOptions {
  readonly backend: QueueBackend
  readonly services: JobServices
  readonly enqueue: Enqueuer
  /** Jobs of one broker at a time in this process; fewer where it has many brokers, and never less than 3. */
  readonly brokerConcurrency?: number
  /** Sweeps of one tick are spread over this time, each broker at its own place. */
  readonly sweepSpreadMs?: number
  /** Each process looks for brokers that came or went this often, whoever ran the poll. */
  readonly followEveryMs?: number
  readonly onError: (what: string, error: unknown) => void
  /** Told of each attempt of a job; hands on what it comes to. */
  readonly observe?: ObserveJob
}

/** `name` is `unknown` for a job that this program does not know. */
export type ObserveJob = (
  job: Pick<RunningJob, 'id' | 'name' | 'data' | 'attempt'>,
  work: () => Promise<JobOutcome>,
) => Promise<JobOutcome>

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
/** A sweep may hold a place, and logins another. */
const LEAST_BROKER_CONCURRENCY = 3
/**
 * Jobs of all brokers at a time in one process. They share its connections to the store: with far more of them each would
 * hold its lease, and a place at its broker, for a long time in which it does nothing.
 */
const ALL_BROKERS_CONCURRENCY = 1024
const REGISTRATIONS_CONCURRENCY = 4
/** A slow prune does not hold up the poll. */
const CATALOGUE_CONCURRENCY = 3
/** Receivers that do not answer hold a place for seconds each. */
const NOTIFICATIONS_CONCURRENCY = 8
const DEFAULT_SWEEP_SPREAD_MS = 10 * 60_000
/** While one of these runs here, the next tick of it adds nothing: one that is slow must not take every slot. */
const SINGLE_JOBS: ReadonlySet<string> = new Set<JobName>([
  'poll-catalogue',
  'poll-registrations',
  'retire-expired',
  'prune-records',
  'poll-notifications',
])
const FOLLOW_PATIENCE_MS = 2_000
/** A broker that left the list gives its jobs this long. */
const REMOVED_PATIENCE_MS = 10_000

export const shareOfABroker = (most: number, brokers: number): number =>
  Math.max(LEAST_BROKER_CONCURRENCY, Math.min(most, Math.floor(ALL_BROKERS_CONCURRENCY / Math.max(1, brokers))))

/** Workers for the three shared queues and one per usable broker, which follow the list of brokers until closed. */
export async function startWorkers(options: StartWorkersOptions): Promise<Workers> {
  const { backend, services, enqueue, onError } = options
  const mostOfABroker = options.brokerConcurrency ?? DEFAULT_BROKER_CONCURRENCY
  const brokers = new Map<string, JobWorker>()
  const leaving = new Set<Promise<unknown>>()
  let closed = false
  let following: Promise<void> | undefined

  const sweepSpreadMs = options.sweepSpreadMs ?? DEFAULT_SWEEP_SPREAD_MS
  const ticking = new Set<string>()
  const observe: ObserveJob = options.observe ?? ((_job, work) => work())
  const processor: JobProcessor = (job) => {
    const { id, data, attempt } = job
    return observe({ id, data, attempt, name: isJobName(job.name) ? job.name : 'unknown' }, () => process(job))
  }
  const process: JobProcessor = async (job) => {
    const context = { services, enqueue, followBrokers, sweepSpreadMs }
    if (!SINGLE_JOBS.has(job.name)) return runJob(job, context)
    if (ticking.has(job.name)) return DONE
    ticking.add(job.name)
    return runJob(job, context).finally(() => ticking.delete(job.name))
  }
  const follow = async (): Promise<void> => {
    const usable = new Map((await services.usableBrokers()).map((broker) => [brokerQueue(broker), broker] as const))
    if (closed) return
    for (const [queue, worker] of brokers) {
      if (usable.has(queue)) continue
      brokers.delete(queue)
      const left = worker.close(REMOVED_PATIENCE_MS).finally(() => leaving.delete(left))
      leaving.add(left)
    }
    const concurrency = shareOfABroker(mostOfABroker, usable.size)
    for (const worker of brokers.values()) worker.setConcurrency(concurrency)
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
    backend.worker(NOTIFICATIONS_QUEUE, processor, { concurrency: NOTIFICATIONS_CONCURRENCY }),
  ]
  const timer = setInterval(() => {
    followBrokers().catch((error: unknown) => onError('following the list of brokers', error))
  }, options.followEveryMs ?? 30_000)

  return {
    followBrokers,
    queues: () => [CATALOGUE_QUEUE, REGISTRATIONS_QUEUE, NOTIFICATIONS_QUEUE, ...brokers.keys()],
    async close(patienceMs) {
      closed = true
      clearInterval(timer)
      // It makes no worker any more; a database that is silent is not waited for.
      if (following !== undefined) await settlesWithin(following, FOLLOW_PATIENCE_MS).catch(() => undefined)
      const clean = await Promise.all([...shared, ...brokers.values()].map((worker) => worker.close(patienceMs)))
      await Promise.all(leaving)
      return clean.every((each) => each)
    },
  }
}
