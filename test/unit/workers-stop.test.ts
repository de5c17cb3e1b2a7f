import { expect, it } from 'vitest'
import type { JobServices } from '../../jobs/job-services.ts'
import { shareOfABroker, startWorkers } from '../../jobs/start-workers.ts'
import type { QueueBackend } from '../../src/queue/job-queue.ts'

it('workers end when they are told, though the store does not answer who the brokers are', async () => {
  const closed: string[] = []
  const backend: Pick<QueueBackend, 'worker'> = {
    worker: (queueName) => ({
      queueName,
      setConcurrency: () => undefined,
      close: async () => {
        closed.push(queueName)
        return true
      },
    }),
  }
  let asked = 0
  const services: Pick<JobServices, 'usableBrokers'> = {
    usableBrokers: () => {
      asked += 1
      return asked === 1 ? Promise.resolve([]) : new Promise(() => undefined)
    },
  }
  const workers = await startWorkers({
    backend: backend as QueueBackend,
    services: services as JobServices,
    enqueue: {
      registration: async () => true,
      pairs: async () => true,
      sweep: async () => true,
      verify: async () => true,
      notifications: async () => true,
    },
    followEveryMs: 60_000,
    onError: (what, error) => expect.fail(`${what}: ${String(error)}`),
  })
  void workers.followBrokers()
  expect(await workers.close(1_000)).toBe(true)
  expect(closed).toEqual(['catalogue', 'registrations', 'notifications'])
})

it.each<readonly [what: string, most: number, brokers: number, share: number]>([
  ['one broker has all that it may have', 64, 1, 64],
  ['a few brokers have all that they may have', 64, 4, 64],
  ['many brokers share what a process does', 64, 20, 51],
  ['no broker has less than its sweep, its logins and one more', 64, 5000, 3],
  ['none is as good as one', 64, 0, 64],
  ['a low setting leaves room for the sweep', 1, 1, 3],
])('%s', (_what, most, brokers, share) => {
  expect(shareOfABroker(most, brokers)).toBe(share)
})
