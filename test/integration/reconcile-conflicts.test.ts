import { describe, expect, it } from 'vitest'
import { type Adoption, DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import type { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import { recordAdoption } from '../../src/store/pairs.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import {
  client,
  givenSecretOf,
  keyOf,
  objectsOf,
  ordersPortal,
  PUBLISH,
  SUBSCRIBE,
  snapshotOf,
} from './reconcile-fixtures.ts'

const FOREIGN_SECRET = 'the-secret-of-a-legacy-client'

interface Foreign {
  readonly kind: 'aclProfile' | 'clientUsername'
  readonly name: string
  readonly put: (state: MsgVpnState) => void
  readonly remove: (state: MsgVpnState) => void
  readonly reason: string
  /** What the conflict keeps from being made. */
  readonly blocked: readonly string[]
}

const FOREIGN: Readonly<Record<string, Foreign>> = {
  'an ACL profile of somebody else': {
    kind: 'aclProfile',
    name: 'app',
    put: ({ aclProfiles }) => {
      aclProfiles.put('app', { publishTopicDefaultAction: 'allow' })
      aclProfiles.addMember('app', 'subscribeTopicExceptions', 'smf,payroll/>')
    },
    remove: ({ aclProfiles }) => aclProfiles.remove('app'),
    reason: 'foreign-object',
    blocked: ['clientUsername', 'queue'],
  },
  'a client username of somebody else': {
    kind: 'clientUsername',
    name: keyOf('app'),
    put: ({ clientUsernames }) =>
      clientUsernames.put(keyOf('app'), { enabled: true, aclProfileName: 'default', password: FOREIGN_SECRET }),
    remove: ({ clientUsernames }) => clientUsernames.remove(keyOf('app')),
    reason: 'foreign-username',
    blocked: ['queue'],
  },
}

async function inConflict(foreign: Foreign, adopt: Adoption = 'never'): Promise<TestMesh> {
  const mesh = await withMesh()
  foreign.put(mesh.broker().state)
  const brokers = mesh.brokers.map((broker) => ({ ...broker, policy: { ...DEFAULT_BROKER_POLICY, adopt } }))
  await mesh.import({ ...ordersPortal(mesh.brokers, [client('app'), client('other')]), brokers })
  return mesh
}

async function stateOf(mesh: TestMesh, registration: string): Promise<string | undefined> {
  return (await mesh.pairs()).find((pair) => pair.registration === registration)?.state
}

describe.each(Object.entries(FOREIGN))('%s with a name of ours', (_title, foreign) => {
  const foreignPart = (mesh: TestMesh) => {
    const { aclProfiles, clientUsernames } = snapshotOf(mesh.broker())
    return (foreign.kind === 'aclProfile' ? aclProfiles : clientUsernames)[foreign.name]
  }

  it('is reported and not touched, and blocks only what depends on it', async () => {
    await using mesh = await inConflict(foreign)
    const before = foreignPart(mesh)
    expect(await mesh.sweep()).toMatchObject({ failed: 0 })
    expect(foreignPart(mesh)).toEqual(before)
    expect(await stateOf(mesh, 'app')).toBe('conflict')
    expect(await stateOf(mesh, 'other')).toBe('in-sync')
    const conflicts = (await mesh.drift({ openOnly: true })).map(({ objectKind, kind, reason, action }) => ({
      objectKind,
      kind,
      reason,
      action,
    }))
    expect(conflicts.toSorted((a, b) => (a.objectKind < b.objectKind ? -1 : 1))).toEqual(
      [
        { objectKind: foreign.kind, kind: 'conflict', reason: foreign.reason, action: 'reported' },
        ...foreign.blocked.map((objectKind) => ({
          objectKind,
          kind: 'conflict',
          reason: 'depends-on-conflict',
          action: 'reported',
        })),
      ].toSorted((a, b) => (a.objectKind < b.objectKind ? -1 : 1)),
    )
    const { state, requests } = mesh.broker()
    const ours = state.queues.names().map((name) => state.queues.get(name)?.owner)
    expect(ours).toEqual([keyOf('other')])
    if (foreign.kind === 'aclProfile') expect(state.clientUsernames.has(keyOf('app'))).toBe(false)
    expect(await requestState(mesh, 'app')).toBe('ERROR')

    // Looked at again and again, it is left alone and stays one entry.
    requests.reset()
    await mesh.sweep()
    expect(requests.writes).toBe(0)
    expect(await mesh.drift()).toHaveLength(1 + foreign.blocked.length)
  })

  it('blocks no more when it is gone', async () => {
    await using mesh = await inConflict(foreign)
    await mesh.sweep()
    foreign.remove(mesh.broker().state)
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0, failed: 0 })
    await expectOurs(mesh)
  })

  it('becomes ours when a person adopts it', async () => {
    await using mesh = await inConflict(foreign)
    await mesh.sweep()
    await recordAdoption(mesh.context.db, mesh.key(), { kind: foreign.kind, name: foreign.name }, 'a test')
    // Its disruptive changes, if any, wait for a hand as with our own objects.
    await mesh.sweep(0, { allowDisruptive: true })
    await expectOurs(mesh)
    const ledger = await mesh.context.db
      .selectFrom('ledger')
      .select(['kind', 'origin'])
      .where('registration_id', '=', 'app')
      .where('name', '=', foreign.name)
      .execute()
    expect(ledger).toEqual([{ kind: foreign.kind, origin: 'adopted' }])
  })

  it('under the policy `adopt: always` becomes ours unless it is a client username', async () => {
    await using mesh = await inConflict(foreign, 'always')
    const before = foreignPart(mesh)
    await mesh.sweep(0, { allowDisruptive: true })
    if (foreign.kind !== 'clientUsername') return await expectOurs(mesh)
    expect(foreignPart(mesh)).toEqual(before)
    expect(await stateOf(mesh, 'app')).toBe('conflict')
  })

  it('under the policy `adopt: identical` stays foreign, for it differs', async () => {
    await using mesh = await inConflict(foreign, 'identical')
    const before = foreignPart(mesh)
    await mesh.sweep(0, { allowDisruptive: true })
    expect(foreignPart(mesh)).toEqual(before)
    expect(await stateOf(mesh, 'app')).toBe('conflict')
  })
})

