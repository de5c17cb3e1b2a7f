import { randomUUID } from 'node:crypto'
import type { JobsOptions } from 'bullmq'
import type { BullQueue } from './bullmq-engine.ts'
import { KEEP_FAILED } from './job-options.ts'
import { parsePayload } from './job-payloads.ts'
import type { JobCounts, JobQueue, NewJob } from './job-queue.ts'

/** Of one add; more go in several. */
const CHUNK = 500
/** Names are short; what is longer is not one. */
const MAX_PAYLOAD_BYTES = 4_096

export class BullmqQueue implements JobQueue {
  readonly name: string
  readonly #queue: BullQueue
  readonly #attempts: number
  readonly #now: () => number

  constructor(queue: BullQueue, attempts: number, now: () => number) {
    this.name = queue.name
    this.#queue = queue
    this.#attempts = attempts
    this.#now = now
  }

  async add(jobs: readonly NewJob[]): Promise<void> {
    for (let start = 0; start < jobs.length; start += CHUNK) await this.#addChunk(jobs.slice(start, start + CHUNK))
  }

  async #addChunk(jobs: readonly NewJob[]): Promise<void> {
    const entries = jobs.map((job) => ({ job, id: job.id ?? `j-${randomUUID()}` }))
    const added = await this.#queue.addBulk(
      entries.map(({ job, id }) => ({
        name: job.name,
        data: parsePayload(job.name, job.payload),
        opts: this.#options(job, id),
      })),
    )
    for (const [index, { job, id }] of entries.entries()) {
      const standing = added[index]?.id
      if (job.urgent === true && standing !== undefined && standing !== id) await this.#hasten(standing, job)
    }
  }

  /**
   * The job that stands for the urgent one takes its place in the line, unless it already has a better one. One that runs
   * is told, so that it does not back off if it fails: what it did not see yet may be the remedy.
   */
  async #hasten(id: string, { priority = 0 }: NewJob): Promise<void> {
    const job = await this.#queue.getJob(id)
    if (job === undefined) return
    try {
      if (job.priority > priority) await job.changePriority({ priority })
      if ((await job.getState()) !== 'active') return
      await job.updateData({ ...job.data, askedAtMs: this.#now() })
      // It went into its backoff without having seen that.
      if ((await job.getState()) === 'delayed') await job.promote()
    } catch (error) {
      // It may have finished in between; the trailing run follows.
      if ((await this.#queue.getJob(id)) !== undefined) throw error
    }
  }

  /** True when somebody asked for this job again after that time. */
  async askedSince(id: string, sinceMs: number): Promise<boolean> {
    const askedAtMs: unknown = (await this.#queue.getJob(id))?.data.askedAtMs
    return typeof askedAtMs === 'number' && askedAtMs >= sinceMs
  }

  #options(job: NewJob, id: string): JobsOptions {
    const { deduplication, priority, delayMs, urgent, keepSeconds } = job
    return {
      jobId: id,
      attempts: this.#attempts,
      backoff: { type: 'custom' },
      // Without an id to remember a finished job is gone at once; it must not push out those that are kept.
      removeOnComplete: keepSeconds === undefined ? true : { age: keepSeconds },
      removeOnFail: keepSeconds === undefined ? KEEP_FAILED : { age: Math.max(keepSeconds, KEEP_FAILED.age) },
      // A stack repeats the message uncleaned.
      stackTraceLimit: 0,
      keepLogs: 0,
      sizeLimit: MAX_PAYLOAD_BYTES,
      ...(priority === undefined ? {} : { priority }),
      ...(delayMs === undefined || delayMs <= 0 ? {} : { delay: Math.round(delayMs) }),
      ...(deduplication === undefined
        ? {}
        : {
            deduplication: {
              id: deduplication.id,
              keepLastIfActive: deduplication.trailingRun,
              // With no delay of its own the urgent one ends the delay of the job that stands for it.
              ...(urgent === true ? { reschedule: true } : {}),
            },
          }),
    }
  }

  async setPaused(paused: boolean): Promise<void> {
    if ((await this.#queue.isPaused()) === paused) return
    await (paused ? this.#queue.pause() : this.#queue.resume())
  }

  async counts(): Promise<JobCounts> {
    const counts = await this.#queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed')
    return {
      waiting: (counts.waiting ?? 0) + (counts.prioritized ?? 0),
      active: counts.active ?? 0,
      delayed: counts.delayed ?? 0,
      failed: counts.failed ?? 0,
    }
  }
}
