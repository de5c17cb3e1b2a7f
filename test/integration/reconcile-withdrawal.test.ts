import { describe, expect, it } from 'vitest'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { confirmWithdrawals, laggingPairs } from '../../src/store/pairs.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { accessRequest, suppliedCredential } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal, snapshotOf } from './reconcile-fixtures.ts'

const HOUR_MS = 3_600_000
const GRACE_MS = 24 * HOUR_MS

/** A clock that the database, which has its own, is never ahead of by less than the grace period. */
const clockInThePast = () => {
  let nowMs = Date.now() - 3 * GRACE_MS
  return {
    now: () => nowMs,
    forward: (ms: number) => {
      nowMs += ms
    },
  }
}

const revoked = (id: string): PortalRegistration =>
  client(id, { accessRequests: [accessRequest({ state: 'REVOKED' })] })

/** `app` and some others, all in sync. */
async function meshAtWork(now: () => number, others = 3): Promise<TestMesh> {
  const mesh = await withMesh({ now, portal: (brokers) => ordersPortal(brokers, [client('app'), ...clients(others)]) })
  await mesh.sweep()
  return mesh
}

const clients = (count: number): readonly PortalRegistration[] =>
  Array.from({ length: count }, (_, index) => client(`other-${index}`))

const namesOf = (mesh: TestMesh) => {
  const { aclProfiles, clientUsernames, queues } = snapshotOf(mesh.broker())
  return {
    aclProfiles: Object.keys(aclProfiles),
    clientUsernames: Object.keys(clientUsernames),
    queues: Object.keys(queues),
  }
}

async function ledgerOf(mesh: TestMesh, registration: string): Promise<readonly string[]> {
  const rows = await mesh.context.db
    .selectFrom('ledger')
    .select('kind')
    .where('registration_id', '=', registration)
    .orderBy('kind')
    .execute()
  return rows.map(({ kind }) => kind)
}

