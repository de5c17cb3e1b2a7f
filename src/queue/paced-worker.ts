import { type IQueueBackend, type Job, type JobProgress, Worker } from 'bullmq'

const PACE_MS = 1_000

/**
 * The library asks for the next job again at once when the engine refused the last question, as one does whose disk is
 * full, which is starting, or which takes no writes: many times a second, each with an error. This one takes its time.
 */
export class PacedWorker<Backend extends IQueueBackend, Connection> extends Worker<
  unknown,
  unknown,
  string,
  Backend,
  JobProgress,
  Connection
> {
  protected override async moveToActive(
    token: string,
    name?: string,
  ): Promise<Job<unknown, unknown, string, JobProgress>> {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      await new Promise((resolve) => setTimeout(resolve, PACE_MS))
      throw error
    }
  }
}
