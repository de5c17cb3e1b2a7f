import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import { requestPasswords } from '../../src/store/pairs.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { suppliedCredential } from './import-fixtures.ts'
import {
  type ClientObjects,
  client,
  givenSecretOf,
  keyOf,
  objectsOf,
  ordersPortal,
  PUBLISH,
  SUBSCRIBE,
  snapshotOf,
} from './reconcile-fixtures.ts'

interface DriftCase {
  /** What somebody does on the broker behind our back. */
  readonly inject: (state: MsgVpnState, names: ClientObjects) => void
  readonly object: keyof ClientObjects
  readonly kind: 'missing' | 'changed'
  readonly before: object
  readonly after: object
  /** Write requests that the repair takes. */
  readonly writes: number
}

const CASES: Readonly<Record<string, DriftCase>> = {
  'a deleted client username': {
    inject: (state, { clientUsername }) => state.clientUsernames.remove(clientUsername),
    object: 'clientUsername',
    kind: 'missing',
    before: {},
    after: expect.objectContaining({ enabled: true, guaranteedEndpointPermissionOverrideEnabled: false }),
    writes: 1,
  },
  'a disabled client username': {
    inject: (state, { clientUsername }) => state.clientUsernames.change(clientUsername, { enabled: false }),
    object: 'clientUsername',
    kind: 'changed',
    before: { enabled: false },
    after: { enabled: true },
    writes: 1,
  },
  'a client username that may override the permissions of endpoints': {
    inject: (state, { clientUsername }) =>
      state.clientUsernames.change(clientUsername, {
        guaranteedEndpointPermissionOverrideEnabled: true,
        subscriptionManagerEnabled: true,
      }),
    object: 'clientUsername',
    kind: 'changed',
    before: { guaranteedEndpointPermissionOverrideEnabled: true, subscriptionManagerEnabled: true },
    after: { guaranteedEndpointPermissionOverrideEnabled: false, subscriptionManagerEnabled: false },
    writes: 1,
  },
  'a changed default action of an ACL profile': {
    inject: (state, { aclProfile }) =>
      state.aclProfiles.change(aclProfile, {
        publishTopicDefaultAction: 'allow',
        clientConnectDefaultAction: 'disallow',
      }),
    object: 'aclProfile',
    kind: 'changed',
    before: { publishTopicDefaultAction: 'allow', clientConnectDefaultAction: 'disallow' },
    after: { publishTopicDefaultAction: 'disallow', clientConnectDefaultAction: 'allow' },
    writes: 1,
  },
  'an added publish exception': {
    inject: (state, { aclProfile }) =>
      state.aclProfiles.addMember(aclProfile, 'publishTopicExceptions', 'smf,payroll/>'),
    object: 'aclProfile',
    kind: 'changed',
    before: { publishTopicExceptions: ['payroll/>'] },
    after: { publishTopicExceptions: [] },
    writes: 1,
  },
  'an added subscribe exception in MQTT syntax': {
    inject: (state, { aclProfile }) => state.aclProfiles.addMember(aclProfile, 'subscribeTopicExceptions', 'mqtt,#'),
    object: 'aclProfile',
    kind: 'changed',
    before: { subscribeTopicExceptionsMqtt: ['#'] },
    after: { subscribeTopicExceptionsMqtt: [] },
    writes: 1,
  },
  'an exception of ours in the other syntax, which is another exception': {
    inject: (state, { aclProfile }) => {
      state.aclProfiles.removeMember(aclProfile, 'publishTopicExceptions', 'smf,orders/*/cancel')
      state.aclProfiles.addMember(aclProfile, 'publishTopicExceptions', 'mqtt,orders/*/cancel')
    },
    object: 'aclProfile',
    kind: 'changed',
    before: { publishTopicExceptions: [], publishTopicExceptionsMqtt: ['orders/*/cancel'] },
    after: { publishTopicExceptions: ['orders/*/cancel'], publishTopicExceptionsMqtt: [] },
    writes: 2,
  },
  'a removed subscribe exception': {
    inject: (state, { aclProfile }) =>
      state.aclProfiles.removeMember(aclProfile, 'subscribeTopicExceptions', 'smf,orders/asia/changed'),
    object: 'aclProfile',
    kind: 'changed',
    before: { subscribeTopicExceptions: [] },
    after: { subscribeTopicExceptions: ['orders/asia/changed'] },
    writes: 1,
  },
  'an ACL profile without any of its exceptions': {
    inject: (state, { aclProfile }) => {
      for (const kind of ['publishTopicExceptions', 'subscribeTopicExceptions'] as const) {
        for (const member of state.aclProfiles.members(aclProfile, kind)) {
          state.aclProfiles.removeMember(aclProfile, kind, member)
        }
      }
    },
    object: 'aclProfile',
    kind: 'changed',
    before: { publishTopicExceptions: [], subscribeTopicExceptions: [] },
    after: { publishTopicExceptions: PUBLISH, subscribeTopicExceptions: SUBSCRIBE },
    writes: 4,
  },
  'a deleted ACL profile': {
    inject: (state, { aclProfile }) => state.aclProfiles.remove(aclProfile),
    object: 'aclProfile',
    kind: 'missing',
    before: {},
    after: expect.objectContaining({ publishTopicExceptions: PUBLISH, subscribeTopicExceptions: SUBSCRIBE }),
    writes: 5,
  },
  'a queue that is switched off': {
    inject: (state, { queue }) => state.queues.change(queue, { ingressEnabled: false, egressEnabled: false }),
    object: 'queue',
    kind: 'changed',
    before: { ingressEnabled: false, egressEnabled: false },
    after: { ingressEnabled: true, egressEnabled: true },
    writes: 1,
  },
  'a queue with another quota and time to live': {
    inject: (state, { queue }) =>
      state.queues.change(queue, { maxMsgSpoolUsage: 1, maxTtl: 5, respectTtlEnabled: true }),
    object: 'queue',
    kind: 'changed',
    before: { maxMsgSpoolUsage: 1, maxTtl: 5, respectTtlEnabled: true },
    after: { maxMsgSpoolUsage: 500, maxTtl: 0, respectTtlEnabled: false },
    writes: 1,
  },
  'a queue with one subscription more and one less': {
    inject: (state, { queue }) => {
      state.queues.addMember(queue, 'subscriptions', 'payroll/>')
      state.queues.removeMember(queue, 'subscriptions', 'orders/*/placed')
    },
    object: 'queue',
    kind: 'changed',
    before: { subscriptions: ['payroll/>'] },
    after: { subscriptions: ['orders/*/placed'] },
    writes: 2,
  },
  'a deleted queue': {
    inject: (state, { queue }) => state.queues.remove(queue),
    object: 'queue',
    kind: 'missing',
    before: {},
    after: expect.objectContaining({ permission: 'no-access', subscriptions: SUBSCRIBE }),
    writes: 4,
  },
}

