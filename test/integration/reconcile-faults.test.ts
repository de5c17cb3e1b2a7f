import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import type { FaultKind } from '../../src/sandbox/faults.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { accessRequest } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal, snapshotOf } from './reconcile-fixtures.ts'

/** What each fault is called, and whether the broker waits or the job tries again. */
const FAULTS = {
  'http-503': { code: 'BROKER_UNAVAILABLE', fate: 'wait' },
  'http-529': { code: 'SEMP_SESSIONS_EXHAUSTED', fate: 'wait' },
  'http-401': { code: 'SEMP_LOGIN_REFUSED', fate: 'stop' },
  reset: { code: 'BROKER_CONNECTION_LOST', fate: 'retry' },
  timeout: { code: 'BROKER_TIMEOUT', fate: 'retry' },
  'half-body': { code: 'BROKER_CONNECTION_LOST', fate: 'retry' },
  'junk-json': { code: 'BROKER_ANSWER_UNEXPECTED', fate: 'retry' },
} as const satisfies Record<FaultKind, { code: string; fate: string }>

const KINDS = Object.entries(FAULTS).map(([kind, expected]) => ({ kind: kind as FaultKind, ...expected }))

/** Long enough for a busy machine, short enough to wait for. */
const SHORT_TIMEOUT_MS = 1_500
const LONG_TIMEOUT_MS = 10_000

const revoked = client('revoked', { accessRequests: [accessRequest({ state: 'REVOKED' })] })

/**
 * A broker with something of everything to do: `same` is in sync, `drifted` lost its username and got an exception,
 * `revoked` has to be switched off, `new` was never there.
 */
async function meshWithWork(kind?: FaultKind): Promise<TestMesh> {
  const requestTimeoutMs = kind === 'timeout' ? SHORT_TIMEOUT_MS : LONG_TIMEOUT_MS
  const mesh = await withMesh({
    portal: (brokers) => ({
      ...ordersPortal(brokers, [client('same'), client('drifted'), client('revoked')]),
      brokers: brokers.map((broker) => ({
        ...broker,
        management: broker.management && { ...broker.management, requestTimeoutMs },
      })),
    }),
  })
  await mesh.sweep()
  const { state } = mesh.broker()
  state.clientUsernames.remove(keyOf('drifted'))
  state.aclProfiles.addMember('drifted', 'publishTopicExceptions', 'smf,payroll/>')
  await mesh.import({
    registrations: [client('same'), client('drifted'), revoked, client('new')],
  } satisfies Partial<PortalFile>)
  return mesh
}

/** All that the ledger holds, times apart. */
async function ledgerOf(mesh: TestMesh): Promise<readonly object[]> {
  return mesh.context.db
    .selectFrom('ledger')
    .select(['kind', 'name', 'registration_id', 'origin', 'applied', 'confirmed_credential_version', 'withdrawn_at'])
    .orderBy('kind')
    .orderBy('name')
    .execute()
}

async function failureOf(work: Promise<unknown>): Promise<KeymeshError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof KeymeshError)) throw new Error(`expected a KeymeshError, not ${String(error)}`)
  return error
}

/** No password but the stored one, and that nowhere but in the password of its own username. */
function expectSecretsInPlace(mesh: TestMesh): void {
  const { clientUsernames, ...others } = snapshotOf(mesh.broker())
  const wrong = Object.entries(clientUsernames).filter(([name, { password }]) => {
    return password !== givenSecretOf(name.replace(/^key-of-/, ''))
  })
  expect(wrong.map(([name]) => name)).toEqual([])
  const readable = Object.values(clientUsernames).map(({ password: _, ...values }) => values)
  expect(JSON.stringify([others, readable])).not.toContain('given-secret-of')
}

