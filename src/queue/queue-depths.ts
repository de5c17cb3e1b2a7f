import type { JobCounts, QueueBackend } from './job-queue.ts'
import { type BrokerKey, brokerQueue } from './queue-names.ts'

const EMPTY: JobCounts = { waiting: 0, active: 0, delayed: 0, failed: 0 }

/** What the queues of these brokers, all of one account, hold; by broker id. */
export async function readQueueDepths(
  backend: Pick<QueueBackend, 'backlog'>,
  brokers: readonly BrokerKey[],
): Promise<ReadonlyMap<string, JobCounts>> {
  const found = new Map((await backend.backlog(brokers.map(brokerQueue))).map((each) => [each.queue, each]))
  return new Map(
    brokers.map((broker) => {
      const { waiting, active, delayed, failed } = found.get(brokerQueue(broker)) ?? EMPTY
      return [broker.brokerId, { waiting, active, delayed, failed }]
    }),
  )
}
