import type { Enqueuer } from '../src/queue/enqueue.ts'
import type { JobName, JobPayload } from '../src/queue/job-payloads.ts'
import type { JobOutcome, RunningJob } from '../src/queue/job-queue.ts'
import type { JobServices } from './job-services.ts'

export interface JobContext {
  readonly services: JobServices
  readonly enqueue: Enqueuer
  /** Makes the workers of this process follow the list of brokers. */
  readonly followBrokers: () => Promise<void>
  /** Sweeps of one tick are spread over this time. */
  readonly sweepSpreadMs: number
  readonly signal: AbortSignal
  readonly progress: RunningJob['progress']
}

export type JobHandler<Name extends JobName> = (payload: JobPayload<Name>, context: JobContext) => Promise<JobOutcome>

export const DONE: JobOutcome = { status: 'done' }
