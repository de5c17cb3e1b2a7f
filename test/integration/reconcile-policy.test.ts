import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BrokerPolicy, DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import type { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import type { SandboxBrokerOptions } from '../../src/sandbox/sandbox-broker.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { type ClientObjects, client, keyOf, objectsOf, ordersPortal, snapshotOf } from './reconcile-fixtures.ts'

interface Setup {
  readonly policy?: Partial<BrokerPolicy>
  readonly sandbox?: SandboxBrokerOptions
  readonly now?: () => number
  readonly ids?: readonly string[]
}

/** One broker with this policy, registrations imported and not reconciled yet. */
async function meshWith({ policy, sandbox, now, ids = ['app'] }: Setup): Promise<TestMesh> {
  return withMesh({
    ...(sandbox && { sandbox }),
    ...(now && { now }),
    portal: (brokers) => ({
      ...ordersPortal(
        brokers,
        ids.map((id) => client(id)),
      ),
      brokers: withPolicy(brokers, policy),
    }),
  })
}

const withPolicy = <Broker>(brokers: readonly Broker[], policy: Partial<BrokerPolicy> = {}) =>
  brokers.map((broker) => ({ ...broker, policy: { ...DEFAULT_BROKER_POLICY, ...policy } }))

/** Changes that a broker makes only by dropping clients. */
const DISRUPTIVE: Readonly<Record<string, (state: MsgVpnState, names: ClientObjects) => void>> = {
  'another ACL profile': (state, { clientUsername }) =>
    state.clientUsernames.change(clientUsername, { aclProfileName: 'default' }),
  'another client profile': (state, { clientUsername }) =>
    state.clientUsernames.change(clientUsername, { clientProfileName: 'default' }),
  'another owner of a queue': (state, { queue }) => state.queues.change(queue, { owner: 'somebody' }),
  'another permission on a queue': (state, { queue }) => state.queues.change(queue, { permission: 'consume' }),
  'another access type of a queue': (state, { queue }) => state.queues.change(queue, { accessType: 'non-exclusive' }),
}

describe('drift whose repair drops clients waits for a hand, and an operator may let it run', () => {
  const ids = new Map(Object.keys(DISRUPTIVE).map((name, index) => [name, `app-${index}`]))
  let mesh: TestMesh
  beforeAll(async () => {
    mesh = await meshWith({ policy: { disruptive: 'manual' }, ids: [...ids.values()] })
    await mesh.sweep()
  })
  afterAll(() => mesh[Symbol.asyncDispose]())

  it.each(Object.entries(DISRUPTIVE))('%s', async (name, inject) => {
    const registrationId = ids.get(name) ?? ''
    const pairNow = async () => (await mesh.pairs()).filter(({ registration }) => registration === registrationId)
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    inject(broker.state, objectsOf(broker, registrationId))
    const drifted = snapshotOf(broker)
    const connected = broker.state.connect(keyOf(registrationId))

    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 1, failed: 0 })
    expect(broker.requests.writes).toBe(0)
    expect(snapshotOf(broker)).toEqual(drifted)
    expect(broker.state.accounts.isConnected(connected)).toBe(true)
    expect(await pairNow()).toMatchObject([
      { state: 'held', reason: 'The action drops live clients and waits for an operator.' },
    ])
    expect(await mesh.drift({ openOnly: true })).toMatchObject([{ registrationId, kind: 'changed', action: 'held' }])

    // Seen again and again, it stays one difference.
    await mesh.sweep()
    expect(await mesh.drift({ registrationId })).toHaveLength(1)

    expect(await mesh.sweep(0, { allowDisruptive: true })).toMatchObject({ changed: 1, waiting: 0 })
    expect(snapshotOf(broker)).toEqual(asItWas)
    expect(await pairNow()).toMatchObject([{ state: 'in-sync', reason: null }])
    expect(await mesh.drift({ openOnly: true })).toEqual([])
    expect(await mesh.drift({ registrationId })).toMatchObject([
      { action: 'repaired', repairedAtMs: expect.any(Number) },
    ])
  })
})