describe('drift that a sweep finds and repairs', () => {
  const ids = new Map(Object.keys(CASES).map((name, index) => [name, `app-${index}`]))
  let mesh: TestMesh
  beforeAll(async () => {
    const clients = [...ids.values()].map((id) => client(id))
    mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, clients) })
    await mesh.sweep()
  })
  afterAll(() => mesh[Symbol.asyncDispose]())

  it.each(Object.entries(CASES))('%s', async (name, drift) => {
    const id = ids.get(name) ?? ''
    const broker = mesh.broker()
    const names = objectsOf(broker, id)
    const asItWas = snapshotOf(broker)
    drift.inject(broker.state, names)
    expect(snapshotOf(broker)).not.toEqual(asItWas)

    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 1, failed: 0, waiting: 0 })
    expect(broker.requests.writes).toBe(drift.writes)

    expect(snapshotOf(broker)).toEqual(asItWas)
    const [row, ...others] = await mesh.drift({ registrationId: id })
    expect(others).toEqual([])
    expect(row).toMatchObject({
      brokerId: 'broker-1',
      objectKind: drift.object,
      objectName: names[drift.object],
      kind: drift.kind,
      reason: drift.kind === 'missing' ? 'deleted-on-broker' : 'changed-on-broker',
      before: drift.before,
      after: drift.after,
      action: 'repaired',
      repairedByRunId: row?.runId,
      repairedAtMs: expect.any(Number),
    })
    if (drift.kind === 'changed') expect(row?.before).toEqual(drift.before)

    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 0, failed: 0 })
    expect(broker.requests.writes).toBe(0)
    expect(await mesh.drift({ openOnly: true })).toEqual([])
  })

  it.each<readonly [string, 'changed' | 'missing', (state: MsgVpnState) => void]>([
    [
      'a changed client profile, which all share',
      'changed',
      ({ clientProfiles }) =>
        clientProfiles.change('keymesh-send-receive', {
          allowGuaranteedMsgReceiveEnabled: false,
          allowBridgeConnectionsEnabled: true,
        }),
    ],
    [
      'a deleted client profile, which all share',
      'missing',
      ({ clientProfiles }) => clientProfiles.remove('keymesh-send-receive'),
    ],
  ])('%s: found once, repaired once', async (_title, kind, inject) => {
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    const known = (await mesh.drift()).length
    inject(broker.state)
    broker.requests.reset()
    expect(await mesh.sweep()).toMatchObject({ failed: 0, waiting: 0 })
    expect(broker.requests.writes).toBe(1)
    expect(snapshotOf(broker)).toEqual(asItWas)
    const [row, ...others] = await mesh.drift()
    expect(others).toHaveLength(known)
    expect(row).toMatchObject({ objectName: 'keymesh-send-receive', kind, action: 'repaired' })
    expect(await mesh.drift({ openOnly: true })).toEqual([])
  })

  it('a wiped broker: everything comes back, with the same passwords', async () => {
    const broker = mesh.broker()
    const asItWas = snapshotOf(broker)
    broker.wipe()
    expect(await mesh.sweep()).toMatchObject({ changed: ids.size, failed: 0, waiting: 0 })
    expect(snapshotOf(broker)).toEqual(asItWas)
    const rows = await mesh.drift({ registrationId: 'app-0' })
    const missing = rows.filter(({ runId }) => runId === rows[0]?.runId).map(({ objectKind }) => objectKind)
    expect(missing.toSorted()).toEqual(['aclProfile', 'clientUsername', 'queue'])
    expect(await mesh.drift({ openOnly: true })).toEqual([])
  })

  it('shows a plan that is what the run then does', async () => {
    const broker = mesh.broker()
    const { aclProfile, clientUsername } = objectsOf(broker, 'app-1')
    broker.state.clientUsernames.remove(clientUsername)
    broker.state.aclProfiles.addMember(aclProfile, 'publishTopicExceptions', 'smf,payroll/>')
    broker.requests.reset()
    const plans = await mesh.plans()
    expect(broker.requests.writes).toBe(0)
    expect(await mesh.drift({ openOnly: true })).toEqual([])
    expect(plans).toHaveLength(1)
    const outcome = await mesh.context.engine.reconcilePair(mesh.pair('app-1'), { trigger: 'operator' })
    if (outcome.status !== 'done') throw new Error(`the run was ${outcome.status}`)
    expect(outcome.plan).toEqual(plans[0])
    expect(outcome.executed).toEqual(plans[0]?.steps.map(({ action }) => action))
    expect(broker.requests.writes).toBe(2)
  })
})