/** After the fault ended: one sweep brings everything where it belongs, and the next one writes nothing. */
async function expectConvergence(mesh: TestMesh): Promise<void> {
  const broker = mesh.broker()
  broker.setFaults([])
  expect(await mesh.sweep()).toMatchObject({ failed: 0, busy: 0, waiting: 0 })
  expect((await mesh.pairs()).map(({ registration, state }) => `${registration} ${state}`)).toEqual([
    'drifted in-sync',
    'new in-sync',
    'revoked in-sync',
    'same in-sync',
  ])
  const { state } = broker
  const enabled = ['drifted', 'new', 'revoked', 'same'].map((id) => state.clientUsernames.get(keyOf(id))?.enabled)
  expect(enabled).toEqual([true, true, false, true])
  for (const id of ['drifted', 'new', 'same']) {
    expect(state.aclProfiles.members(id, 'publishTopicExceptions')).toEqual(['smf,orders/*/cancel'])
    expect(state.queues.members(objectsOf(broker, id).queue, 'subscriptions')).toHaveLength(3)
  }
  expectSecretsInPlace(mesh)
  expect(await mesh.drift({ openOnly: true })).toEqual([])
  broker.requests.reset()
  await mesh.sweep()
  expect(broker.requests.writes).toBe(0)
}

const brokerStatus = async (mesh: TestMesh) =>
  mesh.context.db
    .selectFrom('broker_status')
    .select(['reachable', 'error_code', 'sweep_outcome'])
    .executeTakeFirstOrThrow()

describe.concurrent('a broker that fails every request', () => {
  it.each(KINDS)(
    'with $kind: nothing is done or forgotten, the broker is the one in error',
    async ({ kind, code, fate }) => {
      await using mesh = await meshWithWork(kind)
      const before = { broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh), pairs: await mesh.pairs() }
      // As another process sees it, which read nothing before.
      const { engine } = await mesh.another('fresh')
      mesh.broker().setFaults([{ fault: kind, applied: false }])
      expect(await failureOf(engine.sweep(mesh.key(), { trigger: 'sweep' }))).toMatchObject({ code, fate })
      expect({ broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh), pairs: await mesh.pairs() }).toEqual(
        before,
      )
      expect(await brokerStatus(mesh)).toEqual({ reachable: false, error_code: code, sweep_outcome: 'failed' })
      expect(await mesh.drift()).toEqual([])
      await expectConvergence(mesh)
      expect(await brokerStatus(mesh)).toEqual({ reachable: true, error_code: null, sweep_outcome: 'done' })
    },
  )
})

describe.concurrent('a broker that cannot be reached at all', () => {
  const stateOf = async (mesh: TestMesh, registration: string) => {
    const { rows } = await mesh.database.pool.query(
      'select state, reason from access_requests where registration_id = $1',
      [registration],
    )
    return rows[0] as { readonly state: string; readonly reason: string | null }
  }

  it('shows on what asked for it, not on what has all: that goes on as it was', async () => {
    await using mesh = await meshWithWork()
    const { engine } = await mesh.another('fresh')
    mesh.broker().setFaults([{ fault: 'http-503', applied: false }])
    // The fifth failure lets the broker rest; who waits then learns the same.
    const codes: string[] = []
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      for (const id of ['same', 'new']) {
        const run = engine.reconcilePair(mesh.pair(id), { trigger: 'on-demand' })
        codes.push((await failureOf(run)).code)
      }
    }
    expect(codes).toEqual([...Array(5).fill('BROKER_UNAVAILABLE'), ...Array(5).fill('BROKER_RESTING')])
    // What it said a moment ago it does not say again.
    await sql`update pairs set reconciled_at = reconciled_at - interval '5 seconds'`.execute(mesh.context.db)
    await failureOf(engine.reconcilePair(mesh.pair('same'), { trigger: 'on-demand' }))
    const pair = mesh.context.db.selectFrom('pairs').select('needs_person')
    expect(await pair.where('registration_id', '=', 'new').execute()).toEqual([{ needs_person: true }])
    expect(await stateOf(mesh, 'new')).toEqual({
      state: 'ERROR',
      reason: expect.stringMatching(/^Broker broker-1: Could not .* overloaded/),
    })
    expect(await stateOf(mesh, 'same')).toEqual({ state: 'LIVE', reason: null })
    mesh.broker().setFaults([])
    await mesh.context.engine.reconcilePair(mesh.pair('same'), { trigger: 'operator' })
    await expectConvergence(mesh)
    expect(await stateOf(mesh, 'new')).toEqual({ state: 'LIVE', reason: null })
  })

  it('leaves a pair alone that another is at work on, and one whose worker is told to stop', async () => {
    await using mesh = await meshWithWork()
    const { engine, reconcileStore } = await mesh.another('fresh')
    const before = await mesh.pairs()
    mesh.broker().setFaults([{ fault: 'http-503', applied: false }])
    const lease = await reconcileStore.acquire(mesh.pair('new'), 'somebody else', 60_000)
    await failureOf(engine.reconcilePair(mesh.pair('new'), { trigger: 'on-demand' }))
    if (lease === null) throw new Error('the pair is held')
    expect(await reconcileStore.mayWrite(lease, 1, 60_000)).toBe(true)
    await failureOf(engine.reconcilePair(mesh.pair('same'), { trigger: 'poll', signal: AbortSignal.abort() }))
    expect(await mesh.pairs()).toEqual(before)
  })
})