describe('drift whose repair drops clients', () => {
  it('is repaired at once where the policy allows it', async () => {
    await using mesh = await meshWith({ policy: { disruptive: 'allow' } })
    await mesh.sweep()
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    const names = objectsOf(broker, 'app')
    for (const inject of Object.values(DISRUPTIVE)) inject(broker.state, names)
    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0, failed: 0 })
    expect(snapshotOf(broker)).toEqual(asItWas)
    // One write for each object; the broker switches off and on by itself.
    expect(broker.requests.snapshot().writes).toBe(2)
    expect(await mesh.drift()).toMatchObject([{ action: 'repaired' }, { action: 'repaired' }])
  })

  it('is repaired in the window only', async () => {
    const window = { fromMinute: 120, toMinute: 240 }
    let nowMs = Date.parse('2026-03-01T01:59:00Z')
    await using mesh = await meshWith({ policy: { disruptive: 'window', window }, now: () => nowMs })
    await mesh.sweep()
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    broker.state.clientUsernames.change(keyOf('app'), { aclProfileName: 'default' })
    expect(await mesh.sweep()).toMatchObject({ waiting: 1 })
    expect(await mesh.pairs()).toMatchObject([
      { state: 'held', reason: 'The action drops live clients and waits for the window of the broker.' },
    ])
    nowMs = Date.parse('2026-03-01T04:00:00Z')
    expect(await mesh.sweep()).toMatchObject({ waiting: 1 })
    nowMs = Date.parse('2026-03-02T02:00:00Z')
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0 })
    expect(snapshotOf(broker)).toEqual(asItWas)
  })

  it('does not hold up what disturbs nobody', async () => {
    await using mesh = await meshWith({ ids: ['app', 'other'] })
    await mesh.sweep()
    const broker = mesh.broker()
    const { aclProfile, queue } = objectsOf(broker, 'app')
    broker.state.queues.change(queue, { owner: 'somebody' })
    broker.state.aclProfiles.addMember(aclProfile, 'publishTopicExceptions', 'smf,payroll/>')
    broker.state.clientUsernames.remove(keyOf('other'))
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 1 })
    expect(broker.state.aclProfiles.members(aclProfile, 'publishTopicExceptions')).toEqual(['smf,orders/*/cancel'])
    expect(broker.state.queues.get(queue)?.owner).toBe('somebody')
    expect(broker.state.clientUsernames.has(keyOf('other'))).toBe(true)
    const drift = await mesh.drift()
    expect(drift.map(({ objectKind, action }) => `${objectKind} ${action}`).toSorted()).toEqual([
      'aclProfile repaired',
      'clientUsername repaired',
      'queue held',
    ])
  })

  it('on SEMP 2.30 is done by switching off, changing, and switching on again', async () => {
    await using mesh = await meshWith({ policy: { disruptive: 'allow' }, sandbox: { sempVersion: '2.30' } })
    await mesh.sweep()
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    const { queue } = objectsOf(broker, 'app')
    broker.state.clientUsernames.change(keyOf('app'), { aclProfileName: 'default' })
    broker.state.queues.change(queue, { owner: 'somebody' })
    const [plan] = await mesh.plans()
    expect(
      plan?.steps.map(({ action, disruptive }) => ({ disables: Reflect.get(action, 'disables'), disruptive })),
    ).toEqual([
      { disables: ['enabled'], disruptive: true },
      { disables: ['egressEnabled'], disruptive: true },
    ])
    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 1, failed: 0 })
    expect(snapshotOf(broker)).toEqual(asItWas)
    expect(broker.requests.count('patch')).toBe(6)
  })
})

describe('the mode of a broker', () => {
  it('observe-only: nothing is written, all is said', async () => {
    await using mesh = await meshWith({ policy: { mode: 'observe-only' } })
    const broker = mesh.broker()
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 1, failed: 0 })
    expect(broker.requests.writes).toBe(0)
    expect(await mesh.pairs()).toMatchObject([{ state: 'held', reason: 'The broker is observed only.', reached: 0 }])
    const [plan] = await mesh.plans()
    expect(plan?.steps.length).toBeGreaterThan(0)
    expect(plan?.steps.filter(({ decision }) => decision !== 'held')).toEqual([])
    // An operator who accepts drops does not thereby accept writes.
    await mesh.sweep(0, { allowDisruptive: true })
    expect(broker.requests.writes).toBe(0)
  })

  it('observe-only on a broker that was written before: drift is recorded and left', async () => {
    await using mesh = await meshWith({})
    await mesh.sweep()
    await mesh.import({ brokers: withPolicy(mesh.brokers, { mode: 'observe-only' }) })
    const broker = mesh.broker()
    broker.state.clientUsernames.change(keyOf('app'), { enabled: false })
    broker.state.aclProfiles.remove('app')
    const drifted = snapshotOf(broker)
    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 1 })
    expect(broker.requests.writes).toBe(0)
    expect(snapshotOf(broker)).toEqual(drifted)
    expect(await mesh.drift({ openOnly: true })).toMatchObject([
      { objectKind: 'clientUsername', kind: 'changed', action: 'held' },
      { objectKind: 'aclProfile', kind: 'missing', action: 'held' },
    ])
  })

  it('create-only: what is missing comes back, what is there stays as it is', async () => {
    await using mesh = await meshWith({ policy: { mode: 'create-only' } })
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0, failed: 0 })
    const broker = mesh.broker()
    const { aclProfile, queue } = objectsOf(broker, 'app')
    broker.state.clientUsernames.remove(keyOf('app'))
    broker.state.queues.change(queue, { egressEnabled: false })
    broker.state.aclProfiles.addMember(aclProfile, 'publishTopicExceptions', 'smf,payroll/>')
    await mesh.sweep()
    expect(broker.state.clientUsernames.has(keyOf('app'))).toBe(true)
    expect(broker.state.queues.get(queue)?.egressEnabled).toBe(false)
    expect(broker.state.aclProfiles.members(aclProfile, 'publishTopicExceptions')).toContain('smf,payroll/>')
    expect(await mesh.pairs()).toMatchObject([
      { state: 'held', reason: 'The policy of the broker allows creations only.' },
    ])
    broker.requests.reset()
    await mesh.sweep()
    expect(broker.requests.writes).toBe(0)
  })
})