async function requestState(mesh: TestMesh, registration: string): Promise<string | undefined> {
  const row = await mesh.context.db
    .selectFrom('access_requests')
    .select('state')
    .where('registration_id', '=', registration)
    .executeTakeFirst()
  return row?.state
}

async function expectOurs(mesh: TestMesh): Promise<void> {
  const broker = mesh.broker()
  expect(await stateOf(mesh, 'app')).toBe('in-sync')
  expect(await requestState(mesh, 'app')).toBe('LIVE')
  expect(await mesh.drift({ openOnly: true })).toEqual([])
  const { aclProfile, clientUsername } = objectsOf(broker, 'app')
  const { state } = broker
  expect(state.aclProfiles.get(aclProfile)?.publishTopicDefaultAction).toBe('disallow')
  expect(state.aclProfiles.members(aclProfile, 'publishTopicExceptions')).toEqual(
    PUBLISH.map((topic) => `smf,${topic}`),
  )
  expect(state.aclProfiles.members(aclProfile, 'subscribeTopicExceptions')).toEqual(
    SUBSCRIBE.map((topic) => `smf,${topic}`),
  )
  expect(state.clientUsernames.get(clientUsername)).toMatchObject({ enabled: true, aclProfileName: aclProfile })
  expect(state.passwordOf(clientUsername)).toBe(givenSecretOf('app'))
  broker.requests.reset()
  await mesh.sweep()
  expect(broker.requests.writes).toBe(0)
}