describe.concurrent('a broker that fails in the middle', () => {
  const lists: readonly { readonly list: string; readonly path: RegExp; readonly kind: FaultKind }[] = [
    { list: 'client usernames', path: /\/clientUsernames\?/, kind: 'timeout' },
    { list: 'ACL profiles', path: /\/aclProfiles\?/, kind: 'junk-json' },
    { list: 'exceptions of a profile', path: /\/subscribeTopicExceptions\?/, kind: 'half-body' },
    { list: 'queues', path: /\/queues\?/, kind: 'http-503' },
    { list: 'subscriptions of a queue', path: /\/subscriptions\?/, kind: 'reset' },
  ]
  it.each(lists)('with $kind, when a sweep lists $list: nothing is done or forgotten', async ({ path, kind }) => {
    await using mesh = await meshWithWork(kind)
    const before = { broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh) }
    mesh.broker().setFaults([{ fault: kind, match: { method: 'GET', path } }])
    expect(await failureOf(mesh.sweep())).toMatchObject({ code: FAULTS[kind].code })
    expect({ broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh) }).toEqual(before)
    await expectConvergence(mesh)
  })

  it.each(KINDS)(
    'with $kind, in what a run of one registration reads: its pair is the one in error',
    async ({ kind, code }) => {
      await using mesh = await meshWithWork(kind)
      const before = { broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh) }
      mesh.broker().setFaults([{ fault: kind, match: { method: 'GET', path: /clientUsernames\/key-of-drifted/ } }])
      const run = mesh.context.engine.reconcilePair(mesh.pair('drifted'), { trigger: 'on-demand' })
      const error = await failureOf(run)
      expect(error).toMatchObject({ code })
      expect({ broker: snapshotOf(mesh.broker()), ledger: await ledgerOf(mesh) }).toEqual(before)
      const [pair] = await mesh.pairs()
      expect(pair).toMatchObject({
        registration: 'drifted',
        state: 'error',
        reason: expect.stringContaining('key-of-drifted'),
      })
      const runs = mesh.context.db.selectFrom('runs').selectAll().where('error_code', 'is not', null)
      expect(await runs.execute()).toMatchObject([{ registration_id: 'drifted', error_code: code, outcome: 'error' }])
      await expectConvergence(mesh)
    },
  )
})

