import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Disposer } from '../../src/disposer.ts'
import { CATALOGUE_QUEUE, REGISTRATIONS_QUEUE } from '../../src/queue/queue-names.ts'
import { openQueue, startScheduler, startWorkerRole } from '../../src/roles.ts'
import { readLastTick } from '../../src/store/schedule-ticks.ts'
import { redisAvailable, startTestRedis } from '../helpers/redis.ts'
import type { TappedWrite } from '../helpers/semp-tap.ts'
import { until } from '../helpers/service.ts'
import { suppliedCredential } from './import-fixtures.ts'
import { client, keyOf } from './reconcile-fixtures.ts'
import { Replicas } from './scale-out-fixtures.ts'

const NAMES = ['one', 'two', 'three']
const APPS = Array.from({ length: 10 }, (_, index) => `app-${index}`)
const secretOf = (id: string, round: number): string => `secret-of-${id}-in-round-${round}`
const clients = (round: number) =>
  APPS.map((id) => client(id, { credentials: [suppliedCredential('main', keyOf(id), secretOf(id, round))] }))

const redis = redisAvailable()
if (!redis.available) process.stderr.write(`skipped: replicas with the queue on Redis (${redis.reason})\n`)

describe.each(['PostgreSQL', 'Redis'])('three replicas with the queue on %s', { timeout: 120_000 }, (engine) => {
  describe.skipIf(engine === 'Redis' && !redis.available)('that are all worker and scheduler', () => {
    const opened = new Disposer()
    let replicas: Replicas
    let env: Readonly<Record<string, string>>

    beforeEach(async () => {
      const server = engine === 'Redis' ? await startTestRedis() : null
      if (server !== null) opened.defer(() => server.stop())
      env = {
        KEYMESH_POLL_CRON: '* * * * * *',
        KEYMESH_SWEEP_CRON: '*/2 * * * * *',
        ...(server === null ? {} : { REDIS_URL: server.url }),
      }
      // Writes take long enough to meet.
      replicas = await Replicas.open(clients(0), { sandbox: { logins: { mqtt: 0 }, latencyMs: 5 } })
      opened.defer(() => replicas[Symbol.asyncDispose]())
    })
    afterEach(() => opened.dispose())

    it('fire each tick once, one that stops and starts again among them', async () => {
      const ran: string[] = []
      const schedulers = await Promise.all(
        NAMES.map(async (name) => {
          const context = await replicas.replica(name, env)
          const queue = await openQueue(context)
          opened.defer(() => queue.backend.close())
          for (const shared of [CATALOGUE_QUEUE, REGISTRATIONS_QUEUE]) {
            const processor = async ({ id }: { readonly id: string }) => {
              ran.push(id)
              return { status: 'done' } as const
            }
            queue.backend.worker(shared, processor, { concurrency: 2 })
          }
          return { context, queue, stop: await startScheduler(context, queue) }
        }),
      )
      const polls = () => ran.filter((id) => id.startsWith('poll-registrations-'))
      await until('some ticks', () => (polls().length >= 2 ? true : null))
      const [first, ...others] = schedulers
      await first?.stop()
      const before = polls().length
      const again = first === undefined ? undefined : await startScheduler(first.context, first.queue)
      await until('some more ticks', () => (polls().length >= before + 2 ? true : null))
      await Promise.all([again?.(), ...others.map(({ stop }) => stop())])
      const lastMs = await readLastTick(replicas.mesh.context.db, 'poll-registrations')
      const last = `poll-registrations-${(lastMs ?? 0) / 1_000}`
      await until('the last tick', () => (polls().includes(last) ? true : null))

      expect(ran.toSorted()).toEqual([...new Set(ran)].toSorted())
      expect(ran.filter((id) => !/^[a-z-]+-\d+$/.test(id))).toEqual([])
      expect(polls().toSorted().at(-1)).toBe(last)
    })

    it('share the work, and no two are at work on one registration of one broker at once', async () => {
      const { mesh } = replicas
      const queues = await Promise.all(
        NAMES.map(async (name) => {
          const context = await replicas.replica(name, env)
          const queue = await openQueue(context)
          opened.defer(() => queue.backend.close())
          opened.defer(await startWorkerRole(context, queue))
          opened.defer(await startScheduler(context, queue))
          return queue
        }),
      )
      const ROUNDS = 4
      for (let round = 0; round < ROUNDS; round += 1) {
        if (round > 0) await mesh.import({ registrations: clients(round) })
        const pairs = APPS.map((id) => mesh.pair(id))
        await Promise.all(
          queues.flatMap(({ enqueue }) => [enqueue.pairs(pairs, 'on-demand'), enqueue.sweep(mesh.key(), 'operator')]),
        )
        await until('the secrets of this round are there', () =>
          APPS.every((id) => mesh.broker().state.passwordOf(keyOf(id)) === secretOf(id, round)) ? true : null,
        )
      }
      await until('everything is in sync', async () =>
        (await mesh.pairs()).every(({ state, generation, reached }) => state === 'in-sync' && generation === reached)
          ? true
          : null,
      )
      expect(replicas.overlaps(registrationOf)).toEqual([])
      // More than one of them was at work, or this says nothing.
      expect(new Set(replicas.writes.map(({ session }) => session)).size).toBeGreaterThan(1)
      const passwords = replicas.writes.filter(
        ({ method, path }) => method === 'PATCH' && path.includes('clientUsernames'),
      )
      expect(passwords).toHaveLength(APPS.length * (ROUNDS - 1))
      expect(await mesh.drift()).toEqual([])
    })

    /** Null for what all share. */
    function registrationOf({ path, body }: TappedWrite): string | null {
      const queue = /\/queues\/([^/]+)/.exec(path)?.[1]
      const owner = queue === undefined ? '' : String(replicas.mesh.broker().state.queues.get(queue)?.owner)
      return /app-\d+/.exec(`${path} ${body} ${owner}`)?.[0] ?? null
    }
  })
})