it('an identical ACL profile is adopted by `adopt: identical`, without a write on it', async () => {
  await using mesh = await withMesh()
  const broker = mesh.broker()
  broker.state.aclProfiles.put('app', { clientConnectDefaultAction: 'allow' })
  for (const topic of PUBLISH) broker.state.aclProfiles.addMember('app', 'publishTopicExceptions', `smf,${topic}`)
  for (const topic of SUBSCRIBE) broker.state.aclProfiles.addMember('app', 'subscribeTopicExceptions', `smf,${topic}`)
  const brokers = mesh.brokers.map((each) => ({
    ...each,
    policy: { ...DEFAULT_BROKER_POLICY, adopt: 'identical' as const },
  }))
  await mesh.import({ ...ordersPortal(mesh.brokers, [client('app')]), brokers })
  broker.requests.keepLog(100)
  await mesh.sweep()
  const writes = broker.requests.log.filter(({ method }) => method !== 'GET').map(({ target }) => target)
  expect(writes.filter((target) => target.includes('/aclProfiles'))).toEqual([])
  expect(writes.length).toBeGreaterThan(0)
  await expectOurs(mesh)
})

describe('a shared client profile', () => {
  const put = (mesh: TestMesh, values: Readonly<Record<string, boolean>>) =>
    mesh.broker().state.clientProfiles.put('keymesh-send-receive', values)

  it('that somebody made is used when it allows what is needed, and never written', async () => {
    await using mesh = await withMesh()
    put(mesh, {
      allowGuaranteedMsgSendEnabled: true,
      allowGuaranteedMsgReceiveEnabled: true,
      allowTransactedSessionsEnabled: true,
      allowGuaranteedEndpointCreateEnabled: true,
    })
    const { clientProfiles } = snapshotOf(mesh.broker())
    await mesh.import(ordersPortal(mesh.brokers, [client('app')]))
    await mesh.sweep()
    expect(snapshotOf(mesh.broker()).clientProfiles).toEqual(clientProfiles)
    expect(mesh.broker().state.clientUsernames.get(keyOf('app'))?.clientProfileName).toBe('keymesh-send-receive')
    expect(await stateOf(mesh, 'app')).toBe('in-sync')
  })

  it('that somebody made and that allows too little is reported, and never written', async () => {
    await using mesh = await withMesh()
    put(mesh, { allowGuaranteedMsgSendEnabled: true })
    const { clientProfiles } = snapshotOf(mesh.broker())
    await mesh.import(ordersPortal(mesh.brokers, [client('app')]))
    await mesh.sweep()
    expect(snapshotOf(mesh.broker()).clientProfiles).toEqual(clientProfiles)
    expect(await mesh.drift({ openOnly: true })).toMatchObject([
      {
        objectKind: 'clientProfile',
        objectName: 'keymesh-send-receive',
        kind: 'unsuitable',
        before: { allowGuaranteedMsgReceiveEnabled: false },
        after: { allowGuaranteedMsgReceiveEnabled: true },
        action: 'reported',
      },
    ])
    expect(await stateOf(mesh, 'app')).toBe('conflict')
    expect(await requestState(mesh, 'app')).toBe('ERROR')
    put(mesh, {
      allowGuaranteedMsgSendEnabled: true,
      allowGuaranteedMsgReceiveEnabled: true,
      allowTransactedSessionsEnabled: true,
    })
    await mesh.sweep()
    expect(await requestState(mesh, 'app')).toBe('LIVE')
  })

  it('that may not be written is an error that names the right, on the registration', async () => {
    await using mesh = await withMesh({
      sandbox: { sempScope: 'vpn' },
      portal: (brokers) => ordersPortal(brokers, [client('app')]),
    })
    expect(await mesh.sweep()).toMatchObject({ failed: 1 })
    expect(await mesh.pairs()).toMatchObject([
      { state: 'error', reason: expect.stringContaining('global/mesh-manager') },
    ])
    // The administrator makes it by hand: nothing else is needed.
    put(mesh, {
      allowGuaranteedMsgSendEnabled: true,
      allowGuaranteedMsgReceiveEnabled: true,
      allowTransactedSessionsEnabled: true,
    })
    expect(await mesh.sweep()).toMatchObject({ changed: 1, failed: 0 })
    expect(await stateOf(mesh, 'app')).toBe('in-sync')
  })
})