describe.concurrent('a broker whose answers to writes are lost', () => {
  const cases: readonly { readonly kind: FaultKind; readonly applied: boolean }[] = [
    { kind: 'http-503', applied: false },
    { kind: 'http-503', applied: true },
    { kind: 'reset', applied: false },
    { kind: 'reset', applied: true },
    { kind: 'timeout', applied: true },
    { kind: 'half-body', applied: true },
    { kind: 'junk-json', applied: true },
  ]
  it.each(cases)(
    'with $kind, done: $applied — no orphan, no conflict, the right secrets',
    async ({ kind, applied }) => {
      await using mesh = await meshWithWork(kind)
      mesh.broker().setFaults([
        { fault: kind, applied, rate: 0.4, match: { method: 'POST' }, times: 6 },
        { fault: kind, applied, rate: 0.4, match: { method: 'PATCH' }, times: 3 },
        { fault: kind, applied, rate: 0.4, match: { method: 'DELETE' }, times: 3 },
      ])
      // The broker is sick for as long as it likes: each try gets a little further.
      for (let round = 0; round < 2; round += 1) await mesh.sweep().catch(() => undefined)
      expectSecretsInPlace(mesh)
      await expectConvergence(mesh)
      expect((await mesh.drift()).filter((row) => row.kind === 'conflict')).toEqual([])
    },
  )
})

describe('a message VPN that is missing', () => {
  it('is an error of the broker: nothing is forgotten, and all comes back when it does', async () => {
    await using mesh = await meshWithWork()
    const before = { ledger: await ledgerOf(mesh), pairs: await mesh.pairs() }
    // As another process sees it, which read nothing before.
    const fresh = await mesh.another('fresh')
    mesh.broker().state.removeMsgVpn()
    mesh.broker().requests.reset()
    expect(await failureOf(fresh.engine.sweep(mesh.key(), { trigger: 'sweep' }))).toMatchObject({
      code: 'MSG_VPN_NOT_FOUND',
      fate: 'stop',
    })
    expect(mesh.broker().requests.writes).toBe(0)
    expect({ ledger: await ledgerOf(mesh), pairs: await mesh.pairs() }).toEqual(before)
    expect(await brokerStatus(mesh)).toMatchObject({ reachable: false, error_code: 'MSG_VPN_NOT_FOUND' })
  })

  it.each(['same', 'revoked', 'new'])('a moment after it was read: the run of `%s` forgets nothing', async (id) => {
    await using mesh = await meshWithWork()
    const { engine } = mesh.context
    // Everything on this connection was read just now.
    await mesh.plans()
    const before = { ledger: await ledgerOf(mesh) }
    mesh.broker().state.removeMsgVpn()
    expect(await failureOf(engine.reconcilePair(mesh.pair(id), { trigger: 'poll' }))).toMatchObject({
      code: 'MSG_VPN_NOT_FOUND',
    })
    const kept = (await ledgerOf(mesh)).filter((row) => Reflect.get(row, 'applied') !== null)
    expect(kept).toEqual(before.ledger)
    expect(await mesh.drift()).toEqual([])
  })

  it('while it is written: a deletion that finds nothing is not taken for done', async () => {
    let nowMs = Date.now() - 72 * 3_600_000
    await using mesh = await withMesh({
      now: () => nowMs,
      portal: (brokers) => ordersPortal(brokers, [client('revoked'), client('other')]),
    })
    await mesh.sweep()
    await mesh.import({ registrations: [revoked, client('other')] })
    await mesh.sweep()
    nowMs += 48 * 3_600_000
    const broker = mesh.broker()
    broker.requests.reset()
    broker.setLatencyMs(50)
    const run = failureOf(mesh.context.engine.reconcilePair(mesh.pair('revoked'), { trigger: 'poll' }))
    await until(() => broker.requests.count('delete', 'clientUsernames') === 1)
    broker.state.removeMsgVpn()
    expect(await run).toMatchObject({ code: 'MSG_VPN_NOT_FOUND' })
    const kept = (await ledgerOf(mesh)).filter((row) => Reflect.get(row, 'registration_id') === 'revoked')
    expect(kept.map((row) => Reflect.get(row, 'kind'))).toEqual(['aclProfile', 'queue'])
  })
})

