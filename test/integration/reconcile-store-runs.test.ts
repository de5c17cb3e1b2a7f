import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { ReconcileStore } from '../../src/reconcile/store-port.ts'
import { sweepBroker } from '../../src/reconcile/sweep.ts'
import { secretOf } from '../contract/reconcile-store-contract.ts'
import { withDatabase } from '../helpers/database.ts'
import { pairOf } from '../helpers/sample.ts'
import { DatabaseWorld } from './reconcile-store-subject.ts'

const database = withDatabase()
const PAIR = pairOf('app-a')
const USER = { kind: 'clientUsername', name: 'key-a' } as const
const crash = new KeymeshError({ code: 'CRASH', fate: 'retry', message: 'the process died' })

describe('runs on PostgreSQL', () => {
  let world: DatabaseWorld
  beforeEach(async () => {
    world = new DatabaseWorld(database().connectionString)
    await world.addPair(PAIR, { 'key-a': 1 })
  })
  afterEach(() => world[Symbol.asyncDispose]())

  describe('invariant 1: store before send', () => {
    const calls: readonly (keyof ReconcileStore)[] = ['facts', 'intend', 'secret', 'mayWrite', 'finish']
    it.each(calls)('a worker that dies in %s leaves what the next one completes with the same secret', async (call) => {
      const died = { ...world.store, [call]: () => Promise.reject(crash), finish: () => Promise.reject(crash) }
      await expect(world.run(PAIR, died)).rejects.toBe(crash)
      expect(await world.run(PAIR, world.store, 'worker-2')).toEqual({ status: 'busy' })
      await world.expireLease(PAIR)
      expect(await world.run(PAIR, world.store, 'worker-2')).toMatchObject({
        status: 'done',
        plan: { drift: [], conflicts: [] },
      })
      expect(world.broker.passwords.get('key-a')).toBe(secretOf(PAIR, 'key-a', 1))
      expect(await world.requestStates()).toEqual(['LIVE'])
      const writes = world.broker.writes.length
      await world.run()
      expect(world.broker.writes).toHaveLength(writes)
    })
  })

  describe('invariant 3: level-triggered', () => {
    it('a pair whose job was lost is found without any queue', async () => {
      expect(await world.lagging()).toEqual([PAIR])
      await world.run()
      expect(await world.lagging()).toEqual([])
      await world.raiseGeneration(PAIR)
      expect(await world.lagging()).toEqual([PAIR])
      for (const pair of await world.lagging()) await world.run(pair)
      expect(await world.lagging()).toEqual([])
    })

    it('a change while a run is under way lags at once, though that run ended for good', async () => {
      const stopped = new KeymeshError({ code: 'UNAUTHORIZED_SCOPE', fate: 'stop', message: 'no' })
      world.broker.failNext({ error: stopped, on: 'get' })
      const facts: ReconcileStore['facts'] = async (pair) => {
        const found = await world.store.facts(pair)
        await world.raiseGeneration(PAIR)
        return found
      }
      await expect(world.run(PAIR, { ...world.store, facts })).rejects.toBe(stopped)
      expect(await world.lagging()).toEqual([PAIR])
    })

    it('what failed for good waits for a change, and a sweep still tries it', async () => {
      const stopped = new KeymeshError({ code: 'UNAUTHORIZED_SCOPE', fate: 'stop', message: 'no' })
      world.broker.failNext({ error: stopped, on: 'create' })
      await expect(world.run()).rejects.toBe(stopped)
      expect(await world.lagging()).toEqual([])
      const all = {
        ...world.dependencies(PAIR, world.store, 'sweeper'),
        sweepStore: world.sweepStore,
        concurrency: 2,
        proveEveryMs: 1,
        maxListings: 100,
      }
      expect(await sweepBroker(all, { broker: PAIR, trigger: 'sweep' })).toMatchObject({ changed: 1, failed: 0 })
    })
  })

  describe('invariant 5: own what you touch', () => {
    it('an intent is committed before the object is sent, and withdrawn when it was not', async () => {
      const seen: unknown[] = []
      const mayWrite: ReconcileStore['mayWrite'] = async () => {
        seen.push(...(await world.rows('ledger')).map(({ name, applied }) => `${name}: ${applied}`))
        return false
      }
      await expect(world.run(PAIR, { ...world.store, mayWrite })).rejects.toMatchObject({ code: 'SUPERSEDED' })
      expect(seen).toEqual(['app-a: null', 'keymesh-direct: null', 'key-a: null'])
      expect((await world.rows('ledger')).map(({ name }) => name)).toEqual(['keymesh-direct'])
    })

    it('a foreign username is a conflict, stays as it is and is never in the ledger', async () => {
      world.broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
      await world.run()
      expect(world.broker.passwords.get('key-a')).toBe('theirs')
      expect((await world.rows('ledger')).map(({ name }) => name)).not.toContain('key-a')
      expect(await world.rows('pairs')).toMatchObject([{ state: 'conflict', reached_generation: 0 }])
      expect(await world.rows('drift')).toMatchObject([{ kind: 'conflict', action: 'reported', repaired_at: null }])
    })
  })

  describe('invariant 13: accounts are walls', () => {
    it('two accounts with the same ids run side by side and share nothing', async () => {
      const foreign = pairOf('app-a', 'broker1', 'globex')
      await world.addPair(foreign, { 'key-a': 3 })
      await world.run()
      await world.run(foreign)
      const theirs = world.brokerOf(foreign)
      expect(world.broker.passwords.get('key-a')).toBe(secretOf(PAIR, 'key-a', 1))
      expect(theirs.passwords.get('key-a')).toBe(secretOf(foreign, 'key-a', 3))
      await world.withdraw(foreign)
      await world.run(foreign)
      expect(theirs.peek(USER)?.attributes.enabled).toBe(false)
      expect(world.broker.peek(USER)?.attributes.enabled).toBe(true)
      expect(
        (await world.rows('ledger')).filter((row) => row.account_id === 'acme' && row.withdrawn_at !== null),
      ).toEqual([])
      expect(await world.requestStates()).toEqual(['LIVE'])
    })
  })

  describe('what is recorded', () => {
    it('drift once while it is open, closed by the run that repaired it', async () => {
      await world.run()
      world.broker.tamper({ kind: 'aclProfile', name: 'app-a' }, { publishTopicDefaultAction: 'allow' })
      world.broker.failNext({ error: crash, on: 'update' })
      await expect(world.run()).rejects.toBe(crash)
      const open = [{ action: 'failed', repaired_at: null, repaired_by_run_id: null }]
      expect(await world.rows('drift')).toMatchObject(open)
      // A run that failed before it saw the object says nothing about it.
      world.broker.failNext({ error: crash, on: 'get' })
      await expect(world.run()).rejects.toBe(crash)
      expect(await world.rows('drift')).toMatchObject(open)
      await world.run()
      const drift = await world.rows('drift')
      expect(drift).toMatchObject([
        {
          object_name: 'app-a',
          kind: 'changed',
          reason: 'changed-on-broker',
          before: { publishTopicDefaultAction: 'allow' },
          after: { publishTopicDefaultAction: 'disallow' },
          action: 'repaired',
          repaired_by_run_id: `run-${world.runs}`,
        },
      ])
      expect(drift[0]?.run_id).not.toBe(drift[0]?.repaired_by_run_id)
      world.broker.tamper({ kind: 'aclProfile', name: 'app-a' }, { publishTopicDefaultAction: 'allow' })
      await world.run()
      expect(await world.rows('drift')).toHaveLength(2)
    })

    it('a conflict is closed when it is gone', async () => {
      world.broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
      await world.run()
      world.broker.drop(USER)
      await world.run()
      expect((await world.rows('drift')).map(({ repaired_at }) => repaired_at === null)).toEqual([false])
      expect(await world.rows('pairs')).toMatchObject([{ state: 'in-sync' }])
    })

    it('a run that did something or failed, once, and none that found nothing to do', async () => {
      world.broker.failNext({ error: crash, on: 'create', ref: USER })
      await expect(world.run()).rejects.toBe(crash)
      expect(await world.rows('runs')).toMatchObject([
        { outcome: 'error', error_code: 'CRASH', steps: 4, detail: { ran: { length: 4 }, held: [] } },
      ])
      expect(await world.rows('pairs')).toMatchObject([{ state: 'error', attempts: 1, lease_holder: null }])
      await world.run()
      await world.run()
      expect((await world.rows('runs')).map(({ outcome }) => outcome)).toEqual(['error', 'in-sync'])
      expect(await world.rows('pairs')).toMatchObject([{ attempts: 0 }])
    })

    it('no secret anywhere', async () => {
      await world.run()
      world.broker.drop(USER)
      world.broker.failNext({ error: crash, on: 'create' })
      await expect(world.run()).rejects.toBe(crash)
      const tables = await Promise.all(
        (['pairs', 'ledger', 'runs', 'drift'] as const).map((table) => world.rows(table)),
      )
      expect(JSON.stringify(tables)).not.toContain(secretOf(PAIR, 'key-a', 1))
    })
  })
})