describe('a registration that nothing asks for any more', () => {
  it('is switched off at once and removed after the grace period, by a sweep or by the poll', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const { state, requests } = mesh.broker()
    const { queue } = objectsOf(mesh.broker(), 'app')
    const asItWas = namesOf(mesh)
    const connected = state.connect(keyOf('app'))
    await mesh.import({ registrations: [revoked('app'), ...clients(3)] })
    requests.reset()
    await mesh.sweep()
    expect(requests.writes).toBe(1)
    expect(state.clientUsernames.get(keyOf('app'))?.enabled).toBe(false)
    expect(state.accounts.isConnected(connected)).toBe(false)
    expect(namesOf(mesh)).toEqual(asItWas)

    clock.forward(GRACE_MS - 1)
    requests.reset()
    await mesh.sweep()
    expect(requests.writes).toBe(0)
    expect(namesOf(mesh)).toEqual(asItWas)

    clock.forward(1)
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([mesh.pair('app')])
    expect(await mesh.plans()).toHaveLength(1)
    expect(await mesh.sweep()).toMatchObject({ changed: 1, failed: 0 })
    expect(requests.writes).toBe(3)
    expect(namesOf(mesh)).toEqual({
      aclProfiles: asItWas.aclProfiles.filter((name) => name !== 'app'),
      clientUsernames: asItWas.clientUsernames.filter((name) => name !== keyOf('app')),
      queues: asItWas.queues.filter((name) => name !== queue),
    })
    expect(await ledgerOf(mesh, 'app')).toEqual([])
    expect(await mesh.drift()).toEqual([])
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([])
  })

  it('stays switched off while it waits, whatever somebody does', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const { state } = mesh.broker()
    await mesh.import({ registrations: [revoked('app'), ...clients(3)] })
    await mesh.sweep()
    state.clientUsernames.change(keyOf('app'), { enabled: true })
    expect(await mesh.sweep()).toMatchObject({ changed: 1 })
    expect(state.clientUsernames.get(keyOf('app'))?.enabled).toBe(false)
    expect(await mesh.drift()).toMatchObject([
      { objectKind: 'clientUsername', before: { enabled: true }, after: { enabled: false }, action: 'repaired' },
    ])
    // The grace period goes on from the withdrawal.
    clock.forward(GRACE_MS)
    await mesh.sweep()
    expect(state.clientUsernames.has(keyOf('app'))).toBe(false)
  })

  it('comes back whole when it is wanted again in time', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const asItWas = snapshotOf(mesh.broker())
    await mesh.import({ registrations: [revoked('app'), ...clients(3)] })
    await mesh.sweep()
    clock.forward(GRACE_MS - 1)
    await mesh.import({
      registrations: [client('app', { accessRequests: [accessRequest({ state: 'APPROVED' })] }), ...clients(3)],
    })
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0 })
    expect(snapshotOf(mesh.broker())).toEqual(asItWas)
    clock.forward(2 * GRACE_MS)
    await mesh.sweep()
    expect(snapshotOf(mesh.broker())).toEqual(asItWas)
  })

  it('that the file no longer holds goes the same way', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const { state } = mesh.broker()
    await mesh.import({ registrations: clients(3) }, { prune: true })
    await mesh.sweep()
    expect(state.clientUsernames.get(keyOf('app'))?.enabled).toBe(false)
    clock.forward(GRACE_MS)
    await mesh.sweep()
    expect(namesOf(mesh).clientUsernames).toEqual(['key-of-other-0', 'key-of-other-1', 'key-of-other-2'])
    expect(namesOf(mesh).queues).toHaveLength(3)
    expect(namesOf(mesh).aclProfiles).toHaveLength(3)
    expect(await ledgerOf(mesh, 'app')).toEqual([])
  })

  it('leaves a queue that holds messages until they are gone', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const { state } = mesh.broker()
    const { queue } = objectsOf(mesh.broker(), 'app')
    state.setQueued(queue, { messages: 7, bytes: 700 })
    await mesh.import({ registrations: [revoked('app'), ...clients(3)] })
    await mesh.sweep()
    clock.forward(GRACE_MS)
    const [plan] = await mesh.plans()
    expect(plan?.notes).toEqual([expect.stringContaining(`${queue} is withdrawn and kept: it holds 7 messages`)])
    await mesh.sweep()
    expect(state.clientUsernames.has(keyOf('app'))).toBe(false)
    expect(state.queues.has(queue)).toBe(true)
    expect(await ledgerOf(mesh, 'app')).toContain('queue')
    state.setQueued(queue, { messages: 0, bytes: 0 })
    clock.forward(GRACE_MS)
    await mesh.sweep()
    expect(state.queues.has(queue)).toBe(false)
    expect(await ledgerOf(mesh, 'app')).toEqual([])
  })

  it('loses a queue with messages where the policy says so', async () => {
    const clock = clockInThePast()
    await using mesh = await meshAtWork(clock.now)
    const { state } = mesh.broker()
    const { queue } = objectsOf(mesh.broker(), 'app')
    state.setQueued(queue, { messages: 7, bytes: 700 })
    const policy = { ...DEFAULT_BROKER_POLICY, queuesWithMessages: 'delete' as const }
    await mesh.import({
      registrations: [revoked('app'), ...clients(3)],
      brokers: mesh.brokers.map((broker) => ({ ...broker, policy })),
    })
    await mesh.sweep()
    clock.forward(GRACE_MS)
    await mesh.sweep()
    expect(state.queues.has(queue)).toBe(false)
  })
})

describe('a credential that is removed', () => {
  it('is switched off and later removed; the queue goes to the one that stays', async () => {
    const clock = clockInThePast()
    const older = suppliedCredential('older', 'key-older', givenSecretOf('older'))
    const newer = suppliedCredential('newer', 'key-newer', givenSecretOf('newer'))
    const both = client('app', { credentials: [newer, older] })
    await using mesh = await withMesh({ now: clock.now, portal: (brokers) => ordersPortal(brokers, [both]) })
    await mesh.sweep()
    const { state } = mesh.broker()
    const [queue = ''] = state.queues.names()
    const owner = String(state.queues.get(queue)?.owner)
    const leaving = owner === 'key-older' ? older : newer
    const staying = owner === 'key-older' ? newer : older
    await mesh.import({ registrations: [client('app', { credentials: [staying] })] }, { prune: true })
    await mesh.sweep(0, { allowDisruptive: true })
    expect(state.clientUsernames.get(String(leaving.consumerKey))?.enabled).toBe(false)
    expect(state.clientUsernames.get(String(staying.consumerKey))?.enabled).toBe(true)
    expect(state.queues.get(queue)?.owner).toBe(staying.consumerKey)
    clock.forward(GRACE_MS)
    await mesh.sweep()
    expect(state.clientUsernames.has(String(leaving.consumerKey))).toBe(false)
    expect(state.clientUsernames.has(String(staying.consumerKey))).toBe(true)
    expect(state.queues.has(queue)).toBe(true)
  })
})