describe('a run that is aborted half-way', () => {
  it('leaves what it made to the next one', async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `app-${index}`)
    const clients = ids.map((id) => client(id))
    await using mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, clients) })
    const broker = mesh.broker()
    broker.setLatencyMs(5)
    const stop = new AbortController()
    const sweeping = mesh.sweep(0, { signal: stop.signal }).catch((error: unknown) => error)
    await until(() => broker.requests.writes >= 40)
    stop.abort(new Error('asked to stop'))
    await sweeping
    const written = broker.requests.writes
    expect(written).toBeLessThan(100)
    broker.setLatencyMs(0)
    expect(await mesh.sweep()).toMatchObject({ failed: 0, busy: 0, waiting: 0 })
    expect(broker.state.queues.size).toBe(12)
    expectSecretsInPlace(mesh)
    expect(await mesh.drift()).toEqual([])
    broker.requests.reset()
    await mesh.sweep()
    expect(broker.requests.writes).toBe(0)
  })
})

describe('two processes at once', () => {
  it('apply the same 50 registrations without a duplicate, a conflict or a second writer', async () => {
    const ids = Array.from({ length: 50 }, (_, index) => `app-${index}`)
    const clients = ids.map((id) => client(id))
    // Few at a time, or the first one would take them all at once.
    const env = { KEYMESH_CONCURRENCY: '4' }
    await using mesh = await withMesh({ env, portal: (brokers) => ordersPortal(brokers, clients) })
    const broker = mesh.broker()
    broker.requests.keepLog(10_000)
    // Slow enough that neither is done before the other one begins.
    broker.setLatencyMs(2)
    const engines = [mesh.context.engine, (await mesh.another('second')).engine]
    const sweeps = engines.map((engine) => engine.sweep(mesh.key(), { trigger: 'sweep' }))
    const results = await Promise.all(sweeps)
    expect(results.reduce((sum, { changed }) => sum + changed, 0)).toBe(50)
    expect(results.reduce((sum, { failed }) => sum + failed, 0)).toBe(0)
    // Each did a part, or this test says nothing.
    for (const { changed } of results) expect(changed).toBeGreaterThan(0)

    const writes = new Map<string, number>()
    for (const { method, target } of broker.requests.log.filter((request) => request.method !== 'GET')) {
      const key = `${method} ${target.replace('/SEMP/v2/config/msgVpns/sandbox/', '')}`
      writes.set(key, (writes.get(key) ?? 0) + 1)
    }
    const { 'POST clientProfiles': profiles, ...others } = Object.fromEntries(writes)
    const queues = ids.map((id) => objectsOf(broker, id).queue)
    expect(others).toEqual({
      'POST aclProfiles': 50,
      'POST clientUsernames': 50,
      'POST queues': 50,
      ...Object.fromEntries(ids.map((id) => [`POST aclProfiles/${id}/publishTopicExceptions`, 1])),
      ...Object.fromEntries(ids.map((id) => [`POST aclProfiles/${id}/subscribeTopicExceptions`, 3])),
      ...Object.fromEntries(queues.map((name) => [`POST queues/${name}/subscriptions`, 3])),
    })
    // Runs that begin together may all see the shared profile absent; the first one makes it.
    expect(profiles).toBeGreaterThan(0)
    expect((await mesh.pairs()).map(({ state }) => state)).toEqual(Array(50).fill('in-sync'))
    expect(await mesh.drift()).toEqual([])
    expectSecretsInPlace(mesh)
  })

  it('repair the same drift once', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `app-${index}`)
    const clients = ids.map((id) => client(id))
    await using mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, clients) })
    await mesh.sweep()
    const broker = mesh.broker()
    for (const id of ids) broker.state.clientUsernames.remove(keyOf(id))
    broker.requests.reset()
    const engines = [mesh.context.engine, (await mesh.another('second')).engine]
    await Promise.all(engines.map((engine) => engine.sweep(mesh.key(), { trigger: 'sweep' })))
    expect(broker.requests.writes).toBe(20)
    expect(await mesh.drift()).toHaveLength(20)
    expect(await mesh.drift({ openOnly: true })).toEqual([])
    expectSecretsInPlace(mesh)
  })
})

async function until(condition: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + 20_000
  while (!condition()) {
    if (performance.now() > giveUpAtMs) throw new Error('waited 20 seconds in vain')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
