import type { JobName, JobPayload } from './job-payloads.ts'

/** The queue as the rest of the service sees it; no type of the queue library passes this file. */
export interface QueueBackend {
  readonly engine: QueueEngine
  /** The same object for the same name. */
  queue(name: string): JobQueue
  worker(name: string, processor: JobProcessor, options: WorkerOptions): JobWorker
  /** What these queues hold, in one statement where the engine allows; in any order, perhaps without those that are empty. */
  backlog(names: readonly string[]): Promise<readonly QueueBacklog[]>
  /** Connections that this backend may hold now: a base and one per worker. */
  maxConnections(): number
  /** Closes workers that are still open (waiting for their jobs), queues and connections. */
  close(): Promise<void>
}

export type QueueEngine = 'postgresql' | 'redis'

export type NewJob = { [Name in JobName]: NewJobOf<Name> }[JobName] & (Once | Deduplicated)

/**
 * A job has an id of its own or a deduplication id, never both: on PostgreSQL a second add of a finished job's id would
 * take the deduplication id for a job that does not run, and every later one would be dropped.
 */
interface Once {
  /** While a job of this id is kept, another add of it does nothing. No colon, not a plain number. */
  readonly id: string
  /** How long it is kept after it finished. */
  readonly keepSeconds: number
  readonly deduplication?: never
}

interface Deduplicated {
  readonly deduplication?: {
    /** At most one job of this id waits. */
    readonly id: string
    /** True: an add while one is active runs once more after it. False: it is dropped. */
    readonly trailingRun: boolean
  }
  readonly id?: never
  readonly keepSeconds?: never
}

interface NewJobOf<Name extends JobName> {
  readonly name: Name
  readonly payload: JobPayload<Name>
  /** Lower runs first, 0 before all. See `priorityOf`. */
  readonly priority?: number
  readonly delayMs?: number
  /** Somebody waits: a job of the same deduplication id that waits in delay, in backoff or behind others runs now. */
  readonly urgent?: boolean
}

export interface JobCounts {
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
}

export interface QueueBacklog extends JobCounts {
  readonly queue: string
  /** Since when the job that has waited longest could have run; null: none waits. */
  readonly waitingSinceMs: number | null
}

export interface JobQueue {
  readonly name: string
  add(jobs: readonly NewJob[]): Promise<void>
  /** Holds for all replicas; jobs that run go on. */
  setPaused(paused: boolean): Promise<void>
  counts(): Promise<JobCounts>
}

export interface RunningJob {
  readonly id: string
  readonly name: string
  /** As stored, not parsed. */
  readonly data: unknown
  /** 1 at the first attempt; waits and returns do not count. */
  readonly attempt: number
  /** Aborted when the process stops and its patience is over. */
  readonly signal: AbortSignal
  /** For a person who watches; at most one write per second, failures ignored. */
  readonly progress: (done: number, total: number | null) => void
}

export type JobOutcome =
  | { readonly status: 'done' }
  /** Not now: the job is tried again after the delay and loses no attempt. */
  | { readonly status: 'again'; readonly afterMs: number }

/**
 * Throws to fail. A KeymeshError's fate decides: `retry` backs the job off, `wait` holds the whole queue and the job keeps
 * its attempts, `stop` fails it for good. Jobs run at least once: a processor must be safe to run again.
 */
export type JobProcessor = (job: RunningJob) => Promise<JobOutcome>

export interface WorkerOptions {
  /** Jobs at a time in this process. */
  readonly concurrency: number
  /** At most this many jobs start per second over all replicas. */
  readonly maxJobsPerSecond?: number
}

export interface JobWorker {
  readonly queueName: string
  /** Changes the number of jobs at a time. */
  setConcurrency(concurrency: number): void
  /**
   * Takes no more jobs and waits for those that run. After `patienceMs` their signals are aborted and the jobs go back
   * to the queue. False when a job ignored even that; it runs again elsewhere once its lock has expired.
   */
  close(patienceMs: number): Promise<boolean>
}

/** What the queue reports to the log. Nothing in it is secret. */
export interface QueueObserver {
  /** A connection or the engine; it recovers by itself. */
  onError(queueName: string, error: Error): void
  onJobFailed(failure: JobFailure): void
}

export interface JobFailure {
  readonly queueName: string
  readonly jobId: string
  readonly jobName: string
  readonly attempt: number
  readonly fate: 'retry' | 'wait' | 'stop'
  readonly code: string
  readonly message: string
}
