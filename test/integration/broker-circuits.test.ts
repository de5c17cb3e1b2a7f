import { sql } from 'kysely'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { codeOf } from '../../src/domain/errors.ts'
import { laggingPairs } from '../../src/store/pairs.ts'
import { type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, ordersPortal } from './reconcile-fixtures.ts'

const APPS = Array.from({ length: 8 }, (_, index) => `app-${index}`)

async function meshOf(options: Pick<MeshOptions, 'now' | 'log'> = {}): Promise<TestMesh> {
  return withMesh({
    brokers: 2,
    portal: (brokers) =>
      ordersPortal(
        brokers,
        APPS.map((id) => client(id)),
      ),
    ...options,
  })
}

const outcome = (mesh: TestMesh, app: string, index = 0, trigger: 'on-demand' | 'operator' = 'on-demand') =>
  mesh.context.engine.reconcilePair(mesh.pair(app, index), { trigger }).then(
    ({ status }) => status,
    (error: unknown) => codeOf(error),
  )

async function health(mesh: TestMesh, index = 0) {
  const { rows } = await sql<{ health: string; failures: number; rests: boolean; prober: string | null }>`
    select health, failures, retry_at is not null as rests, prober from broker_status
    where broker_id = ${mesh.key(index).brokerId}`.execute(mesh.context.db)
  return rows[0]
}

async function makeSick(mesh: TestMesh): Promise<void> {
  await mesh.sandbox.broker(0).stop()
  await Promise.all(APPS.slice(0, 5).map((app) => outcome(mesh, app)))
}

