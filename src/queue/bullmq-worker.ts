import { DelayedError, type Job, RateLimitError, UnrecoverableError } from 'bullmq'
import { codeOf, errorLine, type Fate, fateOf, KeymeshError } from '../domain/errors.ts'
import type { BullEngine, BullProcessor, BullWorker } from './bullmq-engine.ts'
import type { BullmqQueue } from './bullmq-queue.ts'
import { backoffMs, type RetryPolicy } from './job-options.ts'
import type { JobProcessor, JobWorker, QueueObserver, RunningJob, WorkerOptions } from './job-queue.ts'
import { QueueWait, type WaitPolicy } from './queue-wait.ts'
import { settlesWithin } from './settles-within.ts'

const PROGRESS_EVERY_MS = 1_000
/** After its signal was aborted a job gets this long to hand itself back. */
const ABORT_PATIENCE_MS = 5_000
/** After a rest the first job has the queue to itself for so long, or until it is done. */
const FIRST_ALONE_MS = 2_000
/** A worker without a job says goodbye to its engine in far less. */
const IDLE_PATIENCE_MS = 2_000
/** A limit that is never met: without one the library does not look at pauses that `rateLimit` asked for. */
const NO_LIMIT = { max: 1_000_000_000, duration: 1_000 }

export interface WorkerDependencies {
  readonly engine: BullEngine
  readonly observer: QueueObserver
  readonly retry: RetryPolicy
  readonly wait: WaitPolicy
  readonly stalledIntervalMs: number
  readonly now: () => number
  readonly random: () => number
}

/** In the library's words. */
const LOCK_NOT_RENEWED = /^could not renew lock for job (.+)$/

/** Tried again at once, since somebody asked meanwhile. */
class AskedAgainError extends Error {}

export class BullmqWorker implements JobWorker {
  readonly queueName: string
  readonly #dependencies: WorkerDependencies
  readonly #queue: BullmqQueue
  readonly #process: JobProcessor
  readonly #worker: BullWorker
  readonly #wait: QueueWait
  readonly #stop = new AbortController()
  /** Ids of jobs whose processor runs. */
  readonly #running = new Set<string>()
  #concurrency: number
  /** While the broker is tried by one job alone. */
  #isAlone = false
  #closing: Promise<boolean> | undefined
  #restTimer: NodeJS.Timeout | undefined

