import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { Pair, ReconcileStore } from '../../src/reconcile/store-port.ts'
import { openDatabase } from '../../src/store/database.ts'
import { createReconcileStore } from '../../src/store/reconcile-store.ts'
import { withDatabase } from '../helpers/database.ts'
import type { FakeOperation } from '../helpers/fake-broker.ts'
import { pairOf } from '../helpers/sample.ts'
import { DatabaseWorld, openSealer } from './reconcile-store-subject.ts'

const database = withDatabase()
const A = pairOf('app-a')
const A2 = pairOf('app-a', 'broker2')
const USER = { kind: 'clientUsername', name: 'key-a' } as const
const failure = (fate: KeymeshError['fate']) =>
  new KeymeshError({ code: 'X', fate, message: `the broker said ${fate}.` })

describe('the state of access requests after runs', () => {
  let world: DatabaseWorld
  beforeEach(async () => {
    world = new DatabaseWorld(database().connectionString)
    await world.addPair(A, { 'key-a': 1 })
    await sql`update brokers set name = 'Frankfurt' where id = 'broker1'`.execute(world.db)
  })
  afterEach(() => world[Symbol.asyncDispose]())

  const states = async (): Promise<readonly unknown[]> =>
    (await world.rows('access_requests')).map(({ state, reason }) => (reason === null ? state : [state, reason]))
  /** The product of the first broker is on the second one too. */
  const onBothBrokers = async (): Promise<void> => {
    await world.addPair(A2)
    await sql`update brokers set name = 'Oslo' where id = 'broker2'`.execute(world.db)
    await sql`delete from access_requests where id = 'for-broker2'`.execute(world.db)
    await sql`insert into product_version_brokers values ('acme', 'on-broker1', '1.0.0', 'broker2')`.execute(world.db)
    await world.raiseGeneration(A)
  }
  const fails = async (fate: KeymeshError['fate'], pair: Pair = A, on: FakeOperation = 'get'): Promise<void> => {
    world.brokerOf(pair).failNext({ error: failure(fate), on })
    await expect(world.run(pair)).rejects.toThrow()
  }
  const inConflict = async (pair: Pair = A): Promise<void> => {
    world.brokerOf(pair).put({ ...USER, attributes: { enabled: true } }, 'theirs')
    await world.run(pair)
  }
  const refusedPlan = async (): Promise<void> => {
    await world.run()
    const names = Array.from({ length: 60 }, (_, index) => `key-${index}`)
    for (const name of names) world.broker.put({ kind: 'clientUsername', name })
    await sql`
      insert into ledger (account_id, broker_id, kind, name, registration_id, origin, withdrawn_at)
      select 'acme', 'broker1', 'clientUsername', name, 'app-a', 'created', now() - interval '9 days'
      from unnest(${names}::text[]) as name`.execute(world.db)
    await world.run()
  }
  const passMinutes = (minutes: number) =>
    sql`update pairs set failing_since = failing_since - ${minutes} * interval '1 minute'`.execute(world.db)

  const cases: Readonly<Record<string, readonly [run: () => Promise<void>, expected: unknown]>> = {
    'LIVE when the broker has everything': [async () => void (await world.run()), 'LIVE'],
    'as it was after one failure that heals': [() => fails('retry'), 'APPROVED'],
    'as it was after two': [() => times(2, () => fails('wait')), 'APPROVED'],
    'in ERROR after three in a row': [
      () => times(3, () => fails('retry')),
      ['ERROR', 'Broker Frankfurt: the broker said retry.'],
    ],
    'as it was when a run in between came through': [
      async () => {
        await times(2, () => fails('retry'))
        await world.run()
        await times(2, () => fails('retry'))
      },
      'LIVE',
    ],
    'in ERROR at once when nothing but a person helps': [
      () => fails('stop'),
      ['ERROR', 'Broker Frankfurt: the broker said stop.'],
    ],
    'LIVE through an outage': [
      async () => {
        await world.run()
        await times(5, () => fails('retry'))
      },
      'LIVE',
    ],
    'in ERROR when the outage lasts': [
      async () => {
        await world.run()
        await times(3, () => fails('retry'))
        await passMinutes(11)
        await fails('retry')
      },
      ['ERROR', 'Broker Frankfurt: the broker said retry.'],
    ],
    'in ERROR by a failure in the middle of the writes': [
      () => fails('stop', A, 'create'),
      ['ERROR', 'Broker Frankfurt: the broker said stop.'],
    ],
    'in ERROR by a conflict': [
      () => inConflict(),
      [
        'ERROR',
        'Broker Frankfurt: the client username key-a exists and is not ours. Adopt it or choose another consumer key.',
      ],
    ],
    'in ERROR by a refused plan, though it was LIVE': [
      refusedPlan,
      ['ERROR', expect.stringMatching(/^Broker Frankfurt: the plan deletes 60 objects/)],
    ],
    'LIVE again when the conflict is gone': [
      async () => {
        await inConflict()
        world.broker.drop(USER)
        await world.run()
      },
      'LIVE',
    ],
    'in ERROR by its newest failure': [
      async () => {
        await inConflict()
        world.broker.drop(USER)
        await fails('wait')
      },
      ['ERROR', 'Broker Frankfurt: the broker said wait.'],
    ],
    'in ERROR until a run says otherwise, whatever changes': [
      async () => {
        await inConflict()
        await world.raiseGeneration(A)
      },
      ['ERROR', expect.stringContaining('key-a')],
    ],
    'in ERROR after a run that could not read its facts, three times': [
      async () => {
        const facts: ReconcileStore['facts'] = () => Promise.reject(failure('retry'))
        const broken = { ...world.store, facts }
        await times(3, () => expect(world.run(A, broken)).rejects.toThrow())
      },
      ['ERROR', 'Broker Frankfurt: the broker said retry.'],
    ],
    'as it was when a newer change overtook the failure': [
      async () => {
        const facts: ReconcileStore['facts'] = async (pair) => {
          const found = await world.store.facts(pair)
          await world.raiseGeneration(A)
          return found
        }
        world.broker.failNext({ error: failure('stop'), on: 'get' })
        await expect(world.run(A, { ...world.store, facts })).rejects.toThrow()
      },
      'APPROVED',
    ],
  }
  it.each(Object.entries(cases))('is %s', async (_, [run, expected]) => {
    await run()
    expect(await states()).toEqual([expected])
  })

  it.each(['PENDING_APPROVAL', 'REJECTED', 'REVOKED'])('of a request in %s stays', async (state) => {
    await sql`update access_requests set state = ${state}, approved_at = null`.execute(world.db)
    await fails('stop', A, 'facts')
    await world.run()
    expect(await states()).toEqual([state])
  })

  it('keeps what an ERROR after approval wants on the broker, and not what one before it wants', async () => {
    await fails('stop')
    expect((await world.store.facts(A))?.registration.accessRequests).toHaveLength(1)
    await sql`update access_requests set approved_at = null`.execute(world.db)
    expect((await world.store.facts(A))?.registration.accessRequests).toHaveLength(0)
    await world.run()
    expect(await states()).toEqual([['ERROR', 'Broker Frankfurt: the broker said stop.']])
  })

  it('depends on all brokers of the product', async () => {
    await onBothBrokers()
    await world.run(A)
    expect(await states()).toEqual(['APPROVED'])
    await fails('stop', A2)
    expect(await states()).toEqual([['ERROR', 'Broker Oslo: the broker said stop.']])
    await fails('stop', A)
    expect(await states()).toEqual([['ERROR', 'Broker Frankfurt: the broker said stop. And 1 more broker.']])
    await world.run(A)
    expect(await states()).toEqual([['ERROR', 'Broker Oslo: the broker said stop.']])
    await world.run(A2)
    expect(await states()).toEqual(['LIVE'])
  })

  it('depends on the brokers of its own product only', async () => {
    await world.addPair(A2)
    await world.run(A)
    await fails('stop', A2)
    expect(await states()).toEqual(['LIVE', ['ERROR', expect.stringContaining('stop')]])
  })

  it('is LIVE although its brokers finished at the same moment', async () => {
    await onBothBrokers()
    const second = openDatabase({
      connectionString: database().connectionString,
      maxConnections: 1,
      onIdleError: () => undefined,
    })
    try {
      const stores = [world.store, createReconcileStore(second.db, openSealer)]
      // Each transaction has written its pair before either looks at the request.
      const blocker = await database().pool.connect()
      await blocker.query('begin')
      await blocker.query('select 1 from access_requests for update')
      const both = Promise.all([A, A2].map((pair, index) => world.run(pair, stores[index])))
      await untilWaiting(2)
      await blocker.query('commit')
      blocker.release()
      await both
    } finally {
      await second.close()
    }
    expect(await states()).toEqual(['LIVE'])
  })

  it('is not written, nor locked, when nothing changes for it', async () => {
    await world.addPair(pairOf('app-b'), { 'key-b': 1 })
    await world.run(A)
    await fails('stop', pairOf('app-b'))
    const before = await versions()
    await world.raiseGeneration(A)
    await world.run(A)
    expect(await versions()).toEqual(before)
  })

  const versions = async (): Promise<readonly unknown[]> =>
    (await sql`select id, xmin::text, xmax::text from access_requests order by registration_id`.execute(world.db)).rows

  async function untilWaiting(count: number): Promise<void> {
    for (const giveUpAtMs = performance.now() + 20_000; ; ) {
      const { rows } = await database().pool.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      if (rows.length >= count) return
      if (performance.now() > giveUpAtMs) throw new Error('the two runs did not meet')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
})

async function times(count: number, run: () => Promise<unknown>): Promise<void> {
  for (let index = 0; index < count; index += 1) await run()
}