describe('a sick broker', () => {
  it('rests after five failures, is not asked meanwhile, and is alone in that', async () => {
    await using mesh = await meshOf()
    await makeSick(mesh)
    expect(await health(mesh)).toMatchObject({ health: 'open', failures: 5, rests: true })
    expect(await outcome(mesh, 'app-6')).toBe('BROKER_RESTING')
    await expect(mesh.sweep()).rejects.toMatchObject({ code: 'BROKER_RESTING', fate: 'wait' })
    // Its own refusals are no failures of it, and leave no trace of a sweep; who waits says what the broker said last.
    expect(await health(mesh)).toMatchObject({ health: 'open', failures: 5 })
    expect(
      (await mesh.pairs()).find(({ registration, broker }) => registration === 'app-6' && broker === 'broker-1'),
    ).toMatchObject({ state: 'error', reason: expect.stringMatching(/^Could not .*nothing can be reached there/) })
    expect(await outcome(mesh, 'app-6', 1)).toBe('done')
  })

  it('rests once, however many runs meet it at a time, and is not polled for until its rest is over', async () => {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) })
    await using mesh = await meshOf({ log })
    await mesh.sandbox.broker(0).stop()
    const outcomes = await Promise.all(APPS.map((app) => outcome(mesh, app)))
    expect(outcomes).toEqual(APPS.map(() => 'BROKER_UNREACHABLE'))
    expect(await health(mesh)).toMatchObject({ health: 'open', failures: 5 })
    expect(lines.filter((line) => line.includes('"broker.resting"'))).toHaveLength(1)
    const { db } = mesh.context
    const polled = async () => (await laggingPairs(db, 100)).filter((pair) => pair.brokerId === mesh.key(0).brokerId)
    await sql`update pairs set due_at = null`.execute(db)
    expect(await polled()).toEqual([])
    expect(await laggingPairs(db, 100)).toHaveLength(APPS.length)
    for (const retryAt of [sql`now()`, sql`now() + interval '1 day'`]) {
      await sql`update broker_status set retry_at = ${retryAt} where broker_id = ${mesh.key(0).brokerId}`.execute(db)
      expect(await polled()).toHaveLength(APPS.length)
    }
  })

  it('is named as the reason by all that wait for it, and in the end by their access requests, though nothing of them is tried', async () => {
    let nowMs = Date.now()
    await using mesh = await meshOf({ now: () => nowMs })
    await makeSick(mesh)
    const waiting = async () => (await mesh.pairs()).filter(({ broker }) => broker === 'broker-1')
    const unreached = expect.objectContaining({
      state: 'error',
      reason: expect.stringMatching(/nothing can be reached/),
    })
    expect(await waiting()).toEqual(APPS.map(() => unreached))
    const requests = async () =>
      (await mesh.context.db.selectFrom('access_requests').select('state').execute()).map(({ state }) => state)
    expect(new Set(await requests())).toEqual(new Set(['APPROVED']))
    for (let times = 0; times < 2; times += 1) {
      nowMs += 4_500
      await outcome(mesh, 'app-7')
    }
    expect(new Set(await requests())).toEqual(new Set(['ERROR']))
    await mesh.sandbox.broker(0).start()
    expect(await outcome(mesh, 'app-5', 0, 'operator')).toBe('done')
    expect((await waiting()).find(({ registration }) => registration === 'app-5')).toMatchObject({ state: 'in-sync' })
  })

  it('is found well by one run alone, also after a restart of every process', async () => {
    let nowMs = Date.now()
    await using mesh = await meshOf({ now: () => nowMs })
    await makeSick(mesh)
    await mesh.sandbox.broker(0).start()
    const other = await mesh.another('second')
    const elsewhere = () =>
      other.engine.reconcilePair(mesh.pair('app-7'), { trigger: 'poll' }).then(
        ({ status }) => status,
        (error: unknown) => codeOf(error),
      )
    expect(await elsewhere()).toBe('BROKER_RESTING')
    nowMs += 10_000
    const [first, second] = await Promise.all([outcome(mesh, 'app-6'), elsewhere()])
    // Who came second was told to rest, unless the first was done by then.
    expect([first, second]).toContain('done')
    expect(await outcome(mesh, 'app-7')).toBe('done')
    expect(await health(mesh)).toEqual({ health: 'closed', failures: 0, rests: false, prober: null })
  })

  it('rests longer when the one run fails, and its next try is always on record', async () => {
    let nowMs = Date.now()
    await using mesh = await meshOf({ now: () => nowMs })
    await makeSick(mesh)
    nowMs += 10_000
    expect(await outcome(mesh, 'app-6')).toBe('BROKER_UNREACHABLE')
    expect(await health(mesh)).toMatchObject({ health: 'open', failures: 6, rests: true })
    nowMs += 5_000
    expect(await outcome(mesh, 'app-6')).toBe('BROKER_RESTING')
  })

  it('is tried at once by a person, whose success ends the rest', async () => {
    await using mesh = await meshOf()
    await makeSick(mesh)
    expect(await outcome(mesh, 'app-0', 0, 'operator')).toBe('BROKER_UNREACHABLE')
    await mesh.sandbox.broker(0).start()
    expect(await outcome(mesh, 'app-0', 0, 'operator')).toBe('done')
    expect(await health(mesh)).toMatchObject({ health: 'closed', failures: 0 })
    expect(await outcome(mesh, 'app-1')).toBe('done')
  })

  it('counts failures in a row: one success forgets them', async () => {
    await using mesh = await meshOf()
    for (const apps of [APPS.slice(0, 4), APPS.slice(4, 8)]) {
      await mesh.sandbox.broker(0).stop()
      for (const each of await Promise.all(apps.map((app) => outcome(mesh, app))))
        expect(each).toMatch(/^BROKER_(UNREACHABLE|CONNECTION_LOST)$/)
      await mesh.sandbox.broker(0).start()
      expect(await outcome(mesh, apps[0] ?? '')).toBe('done')
    }
    expect(await health(mesh)).toMatchObject({ health: 'closed', failures: 0 })
  })

  it('has the failures of every process forgotten by a success of any', async () => {
    let nowMs = Date.now()
    await using mesh = await meshOf({ now: () => nowMs })
    const other = await mesh.another('second')
    expect(await outcome(mesh, 'app-0')).toBe('done')
    await mesh.sandbox.broker(0).stop()
    const runs = APPS.slice(1, 5).map((app) => other.engine.reconcilePair(mesh.pair(app), { trigger: 'poll' }))
    for (const { status } of await Promise.allSettled(runs)) expect(status).toBe('rejected')
    await mesh.sandbox.broker(0).start()
    expect(await health(mesh)).toMatchObject({ health: 'closed', failures: 4 })
    nowMs += 2_000
    expect(await outcome(mesh, 'app-0')).toBe('done')
    expect(await health(mesh)).toMatchObject({ health: 'closed', failures: 0 })
  })
})