describe('the guard against mass withdrawal', () => {
  const LIMITED = { ...DEFAULT_BROKER_POLICY, maxWithdrawals: 2, maxWithdrawalsPercent: 30 }
  const withLimit = (mesh: TestMesh) => mesh.brokers.map((broker) => ({ ...broker, policy: LIMITED }))
  const ids = (count: number) => Array.from({ length: count }, (_, index) => `other-${index}`)
  /** The first `count` of six withdrawn. */
  const withdrawing = (count: number) => ids(6).map((id, index) => (index < count ? revoked(id) : client(id)))

  async function sixAtWork(): Promise<TestMesh> {
    const mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, clients(6)) })
    await mesh.import({ brokers: withLimit(mesh) })
    await mesh.sweep()
    return mesh
  }
  const enabled = (mesh: TestMesh) => {
    const { state } = mesh.broker()
    return ids(6).filter((id) => state.clientUsernames.get(keyOf(id))?.enabled === true).length
  }

  it('lets a few go', async () => {
    await using mesh = await sixAtWork()
    await mesh.import({ registrations: withdrawing(2) })
    await mesh.sweep()
    expect(enabled(mesh)).toBe(4)
  })

  it('refuses many, changes nothing, and lets them go when a person confirms', async () => {
    await using mesh = await sixAtWork()
    const asItWas = snapshotOf(mesh.broker())
    await mesh.import({ registrations: withdrawing(3) })
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 3, failed: 0 })
    expect(snapshotOf(mesh.broker())).toEqual(asItWas)
    expect((await mesh.pairs()).filter(({ state }) => state === 'refused')).toMatchObject(
      ['other-0', 'other-1', 'other-2'].map((registration) => ({
        registration,
        reason: expect.stringMatching(
          /^3 of 6 registrations would be withdrawn from the broker, more than 30 percent\. Look at the plan/,
        ),
      })),
    )
    const confirmed = await confirmWithdrawals(mesh.context.db, mesh.key())
    expect(confirmed).toHaveLength(3)
    expect(await mesh.sweep()).toMatchObject({ changed: 3, waiting: 0 })
    expect(enabled(mesh)).toBe(3)
    expect((await mesh.pairs()).map(({ state }) => state)).toEqual(Array(6).fill('in-sync'))
  })

  it('counts what went one after the other, too', async () => {
    await using mesh = await sixAtWork()
    for (const count of [1, 2, 3, 4]) {
      await mesh.import({ registrations: withdrawing(count) })
      await mesh.sweep()
    }
    expect(enabled(mesh)).toBe(4)
    expect(
      (await mesh.pairs()).filter(({ state }) => state === 'refused').map(({ registration }) => registration),
    ).toEqual(['other-2', 'other-3'])
  })

  it('refuses to empty a broker', async () => {
    await using mesh = await sixAtWork()
    const asItWas = snapshotOf(mesh.broker())
    const { products = [] } = ordersPortal(mesh.brokers, [])
    await mesh.import({
      products: products.map((each) => ({
        ...each,
        versions: each.versions.map((version) => ({ ...version, state: 'RETIRED' as const })),
      })),
    })
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 6 })
    expect(snapshotOf(mesh.broker())).toEqual(asItWas)
    expect((await mesh.pairs()).map(({ reason }) => reason)).toEqual(
      Array(6).fill(
        expect.stringContaining('6 of 6 registrations would be withdrawn from the broker; nothing would be left'),
      ),
    )
  })
})
