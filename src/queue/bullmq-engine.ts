import type { Job, Queue, Worker, WorkerOptions } from 'bullmq'
import type { QueueBacklog, QueueEngine } from './job-queue.ts'

/** What we use of the queue library, the same on both engines. */
export type BullQueue = Pick<
  Queue,
  | 'name'
  | 'addBulk'
  | 'getJob'
  | 'getJobCounts'
  | 'getJobs'
  | 'pause'
  | 'resume'
  | 'isPaused'
  | 'promoteJobs'
  | 'removeRateLimitKey'
  | 'close'
> & { on(event: 'error', listener: (error: Error) => void): unknown }

export type BullWorker = Pick<Worker, 'name' | 'concurrency' | 'pause' | 'resume' | 'close' | 'rateLimit'> & {
  on(event: 'error', listener: (error: Error) => void): unknown
}

export type BullProcessor = (job: Job, token?: string) => Promise<unknown>
export type BullWorkerOptions = Omit<WorkerOptions, 'connection' | 'prefix'>

/** One of the two engines: makes queues and workers on its own connections. */
export interface BullEngine {
  readonly engine: QueueEngine
  newQueue(name: string): BullQueue
  newWorker(name: string, processor: BullProcessor, options: BullWorkerOptions): BullWorker
  /** In any order, and without queues that hold nothing, perhaps. `nowMs` tells what is delayed from what waits. */
  backlog(queues: readonly BullQueue[], nowMs: number): Promise<readonly QueueBacklog[]>
  /** A worker was closed: its connection may go. */
  workerClosed(): void
  maxConnections(): number
  close(): Promise<void>
  /** After a `close` that does not end: lets go of what can be let go of. */
  abandon(): void
}

/** Events are not used; the engines keep a few for tools that look at the queue. */
export const EVENTS = { events: { maxLen: 200 } } as const
