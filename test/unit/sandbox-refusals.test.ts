import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { SempTestClient, type Step } from './sandbox-client.ts'

let sandbox: Sandbox
let client: SempTestClient

beforeAll(async () => {
  sandbox = await startSandbox({ brokers: 1 })
  client = new SempTestClient(sandbox.broker())
})
afterAll(() => sandbox.close())
beforeEach(() => sandbox.broker().wipe())

const ANN = { clientUsername: 'ann' } as const
const EXCEPTION = { publishTopicException: 'a/>', publishTopicExceptionSyntax: 'smf' } as const

interface Refusal {
  readonly after?: readonly Step[]
  readonly request: Step
  readonly code: number
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a POST without a required attribute is MISSING_PARAMETER': {
    request: ['POST', 'clientUsernames', { enabled: true }],
    code: 228,
  },
  'a POST of an exception without its syntax is MISSING_PARAMETER': {
    request: ['POST', 'aclProfiles/default/publishTopicExceptions', { publishTopicException: 'a/>' }],
    code: 228,
  },
  'an unknown attribute is INVALID_PARAMETER': {
    request: ['POST', 'clientUsernames', { ...ANN, colour: 'red' }],
    code: 11,
  },
  'an inherited name of objects is not an attribute': {
    request: ['POST', 'clientUsernames', { ...ANN, toString: 'x' }],
    code: 11,
  },
  'a number where a text belongs is INVALID_PARAMETER': {
    request: ['POST', 'clientUsernames', { clientUsername: 7 }],
    code: 11,
  },
  'a text where a boolean belongs is INVALID_PARAMETER': {
    request: ['POST', 'clientUsernames', { ...ANN, enabled: 'true' }],
    code: 11,
  },
  'null is not a value': { request: ['POST', 'clientUsernames', { ...ANN, password: null }], code: 11 },
  'a fraction is not an integer': { request: ['POST', 'queues', { queueName: 'q', maxTtl: 1.5 }], code: 11 },
  'a number below the minimum is INVALID_PARAMETER': {
    request: ['POST', 'queues', { queueName: 'q', maxTtl: -1 }],
    code: 11,
  },
  'a number above the maximum is INVALID_PARAMETER': {
    request: ['POST', 'queues', { queueName: 'q', maxMsgSpoolUsage: 6_000_001 }],
    code: 11,
  },
  'a name that is too long is INVALID_PARAMETER': {
    request: ['POST', 'aclProfiles', { aclProfileName: 'x'.repeat(33) }],
    code: 11,
  },
  'an empty name is INVALID_PARAMETER': { request: ['POST', 'aclProfiles', { aclProfileName: '' }], code: 11 },
  'a password of 129 characters is INVALID_PARAMETER': {
    request: ['POST', 'clientUsernames', { ...ANN, password: 'x'.repeat(129) }],
    code: 11,
  },
  'a name against its pattern is INVALID_PARAMETER': {
    request: ['POST', 'clientUsernames', { clientUsername: 'a*b' }],
    code: 11,
  },
  'a PUT that would create a name against its pattern is INVALID_PARAMETER': {
    request: ['PUT', 'queues/a%3Cb', {}],
    code: 11,
  },
  'a value outside an enumeration is INVALID_PARAMETER': {
    request: ['POST', 'queues', { queueName: 'q', permission: 'all' }],
    code: 11,
  },
  'half a threshold is MISSING_PARAMETER': {
    request: ['POST', 'queues', { queueName: 'q', eventBindCountThreshold: { setPercent: 90 } }],
    code: 228,
  },
  'a threshold of percentages and values is INVALID_PARAMETER': {
    request: [
      'POST',
      'queues',
      {
        queueName: 'q',
        eventBindCountThreshold: { setPercent: 90, clearPercent: 5, setValue: 3, clearValue: 1 },
      },
    ],
    code: 11,
  },
  'an attribute that requires another one is refused alone': {
    request: ['PATCH', '', { authenticationBasicProfileName: 'x' }],
    code: 228,
  },
  'a body that is not JSON is PARSE_ERROR': { request: ['POST', 'clientUsernames', '{"clientUsername":'], code: 27 },
  'a body that is no object is PARSE_ERROR': { request: ['POST', 'clientUsernames', '[]'], code: 27 },
  'a write without a body is PARSE_ERROR': { request: ['POST', 'clientUsernames'], code: 27 },
  'a second POST of a name is ALREADY_EXISTS': {
    after: [['POST', 'clientUsernames', ANN]],
    request: ['POST', 'clientUsernames', ANN],
    code: 10,
  },
  'a second POST of an exception is ALREADY_EXISTS': {
    after: [['POST', 'aclProfiles/default/publishTopicExceptions', EXCEPTION]],
    request: ['POST', 'aclProfiles/default/publishTopicExceptions', EXCEPTION],
    code: 10,
  },
  'a PATCH of what is absent is NOT_FOUND': { request: ['PATCH', 'queues/q', {}], code: 6 },
  'a DELETE of what is absent is NOT_FOUND': { request: ['DELETE', 'queues/q'], code: 6 },
  'a POST below an absent parent is NOT_FOUND': {
    request: ['POST', 'queues/q/subscriptions', { subscriptionTopic: 'a' }],
    code: 6,
  },
  'a write in an absent message VPN is NOT_FOUND': {
    request: ['POST', '/SEMP/v2/config/msgVpns/nowhere/clientUsernames', ANN],
    code: 6,
  },
  'a username with an absent ACL profile is refused': {
    request: ['POST', 'clientUsernames', { ...ANN, aclProfileName: 'absent' }],
    code: 11,
  },
  'a change to an absent client profile is refused': {
    after: [['POST', 'clientUsernames', ANN]],
    request: ['PATCH', 'clientUsernames/ann', { clientProfileName: 'absent' }],
    code: 11,
  },
  'another name in the body than in the path is refused': {
    after: [['POST', 'clientUsernames', ANN]],
    request: ['PATCH', 'clientUsernames/ann', { clientUsername: 'bob' }],
    code: 11,
  },
  'another message VPN in the body than in the path is refused': {
    request: ['POST', 'clientUsernames', { ...ANN, msgVpnName: 'other' }],
    code: 11,
  },
  'a subscription has no PUT': { request: ['PUT', 'queues/q/subscriptions/a', {}], code: 14 },
  'an exception has no PATCH': {
    request: ['PATCH', 'aclProfiles/default/publishTopicExceptions/smf,a', {}],
    code: 14,
  },
  'opaquePassword is NOT_SUPPORTED': {
    request: ['POST', 'clientUsernames?opaquePassword=12345678', ANN],
    code: 14,
  },
  'a username that begins with # is reserved': {
    request: ['POST', 'clientUsernames', { clientUsername: '#x' }],
    code: 11,
  },
  'a queue that begins with # is reserved': { request: ['PUT', 'queues/%23x', {}], code: 11 },
  'the default ACL profile cannot be deleted': { request: ['DELETE', 'aclProfiles/default'], code: 89 },
  'the default client profile cannot be deleted': { request: ['DELETE', 'clientProfiles/default'], code: 89 },
  'the default username cannot be deleted': { request: ['DELETE', 'clientUsernames/default'], code: 89 },
  'an ACL profile of an enabled username is NOT_ALLOWED to go': {
    after: [
      ['POST', 'aclProfiles', { aclProfileName: 'a' }],
      ['POST', 'clientUsernames', { ...ANN, aclProfileName: 'a', enabled: true }],
    ],
    request: ['DELETE', 'aclProfiles/a'],
    code: 89,
  },
  'a client profile of an enabled username is a CONFIGDB_OBJECT_DEPENDENCY': {
    after: [
      ['POST', 'clientProfiles', { clientProfileName: 'c' }],
      ['POST', 'clientUsernames', { ...ANN, clientProfileName: 'c', enabled: true }],
    ],
    request: ['DELETE', 'clientProfiles/c'],
    code: 490,
  },
  'a message VPN cannot be created': {
    request: ['POST', '/SEMP/v2/config/msgVpns', { msgVpnName: 'more' }],
    code: 72,
  },
  'an unknown collection is INVALID_PATH': { request: ['POST', 'topicEndpoints', {}], code: 535 },
}

describe('a write that the broker refuses', () => {
  it.each(Object.entries(REFUSALS))('%s', async (_sentence, { after = [], request, code }) => {
    for (const step of after) expect(await client.send(step)).toMatchObject({ httpStatus: 200 })
    const { state } = sandbox.broker()
    const snapshot = () => [
      state.values,
      state.clientUsernames.names(),
      state.aclProfiles.names(),
      state.queues.names(),
    ]
    const before = snapshot()
    const reply = await client.send(request)
    expect(reply).toMatchObject({ httpStatus: 400, code, meta: { responseCode: 400, request: { method: request[0] } } })
    expect(reply.status).not.toBeNull()
    expect(reply.description).not.toBe('')
    expect(snapshot()).toEqual(before)
  })
})
