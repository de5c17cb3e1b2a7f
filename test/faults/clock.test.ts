import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registrationId } from '../../src/domain/ids.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { type RunningMesh, startRunningMesh } from '../helpers/running-mesh.ts'
import { until } from '../helpers/service.ts'
import { ShiftedClock } from '../helpers/shifted-clock.ts'
import { accessRequest } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The clock of the machine, not of its database, is set while grace periods, leases, backoffs and schedules are pending. */
const STEPS = [
  { what: 'an hour forward', aheadMs: HOUR_MS },
  { what: 'an hour back', aheadMs: 0 },
  { what: 'an hour back again', aheadMs: -HOUR_MS },
  { what: 'a day forward', aheadMs: DAY_MS - 2 * HOUR_MS },
  { what: 'a day back', aheadMs: -2 * HOUR_MS },
]
/** Then the grace period of 24 hours is over, by every clock. */
const PAST_GRACE_MS = DAY_MS + HOUR_MS

let clock: ShiftedClock
let world: RunningMesh
let enqueue: Awaited<ReturnType<RunningMesh['start']>>['enqueue']
const registrations: PortalRegistration[] = [
  client('same'),
  client('revoked', { accessRequests: [accessRequest({ state: 'REVOKED' })] }),
]

beforeAll(async () => {
  clock = new ShiftedClock()
  world = await startRunningMesh({ brokers: 2, now: () => Date.now() })
  await world.import(ordersPortal(world.brokers, [client('same'), client('revoked')]))
  const started = await world.start()
  enqueue = started.enqueue
  await world.settled([0, 1])
  await world.import({ registrations })
  await world.settled([0, 1])
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  clock[Symbol.dispose]()
})

const polls = async (): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ id: string }>`
    select id from bullmq.job where name in ('poll-registrations', 'sweep-brokers', 'retire-expired')`.execute(
    world.mesh.context.db,
  )
  return new Set(rows.map(({ id }) => id))
}

const works = (index: number, id: string): boolean =>
  world.sandbox(index).state.checkLogin(keyOf(id), givenSecretOf(id)) === 'accepted'

describe('when the clock is set', () => {
  it.each(STEPS)(
    '$what: work goes on, nothing is deleted early, no schedule storms',
    async ({ what, aheadMs }) => {
      const id = what.replaceAll(' ', '-')
      // Jobs of the second broker are in backoff, its queue is held, and runs on the first hold their leases.
      await world.proxy(1).set({ kind: 'reset' })
      world.sandbox(0).setLatencyMs(20)
      registrations.push(client(id))
      await world.import({ registrations })
      await enqueue.registration(world.mesh.context.accountId, registrationId(id))
      const { db } = world.mesh.context
      await until('a job of the second broker failed', async () => {
        const failed = db.selectFrom('pairs').select('state').where('registration_id', '=', id)
        const [pair] = await failed.where('broker_id', '=', 'broker-2').execute()
        return pair?.state === 'error' ? true : null
      })
      const before = await polls()
      const startedMs = performance.now()
      clock.setAhead(aheadMs)
      world.sandbox(0).setLatencyMs(0)
      await world.proxy(1).set({ kind: 'none' })
      await world.settled([0, 1])
      expect([works(0, id), works(1, id), works(0, 'same'), works(1, 'same')]).toEqual([true, true, true, true])

      // Three schedules, of which two tick each second; and one run for what was missed. A clock that is set twice within a
      // second was not set.
      await until('schedules go on', async () => {
        const polled = [...(await polls())].filter((job) => job.startsWith('poll') && !before.has(job))
        return polled.length >= 3 ? true : null
      })
      const ticks = [...(await polls())].filter((job) => !before.has(job)).length
      expect(ticks).toBeLessThanOrEqual(2 * ((performance.now() - startedMs) / 1_000) + 10)

      for (const index of [0, 1]) {
        const { state } = world.sandbox(index)
        expect(state.clientUsernames.get(keyOf('revoked'))?.enabled).toBe(false)
        expect(state.aclProfiles.has('revoked')).toBe(true)
        expect(state.queues.size).toBe(registrations.length)
      }
      const held = db.selectFrom('pairs').selectAll().where('lease_holder', 'is not', null)
      await until('no lease is held', async () => ((await held.execute()).length === 0 ? true : null))
    },
    100_000,
  )

  it('past a grace period: what it protected is deleted, and nothing else', async () => {
    clock.setAhead(PAST_GRACE_MS)
    await enqueue.pairs([world.mesh.pair('revoked', 0), world.mesh.pair('revoked', 1)], 'on-demand')
    await until('it is deleted', () =>
      [0, 1].some((index) => world.sandbox(index).state.aclProfiles.has('revoked')) ? null : true,
    )
    await world.settled([0, 1])
    for (const { id } of registrations.filter((each) => each.id !== 'revoked')) {
      expect([id, works(0, id), works(1, id)]).toEqual([id, true, true])
    }
    expect(await world.mesh.drift({ openOnly: true })).toEqual([])
  })

  it('and that of the database was: a lease of the time before is no obstacle', async () => {
    const { db } = world.mesh.context
    await sql`
      update pairs set lease_holder = 'gone', lease_token = lease_token + 1, lease_until = now() + interval '1 hour'
      where registration_id = 'same'`.execute(db)
    world.sandbox(0).state.clientUsernames.remove(keyOf('same'))
    await until('it is healed', () => (works(0, 'same') ? true : null))
  })

  it('no secret went anywhere else', () => world.expectSecretsInPlace())
})