  constructor(dependencies: WorkerDependencies, queue: BullmqQueue, process: JobProcessor, options: WorkerOptions) {
    this.#queue = queue
    this.queueName = queue.name
    this.#dependencies = dependencies
    this.#process = process
    this.#concurrency = options.concurrency
    this.#wait = new QueueWait(dependencies.wait)
    const { engine, observer, retry, random, stalledIntervalMs } = dependencies
    const run: BullProcessor = (job, token) => this.#run(job, token)
    this.#worker = engine.newWorker(queue.name, run, {
      concurrency: options.concurrency,
      limiter: options.maxJobsPerSecond === undefined ? NO_LIMIT : { max: options.maxJobsPerSecond, duration: 1_000 },
      settings: {
        backoffStrategy: (attempt, _type, error) =>
          error instanceof AskedAgainError ? 0 : backoffMs(attempt, retry, random()),
      },
      // Until an engine that went away is asked again.
      runRetryDelay: 2_000,
      stalledInterval: stalledIntervalMs,
      lockDuration: stalledIntervalMs,
      // A job whose process died runs again; only one that kills process after process is given up.
      maxStalledCount: 5,
      maximumRateLimitDelay: 5_000,
      drainDelay: 5,
      removeOnComplete: { count: 0 },
    })
    this.#worker.on('error', (error) => {
      if (!this.#isOver(error)) observer.onError(queue.name, error)
    })
  }

  setConcurrency(concurrency: number): void {
    this.#concurrency = concurrency
    if (!this.#isAlone) this.#take(concurrency)
  }

  close(patienceMs: number): Promise<boolean> {
    this.#closing ??= this.#close(patienceMs)
    return this.#closing
  }

  async #close(patienceMs: number): Promise<boolean> {
    const closed = this.#worker.close()
    clearTimeout(this.#restTimer)
    try {
      const idleMs = Math.min(patienceMs, IDLE_PATIENCE_MS)
      if (await settlesWithin(closed, idleMs)) return true
      // With nothing at work here it is the engine that is away, and who knows for how long.
      if (this.#running.size === 0) return true
      if (await settlesWithin(closed, patienceMs - idleMs)) return true
      this.#stop.abort(new Error('the process is stopping'))
      return await settlesWithin(closed, ABORT_PATIENCE_MS)
    } finally {
      this.#dependencies.engine.workerClosed()
    }
  }

  /** That the lock of a job could not be renewed says nothing when the job ended while it was tried. */
  #isOver({ message }: Error): boolean {
    const jobId = LOCK_NOT_RENEWED.exec(message)?.[1]
    return jobId !== undefined && !this.#running.has(jobId)
  }

  async #run(job: Job, token: string | undefined): Promise<void> {
    const running = this.#runningJob(job)
    this.#running.add(running.id)
    try {
      const outcome = await this.#process(running).finally(() => this.#running.delete(running.id))
      if (outcome.status === 'done') return this.#brokerTakesWork()
      await this.#handBack(job, token, outcome.afterMs)
    } catch (error) {
      if (error instanceof DelayedError) throw error
      // What a stop interrupted is not a failure: it goes on elsewhere or after the restart.
      if (this.#stop.signal.aborted) await this.#handBack(job, token, 0)
      await this.#fail(job, running, error)
    }
  }

  /** Always throws: the library's way to say that the job was moved. */
  async #handBack(job: Job, token: string | undefined, afterMs: number): Promise<never> {
    await job.moveToDelayed(this.#dependencies.now() + afterMs, token)
    throw new DelayedError()
  }

  async #fail(stored: Job, job: RunningJob, error: unknown): Promise<never> {
    const { observer } = this.#dependencies
    const fate: Fate = fateOf(error)
    const failure = { queueName: this.queueName, jobId: job.id, jobName: job.name, attempt: job.attempt }
    const message = errorLine(error)
    observer.onJobFailed({ ...failure, fate, code: codeOf(error), message })
    switch (fate) {
      case 'retry':
        // Only the cleaned line reaches the job's row, where a NUL would leave the job active.
        throw (await this.#askedAgain(stored)) ? new AskedAgainError(message) : new Error(message)
      case 'stop':
        this.#brokerTakesWork()
        throw new UnrecoverableError(message)
      case 'wait':
        await this.#holdQueue(error instanceof KeymeshError ? error.retryAfterMs : undefined)
        throw new RateLimitError()
      default:
        return fate satisfies never
    }
  }

  /** What cannot be found out does not stand in the way of the backoff. */
  async #askedAgain({ id, processedOn }: Job): Promise<boolean> {
    if (id === undefined || processedOn === undefined) return false
    return this.#queue.askedSince(id, processedOn).catch(() => false)
  }

  /** All replicas stop taking jobs for a while; here one goes first when the time is over. */
  async #holdQueue(knownMs: number | undefined): Promise<void> {
    const { now, random } = this.#dependencies
    const waitMs = knownMs ?? this.#wait.failed(now(), random())
    await this.#worker.rateLimit(waitMs)
    this.#isAlone = true
    this.#take(1)
    clearTimeout(this.#restTimer)
    // The others would only be sent back, one by one. A broker that is well again does not say so when its sweep begins.
    this.#restTimer = setTimeout(() => this.#takeAll(), waitMs + FIRST_ALONE_MS).unref()
  }

  #takeAll(): void {
    clearTimeout(this.#restTimer)
    this.#isAlone = false
    this.#take(this.#concurrency)
  }

  #take(concurrency: number): void {
    const isMore = concurrency > this.#worker.concurrency
    this.#worker.concurrency = concurrency
    if (!isMore || this.#running.size === 0) return
    const { observer } = this.#dependencies
    this.#lookForMore().catch((error: Error) => observer.onError(this.queueName, error))
  }

  /** A worker that is full looks at its concurrency again only when one of its jobs ends, or when it is resumed. */
  async #lookForMore(): Promise<void> {
    await this.#worker.pause(true)
    if (this.#closing === undefined) await this.#worker.resume()
  }

  #brokerTakesWork(): void {
    this.#wait.succeeded()
    this.#takeAll()
  }

  #runningJob(job: Job): RunningJob {
    const { now } = this.#dependencies
    let writtenAtMs = 0
    return {
      id: job.id ?? '',
      name: job.name,
      data: job.data,
      attempt: job.attemptsMade + 1,
      signal: this.#stop.signal,
      progress: (done, total) => {
        const last = total !== null && done >= total
        if (!last && now() - writtenAtMs < PROGRESS_EVERY_MS) return
        writtenAtMs = now()
        job.updateProgress({ done, total }).catch(() => undefined)
      },
    }
  }
}
