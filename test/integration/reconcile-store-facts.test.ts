import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { objectKey } from '../../src/domain/broker-object.ts'
import { secretOf } from '../contract/reconcile-store-contract.ts'
import { withDatabase } from '../helpers/database.ts'
import { pairOf } from '../helpers/sample.ts'
import { DatabaseWorld } from './reconcile-store-subject.ts'

const database = withDatabase()
const PAIR = pairOf('app-a')
const USER = { kind: 'clientUsername', name: 'key-a' } as const

describe('access requests on PostgreSQL', () => {
  let world: DatabaseWorld
  beforeEach(async () => {
    world = new DatabaseWorld(database().connectionString)
    await world.addPair(PAIR, { 'key-a': 1 })
  })
  afterEach(() => world[Symbol.asyncDispose]())

  describe('an access request becomes LIVE', () => {
    it('when every broker of its product reached the generation of the registration', async () => {
      const second = pairOf('app-a', 'broker2')
      await world.addPair(second)
      await world.run()
      expect(await world.requestStates()).toEqual(['LIVE', 'APPROVED'])
      await world.run(second)
      expect(await world.requestStates()).toEqual(['LIVE', 'LIVE'])
    })

    it('though another broker, which it is being withdrawn from, cannot be reached', async () => {
      const second = pairOf('app-a', 'broker2')
      await world.addPair(second)
      await world.withdraw(second)
      await world.run()
      expect(await world.requestStates()).toEqual(['LIVE'])
    })

    it('when all that it needs is there already: nothing has to be written', async () => {
      await world.run()
      await sql`update access_requests set state = 'APPROVED'`.execute(world.db)
      await world.raiseGeneration(PAIR)
      const writes = world.broker.writes.length
      await world.run()
      expect(world.broker.writes).toHaveLength(writes)
      expect(await world.requestStates()).toEqual(['LIVE'])
    })

    const states: Readonly<Record<string, readonly [string, string]>> = {
      'an error after approval is over': [`state = 'ERROR', reason = 'x'`, 'LIVE'],
      'an error before approval stays': [`state = 'ERROR', approved_at = null`, 'ERROR'],
      'one that waits for approval stays': [`state = 'PENDING_APPROVAL', approved_at = null`, 'PENDING_APPROVAL'],
      'a revoked one stays': [`state = 'REVOKED'`, 'REVOKED'],
      'an expired one stays': [`expired_at = now()`, 'APPROVED'],
    }
    it.each(Object.entries(states))('%s', async (_, [change, state]) => {
      await world.addPair(pairOf('app-a', 'broker2'))
      await sql`update access_requests set ${sql.raw(change)} where id = 'for-broker2'`.execute(world.db)
      await world.raiseGeneration(PAIR)
      await world.run()
      await world.run(pairOf('app-a', 'broker2'))
      const [other] = (await world.rows('access_requests')).filter(({ id }) => id === 'for-broker2')
      expect(other?.state).toBe(state)
    })

    it('not while a broker is in conflict', async () => {
      world.broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
      await world.run()
      expect(await world.requestStates()).toEqual(['ERROR'])
    })
  })

  describe('facts', () => {
    const counting: Readonly<Record<string, readonly [string, boolean]>> = {
      'an approved access request counts': [`update access_requests set state = 'APPROVED'`, true],
      'a live one counts': [`update access_requests set state = 'LIVE'`, true],
      'one in error after approval counts': [`update access_requests set state = 'ERROR'`, true],
      'one in error before approval does not': [
        `update access_requests set state = 'ERROR', approved_at = null`,
        false,
      ],
      'one that waits for approval does not': [`update access_requests set state = 'PENDING_APPROVAL'`, false],
      'a rejected one does not': [`update access_requests set state = 'REJECTED'`, false],
      'a revoked one does not': [`update access_requests set state = 'REVOKED'`, false],
      'an expired one does not': [`update access_requests set expired_at = now()`, false],
      'one of a deprecated product version counts': [`update product_versions set state = 'DEPRECATED'`, true],
      'one of a retired product version does not': [`update product_versions set state = 'RETIRED'`, false],
      'one of a deleted product version does not': [`update product_versions set state = 'DELETED'`, false],
      'one of a product that left the broker does not': [`delete from product_version_brokers`, false],
      'one of a deleted registration does not': [`update registrations set deleted_at = now()`, false],
    }
    it.each(Object.entries(counting))('%s', async (_, [change, counts]) => {
      await sql.raw(change).execute(world.db)
      const facts = await world.store.facts(PAIR)
      expect(facts?.registration.accessRequests).toHaveLength(counts ? 1 : 0)
      // A sweep reads the same in another way.
      await sql`update pairs set reached_generation = generation, state = 'in-sync'`.execute(world.db)
      for await (const [settled] of world.sweepStore.settled(PAIR)) {
        expect(settled?.registration).toEqual(facts?.registration)
      }
    })

    it('have the credentials that did not retire', async () => {
      await world.addCredential(PAIR, 'key-b', 4)
      await sql`update credentials set retired_at = now() where consumer_key = 'key-a'`.execute(world.db)
      const facts = await world.store.facts(PAIR)
      expect(facts?.registration.credentials).toMatchObject([{ consumerKey: 'key-b', version: 4 }])
    })

    it('have no credential whose time is over, though it is not retired yet: it is put on no broker', async () => {
      await world.addCredential(PAIR, 'key-b', 4)
      await sql`update credentials set expires_at = now() - interval '1 second' where consumer_key = 'key-a'`.execute(
        world.db,
      )
      const facts = await world.store.facts(PAIR)
      expect(facts?.registration.credentials).toMatchObject([{ consumerKey: 'key-b', version: 4 }])
      await world.run()
      expect([...world.broker.passwords.keys()]).not.toContain('key-a')
      await sql`update pairs set reached_generation = generation, state = 'in-sync'`.execute(world.db)
      for await (const [settled] of world.sweepStore.settled(PAIR)) {
        expect(settled?.registration.credentials).toEqual(facts?.registration.credentials)
      }
    })

    it('have the objects that an operator told to adopt on this broker', async () => {
      await sql`
        insert into adoptions (account_id, broker_id, kind, name, asked_by)
        values ('acme', 'broker1', 'clientUsername', 'key-a', 'a person')`.execute(world.db)
      expect([...((await world.store.facts(PAIR))?.adoptions ?? [])]).toEqual([objectKey(USER)])
      world.broker.put({ ...USER, attributes: { enabled: false } }, 'theirs')
      await world.run()
      expect(world.broker.passwords.get('key-a')).toBe(secretOf(PAIR, 'key-a', 1))
    })
  })
})
