import { describe, expect, it } from 'vitest'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { PROTOCOLS, type Protocol } from '../../src/domain/catalogue.ts'
import { queueName } from '../../src/domain/names.ts'
import type { RegistrationOnBroker } from '../../src/domain/registration.ts'
import { CLIENT_PROFILES, chooseClientProfile } from '../../src/reconcile/client-profiles.ts'
import { type DesiredInput, type DesiredState, desiredState } from '../../src/reconcile/desired.ts'
import {
  accessRequest,
  channel,
  credential,
  DIRECT,
  eventApi,
  GUARANTEED,
  HOUR_MS,
  NOW_MS,
  PAIR,
  policyOf,
  registrationOf,
} from '../helpers/sample.ts'

function desiredOf(content: Partial<RegistrationOnBroker>, input: Partial<DesiredInput> = {}): DesiredState {
  const result = desiredState({
    registration: registrationOf(PAIR, content),
    protocols: ['smf'],
    policy: policyOf(),
    queueOwners: {},
    maxTopics: 1000,
    ...input,
  })
  if (!result.ok) throw new Error(result.problem)
  return result.desired
}
const of = (desired: DesiredState, kind: BrokerObject['kind']): readonly BrokerObject[] =>
  desired.objects.filter((object) => object.kind === kind)
const only = (desired: DesiredState, kind: BrokerObject['kind']): BrokerObject => {
  const [first, ...others] = of(desired, kind)
  if (first === undefined || others.length > 0) throw new Error(`${others.length + 1} of ${kind}`)
  return first
}

const inbox = eventApi('parcels', channel('parcel/scanned', 'subscribe'))
const outbox = eventApi('orders', channel('order/placed', 'publish'))
const news = eventApi('news', channel('news/all', 'subscribe'))
const guaranteed = (id: string, request: Parameters<typeof accessRequest>[1] = {}) =>
  accessRequest(id, { classOfServicePolicy: GUARANTEED, eventApis: [inbox, outbox, news], ...request })
const nameOf = (parts: { accessRequestId: string; eventApiId?: string; nonce?: string }): string =>
  queueName({ accountId: PAIR.accountId, registrationId: PAIR.registrationId, ...parts })

describe('desired state of a registration', () => {
  it('is nothing at all when no access request counts', () => {
    expect(desiredOf({ accessRequests: [] })).toEqual({ objects: [], credentialVersions: {}, warnings: [] })
  })

  it('has one ACL profile with the topics of all access requests, each once, and nothing else allowed', () => {
    const both = accessRequest('request-2', { eventApis: [inbox, outbox, inbox] })
    const acl = only(
      desiredOf({ accessRequests: [accessRequest('request-1', { eventApis: [inbox] }), both] }),
      'aclProfile',
    )
    expect(acl).toEqual({
      kind: 'aclProfile',
      name: 'parcel-app',
      attributes: {
        clientConnectDefaultAction: 'allow',
        publishTopicDefaultAction: 'disallow',
        subscribeTopicDefaultAction: 'disallow',
      },
      members: {
        publishTopicExceptions: ['order/placed'],
        subscribeTopicExceptions: ['parcel/scanned'],
        publishTopicExceptionsMqtt: [],
        subscribeTopicExceptionsMqtt: [],
      },
    })
  })

  it('has one enabled username per live credential, with the version of its secret', () => {
    const desired = desiredOf({ credentials: [credential('b-key', 4), credential('a-key', 1)] })
    expect(of(desired, 'clientUsername').map(({ name }) => name)).toEqual(['a-key', 'b-key'])
    expect(of(desired, 'clientUsername')[0]?.attributes).toEqual({
      aclProfileName: 'parcel-app',
      clientProfileName: 'keymesh-direct',
      enabled: true,
      guaranteedEndpointPermissionOverrideEnabled: false,
      subscriptionManagerEnabled: false,
    })
    expect(desired.credentialVersions).toEqual({ 'a-key': 1, 'b-key': 4 })
  })

  it('narrows by the filters of the access request before those of the registration', () => {
    const eventApis = [eventApi('trains', channel('train/{line}/{city}', 'subscribe'))]
    const request = accessRequest('request-1', { eventApis, filters: { line: ['7'] } })
    const desired = desiredOf({ accessRequests: [request], filters: { line: ['9'], city: ['ulm'] } })
    expect(only(desired, 'aclProfile').members.subscribeTopicExceptions).toEqual(['train/7/ulm'])
  })

  it('names the access request whose topics cannot be expressed', () => {
    const request = accessRequest('request-9', { filters: { id: ['a/b'] } })
    const result = desiredState({
      registration: registrationOf(PAIR, { accessRequests: [request] }),
      protocols: [],
      policy: policyOf(),
      queueOwners: {},
      maxTopics: 1000,
    })
    expect(result).toMatchObject({ ok: false, problem: expect.stringContaining('access request request-9') })
  })

  it('bounds the topics of the whole registration, not only those of each request', () => {
    const requests = ['request-1', 'request-2'].map((id) =>
      accessRequest(id, { eventApis: [eventApi('a', channel(`${id}/x`, 'publish'), channel(`${id}/y`, 'publish'))] }),
    )
    const input = { protocols: [], policy: policyOf(), queueOwners: {} }
    const registration = registrationOf(PAIR, { accessRequests: requests })
    expect(desiredState({ ...input, registration, maxTopics: 4 }).ok).toBe(true)
    expect(desiredState({ ...input, registration, maxTopics: 3 })).toMatchObject({
      ok: false,
      problem: expect.stringContaining('4 publish topics are more than the 3'),
    })
  })
})