describe('a password', () => {
  it('that somebody changed shows in no configuration read; reapply writes the stored one, and only that', async () => {
    await using mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, [client('app'), client('other')]) })
    await mesh.sweep()
    const { state, requests } = mesh.broker()
    state.setPassword(keyOf('app'), 'somebody-elses')
    expect(await mesh.sweep()).toMatchObject({ changed: 0 })
    expect(state.passwordOf(keyOf('app'))).toBe('somebody-elses')

    requests.reset()
    requests.keepLog(100)
    const pairs = await requestPasswords(mesh.context.db, {
      accountId: mesh.context.accountId,
      consumerKey: keyOf('app'),
    })
    expect(pairs).toEqual([mesh.pair('app')])
    await mesh.context.engine.reconcilePair(mesh.pair('app'), { trigger: 'operator' })
    expect(state.passwordOf(keyOf('app'))).toBe(givenSecretOf('app'))
    const writes = requests.log.filter(({ method }) => method !== 'GET')
    expect(writes.map(({ method, target }) => `${method} ${target}`)).toEqual([
      `PATCH /SEMP/v2/config/msgVpns/sandbox/clientUsernames/${keyOf('app')}`,
    ])

    // Asked for once, written once; and always written when asked for again.
    requests.reset()
    await mesh.context.engine.reconcilePair(mesh.pair('app'), { trigger: 'operator' })
    expect(requests.writes).toBe(0)
    await requestPasswords(mesh.context.db, { accountId: mesh.context.accountId, registrationId: 'app' })
    expect(await mesh.sweep()).toMatchObject({ changed: 1 })
    expect(requests.writes).toBe(1)
  })

  it('that is new in the catalogue is written once, without a drop of clients', async () => {
    await using mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, [client('app')]) })
    await mesh.sweep()
    const { state, requests } = mesh.broker()
    const connected = state.connect(keyOf('app'))
    const rotated = suppliedCredential('main', keyOf('app'), 'the-next-secret-of-app')
    await mesh.import({ registrations: [client('app', { credentials: [rotated] })] })
    requests.reset()
    expect(await mesh.sweep()).toMatchObject({ changed: 1 })
    expect(requests.writes).toBe(1)
    expect(state.passwordOf(keyOf('app'))).toBe('the-next-secret-of-app')
    expect(state.accounts.isConnected(connected)).toBe(true)
    expect(await mesh.drift()).toEqual([])
    requests.reset()
    await mesh.sweep()
    expect(requests.writes).toBe(0)
  })
})
