import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startWorkers } from '../../jobs/start-workers.ts'
import { Disposer } from '../../src/disposer.ts'
import { NOTIFICATION_KINDS } from '../../src/domain/notifications.ts'
import { Secret } from '../../src/domain/secret.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import type { QueueBackend } from '../../src/queue/job-queue.ts'
import { createScheduler, DEFAULT_SCHEDULES, type ScheduleName } from '../../src/queue/schedules.ts'
import { createJobServices } from '../../src/services.ts'
import { listDeliveries } from '../../src/store/notification-deliveries.ts'
import { createEndpoint } from '../../src/store/notification-endpoints.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { isSignedBy, type NotificationReceiver, startReceiver } from '../helpers/notification-receiver.ts'
import { engineCases, type TestEngine } from '../helpers/queue-engines.ts'
import { until } from '../helpers/service.ts'
import { client, ordersPortal } from './reconcile-fixtures.ts'

const NEVER = '0 0 1 1 *'
const EVERY_SECOND = '* * * * * *'

let mesh: TestMesh
let receiver: NotificationReceiver
let signingSecret: string
beforeAll(async () => {
  mesh = await withMesh({
    portal: (brokers) => ordersPortal(brokers, [client('app-a')]),
    env: { KEYMESH_NOTIFICATION_HTTP: 'true', KEYMESH_NOTIFICATION_NETWORKS: 'loopback' },
  })
  await mesh.sweep()
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver?.[Symbol.asyncDispose]()
  await mesh?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  const { db, sealer, accountId } = mesh.context
  await db.deleteFrom('notification_endpoints').execute()
  receiver.posts.length = 0
  receiver.answers.length = 0
  const given = { name: 'pager', url: new Secret(receiver.url), kinds: NOTIFICATION_KINDS, enabled: true }
  const created = await createEndpoint({ db, sealer, random: cryptoRandom }, accountId, given)
  signingSecret = created.signingSecret.reveal()
})

/** A difference on the broker that a sweep finds and repairs. */
async function findDrift(): Promise<void> {
  const { state } = mesh.broker()
  const [queue] = state.queues.names()
  if (queue === undefined) throw new Error('the broker has no queue')
  state.queues.remove(queue)
  await mesh.sweep()
}

const deliveries = async () =>
  (await listDeliveries(mesh.context.db, { accountId: mesh.context.accountId }, { limit: 10, offset: 0 })).deliveries

describe.each(engineCases())('notifications on $engine', ({ skip, start }) => {
  describe.skipIf(skip)('with workers and schedulers', () => {
    let engine: TestEngine
    const replicas = new Disposer()
    const fail = (what: unknown, error: unknown): void => expect.fail(`${String(what)}: ${String(error)}`)
    beforeAll(async () => {
      engine = await start()
    })
    afterEach(() => replicas.dispose())
    afterAll(() => engine?.stop())

    /** A process with the roles of a worker and a scheduler, of which only notifications run. */
    async function replica(
      name: string,
    ): Promise<{ readonly backend: QueueBackend; stop(patienceMs: number): Promise<boolean> }> {
      const context = await mesh.another(name)
      const backend = await engine.open()
      replicas.defer(() => backend.close())
      const enqueue = createEnqueuer({ backend, now: Date.now, onMissed: fail })
      const services = { ...createJobServices(context), usableBrokers: async () => [] }
      const workers = await startWorkers({ backend, services, enqueue, onError: fail })
      replicas.defer(() => workers.close(5_000).then(() => undefined))
      const expressions = Object.fromEntries(
        (Object.keys(DEFAULT_SCHEDULES) as ScheduleName[]).map((schedule) => [schedule, NEVER]),
      )
      const scheduler = createScheduler({
        backend,
        ticks: { lastTick: async () => Date.now(), recordTick: async () => undefined },
        expressions: { ...expressions, 'poll-notifications': EVERY_SECOND },
        now: Date.now,
        onError: fail,
      })
      await scheduler.start()
      replicas.defer(() => scheduler.stop())
      return { backend, stop: (patienceMs) => workers.close(patienceMs) }
    }

    it('are sent after a crash between their record and their sending, once', async () => {
      await findDrift()
      expect(receiver.posts).toEqual([])
      await Promise.all([replica('one'), replica('two')])
      await until('the delivery', async () => ((await deliveries())[0]?.state === 'delivered' ? true : null))
      const [post] = receiver.posts
      expect(receiver.posts).toHaveLength(1)
      expect(post?.payload.data.counts).toEqual({ 'drift.found': 1 })
      expect(post !== undefined && isSignedBy(signingSecret, post)).toBe(true)
      expect(await engine.dump()).not.toMatch(/whsec|127\.0\.0\.1/)
    })

    it('that a process was sending when it stopped are sent by another, with the same id', async () => {
      receiver.answers.push(() => undefined)
      const first = await replica('first')
      await findDrift()
      await until('the first attempt', () => (receiver.posts.length === 1 ? true : null))
      expect(await first.stop(0)).toBe(true)
      await replica('second')
      await until('the delivery', async () => ((await deliveries())[0]?.state === 'delivered' ? true : null))
      expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      expect(receiver.posts).toHaveLength(2)
    })

    it('to one endpoint do not wait for another that does not answer', async () => {
      const { db, sealer, accountId } = mesh.context
      let answer = (): unknown => undefined
      receiver.answers.push((response) => {
        answer = () => response.end()
      })
      await replica('only')
      await findDrift()
      await until('the attempt that hangs', () => (receiver.posts.length === 1 ? true : null))
      const given = { name: 'chat', url: new Secret(receiver.url), kinds: NOTIFICATION_KINDS, enabled: true }
      await createEndpoint({ db, sealer, random: cryptoRandom }, accountId, given)
      await findDrift()
      await until('a delivery', async () =>
        (await deliveries()).some(({ state }) => state === 'delivered') ? true : null,
      )
      answer()
    })
  })
})