describe('desired queues', () => {
  it('are none for direct delivery', () => {
    expect(of(desiredOf({ accessRequests: [accessRequest('request-1', { eventApis: [inbox] })] }), 'queue')).toEqual([])
  })

  it('combined: one per access request, with the subscriptions of all its Event APIs', () => {
    const desired = desiredOf({ accessRequests: [guaranteed('request-1'), guaranteed('request-2')] })
    const subscriptions = ['news/all', 'parcel/scanned']
    expect(of(desired, 'queue').map(({ name, members }) => ({ name, members }))).toEqual(
      ['request-1', 'request-2']
        .map((accessRequestId) => ({ name: nameOf({ accessRequestId }), members: { subscriptions } }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    )
  })

  it('single: one per Event API that has something to receive', () => {
    const classOfServicePolicy = { ...GUARANTEED, queueType: 'single' } as const
    const desired = desiredOf({ accessRequests: [guaranteed('request-1', { classOfServicePolicy })] })
    const byName = Object.fromEntries(of(desired, 'queue').map(({ name, members }) => [name, members.subscriptions]))
    expect(byName).toEqual({
      [nameOf({ accessRequestId: 'request-1', eventApiId: 'parcels' })]: ['parcel/scanned'],
      [nameOf({ accessRequestId: 'request-1', eventApiId: 'news' })]: ['news/all'],
    })
  })

  it('single: two versions of one Event API share its queue', () => {
    const classOfServicePolicy = { ...GUARANTEED, queueType: 'single' } as const
    const eventApis = [inbox, eventApi('parcels', channel('parcel/lost', 'subscribe'))]
    const desired = desiredOf({ accessRequests: [guaranteed('request-1', { classOfServicePolicy, eventApis })] })
    expect(only(desired, 'queue').members).toEqual({ subscriptions: ['parcel/lost', 'parcel/scanned'] })
  })

  it('are none without a credential that could own them', () => {
    expect(of(desiredOf({ accessRequests: [guaranteed('request-1')], credentials: [] }), 'queue')).toEqual([])
  })

  it('are none without a topic to receive', () => {
    expect(of(desiredOf({ accessRequests: [guaranteed('request-1', { eventApis: [outbox] })] }), 'queue')).toEqual([])
  })

  const older = credential('z-older', 1, NOW_MS - HOUR_MS)
  const newer = credential('a-newer', 1, NOW_MS)
  const same = credential('b-same-age', 1, NOW_MS)
  const owners: Readonly<Record<string, readonly [Partial<RegistrationOnBroker>, string | null, string | null]>> = {
    'the oldest credential, when the ledger knows none': [{ credentials: [newer, older] }, null, 'z-older'],
    'the first name among credentials of one age': [{ credentials: [same, newer] }, null, 'a-newer'],
    'the known one while its credential lives, whatever its age': [
      { credentials: [older, newer] },
      'a-newer',
      'a-newer',
    ],
    'another one when the known credential retired': [{ credentials: [newer] }, 'z-older', 'a-newer'],
    'the known one while no credential lives at all': [{ credentials: [] }, 'z-older', 'z-older'],
  }
  it.each(Object.entries(owners))('are owned by %s', (_, [content, known, owner]) => {
    const name = nameOf({ accessRequestId: 'request-1' })
    const queueOwners = known === null ? {} : { [name]: known }
    const desired = desiredOf({ accessRequests: [guaranteed('request-1')], ...content }, { queueOwners })
    expect(only(desired, 'queue').attributes.owner).toBe(owner)
  })

  it.each([
    ['-1, no expiry', -1, 0, false],
    ['0, no expiry', 0, 0, false],
    ['positive seconds, respected', 3600, 3600, true],
  ])('have a time to live of %s', (_, maximumTimeToLive, maxTtl, respectTtlEnabled) => {
    const classOfServicePolicy = {
      ...GUARANTEED,
      maximumTimeToLive,
      maxMsgSpoolUsage: 77,
      accessType: 'non-exclusive',
    } as const
    const desired = desiredOf({ accessRequests: [guaranteed('request-1', { classOfServicePolicy })] })
    expect(only(desired, 'queue').attributes).toEqual({
      accessType: 'non-exclusive',
      egressEnabled: true,
      ingressEnabled: true,
      maxMsgSpoolUsage: 77,
      maxTtl,
      owner: 'key-of-parcel-app',
      permission: 'no-access',
      respectTtlEnabled,
    })
  })

  it('have a name that cannot be derived from ids where every client may consume', () => {
    const requests = [guaranteed('request-1', { queueNonce: 'random-1' })]
    const consume = { policy: policyOf({ queuePermission: 'consume' }) }
    const queue = only(desiredOf({ accessRequests: requests }, consume), 'queue')
    expect(queue.attributes.permission).toBe('consume')
    expect(queue.name).toBe(nameOf({ accessRequestId: 'request-1', nonce: 'random-1' }))
    expect(queue.name).not.toBe(nameOf({ accessRequestId: 'request-1' }))
    const other = desiredOf({ accessRequests: [guaranteed('request-1', { queueNonce: 'random-2' })] }, consume)
    expect(only(other, 'queue').name).not.toBe(queue.name)
  })
})

describe('the client profile', () => {
  const needs: Readonly<Record<string, readonly [Parameters<typeof accessRequest>[1], readonly Protocol[], string]>> = {
    'direct delivery': [
      { classOfServicePolicy: DIRECT, eventApis: [inbox, outbox] },
      ['smf', 'mqtt'],
      'keymesh-direct',
    ],
    'guaranteed publishing': [{ eventApis: [outbox] }, ['smf'], 'keymesh-send'],
    'guaranteed publishing over MQTT': [{ eventApis: [outbox] }, ['mqtt'], 'keymesh-send'],
    'guaranteed receiving': [{ eventApis: [inbox] }, ['amqps'], 'keymesh-receive'],
    'guaranteed receiving over MQTT': [{ eventApis: [inbox] }, ['smf', 'secure-mqttws'], 'keymesh-receive-create'],
    'both ways': [{ eventApis: [inbox, outbox] }, ['https'], 'keymesh-send-receive'],
    'both ways over MQTT': [{ eventApis: [inbox, outbox] }, [...PROTOCOLS], 'keymesh-send-receive-create'],
  }
  it.each(Object.entries(needs))('serves %s', (_, [request, protocols, name]) => {
    const desired = desiredOf(
      { accessRequests: [accessRequest('direct-too'), guaranteed('request-1', request)] },
      { protocols },
    )
    expect(only(desired, 'clientProfile').name).toBe(name)
    expect(only(desired, 'clientUsername').attributes.clientProfileName).toBe(name)
  })

  const flags = [false, true]
  const combinations = flags.flatMap((guaranteedSend) =>
    flags.flatMap((guaranteedReceive) =>
      flags.map((endpointCreation) => ({ guaranteedSend, guaranteedReceive, endpointCreation })),
    ),
  )
  it.each(combinations)('allows exactly what is needed of %o', (needed) => {
    const { kind, name, attributes } = chooseClientProfile(needed)
    expect(CLIENT_PROFILES.map((each) => each.name)).toContain(name)
    expect({ kind, attributes }).toEqual({
      kind: 'clientProfile',
      attributes: {
        allowGuaranteedMsgSendEnabled: needed.guaranteedSend,
        allowGuaranteedMsgReceiveEnabled: needed.guaranteedReceive,
        allowGuaranteedEndpointCreateEnabled: needed.guaranteedReceive && needed.endpointCreation,
        allowTransactedSessionsEnabled: needed.guaranteedSend || needed.guaranteedReceive,
        allowBridgeConnectionsEnabled: false,
      },
    })
  })
})
