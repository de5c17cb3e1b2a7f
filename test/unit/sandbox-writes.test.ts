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

interface Success {
  readonly steps: readonly Step[]
  readonly data: object
}

const SUCCESSES: Readonly<Record<string, Success>> = {
  'a POST fills in defaults': {
    steps: [['POST', 'clientUsernames', ANN]],
    data: { ...ANN, msgVpnName: 'sandbox', aclProfileName: 'default', clientProfileName: 'default', enabled: false },
  },
  'a queue starts shut, without access and without expiry': {
    steps: [['POST', 'queues', { queueName: 'q' }]],
    data: { ingressEnabled: false, egressEnabled: false, permission: 'no-access', maxTtl: 0, maxMsgSpoolUsage: 5000 },
  },
  'an ACL profile starts with everything disallowed but share names': {
    steps: [['POST', 'aclProfiles', { aclProfileName: 'a' }]],
    data: {
      clientConnectDefaultAction: 'disallow',
      publishTopicDefaultAction: 'disallow',
      subscribeTopicDefaultAction: 'disallow',
      subscribeShareNameDefaultAction: 'allow',
    },
  },
  'a PATCH leaves alone what it does not name': {
    steps: [
      ['POST', 'queues', { queueName: 'q', maxTtl: 60, permission: 'consume' }],
      ['PATCH', 'queues/q', { maxTtl: 90 }],
    ],
    data: { maxTtl: 90, permission: 'consume' },
  },
  'a PUT resets what it does not name': {
    steps: [
      ['POST', 'queues', { queueName: 'q', maxTtl: 60, permission: 'consume' }],
      ['PUT', 'queues/q', { maxTtl: 90 }],
    ],
    data: { queueName: 'q', maxTtl: 90, permission: 'no-access' },
  },
  'a PUT creates what is absent': {
    steps: [['PUT', 'queues/a%2Fb', { maxTtl: 90 }]],
    data: { queueName: 'a/b', maxTtl: 90 },
  },
  'names in the body that agree with the path are accepted': {
    steps: [
      ['POST', 'clientUsernames', { ...ANN, msgVpnName: 'sandbox' }],
      ['PATCH', 'clientUsernames/ann', { ...ANN, msgVpnName: 'sandbox', enabled: true }],
    ],
    data: { ...ANN, enabled: true },
  },
  'a threshold is replaced as a pair': {
    steps: [
      ['POST', 'queues', { queueName: 'q' }],
      ['PATCH', 'queues/q', { eventBindCountThreshold: { clearValue: 1, setValue: 2 } }],
    ],
    data: {
      eventBindCountThreshold: { clearValue: 1, setValue: 2 },
      eventMsgSpoolUsageThreshold: { clearPercent: 18, setPercent: 25 },
    },
  },
  'a topic of slashes and commas goes through a path': {
    steps: [
      ['POST', 'aclProfiles', { aclProfileName: 'a' }],
      ['POST', 'aclProfiles/a/publishTopicExceptions', { ...EXCEPTION, publishTopicException: 'a/b,c/>' }],
      ['GET', 'aclProfiles/a/publishTopicExceptions/smf,a%2Fb%2Cc%2F%3E'],
    ],
    data: { aclProfileName: 'a', publishTopicException: 'a/b,c/>', publishTopicExceptionSyntax: 'smf' },
  },
  'the dead message queue may be created': {
    steps: [['POST', 'queues', { queueName: '#DEAD_MSG_QUEUE' }]],
    data: { queueName: '#DEAD_MSG_QUEUE' },
  },
  'the message VPN takes another authentication type': {
    steps: [['PATCH', '', { authenticationBasicType: 'none', authenticationBasicEnabled: false }]],
    data: { authenticationBasicType: 'none', authenticationBasicEnabled: false, enabled: true },
  },
  'an ACL profile without enabled usernames goes, and its usernames fall back to default': {
    steps: [
      ['POST', 'aclProfiles', { aclProfileName: 'a' }],
      ['POST', 'clientUsernames', { ...ANN, aclProfileName: 'a' }],
      ['DELETE', 'aclProfiles/a'],
      ['GET', 'clientUsernames/ann'],
    ],
    data: { aclProfileName: 'default' },
  },
}

describe('a write that the broker takes', () => {
  it.each(Object.entries(SUCCESSES))('%s', async (_sentence, { steps, data }) => {
    let reply = await client.send(['GET', ''])
    for (const step of steps) {
      reply = await client.send(step)
      expect(reply).toMatchObject({ httpStatus: 200, code: null, meta: { responseCode: 200 } })
    }
    expect(reply.data).toMatchObject(data)
  })

  it('a DELETE answers with meta alone, and the children are gone with the parent', async () => {
    await client.send(['POST', 'queues', { queueName: 'q' }])
    await client.send(['POST', 'queues/q/subscriptions', { subscriptionTopic: 'a/b' }])
    const reply = await client.send(['DELETE', 'queues/q'])
    expect([reply.httpStatus, reply.data, reply.links]).toEqual([200, undefined, undefined])
    await client.send(['POST', 'queues', { queueName: 'q' }])
    expect((await client.send(['GET', 'queues/q/subscriptions'])).data).toEqual([])
  })
})

describe('the password of a client username', () => {
  const passwordAfter = async (...steps: readonly Step[]) => {
    for (const step of steps) {
      const reply = await client.send(step)
      expect(reply.httpStatus).toBe(200)
      expect(JSON.stringify(reply)).not.toContain('first-secret')
    }
    return sandbox.broker().state.passwordOf('ann')
  }
  const CREATE: Step = ['POST', 'clientUsernames', { ...ANN, password: 'first-secret' }]

  it.each<[string, string, readonly Step[]]>([
    ['is kept and never shown', 'first-secret', [CREATE, ['GET', 'clientUsernames/ann'], ['GET', 'clientUsernames']]],
    ['is not shown when asked for', 'first-secret', [CREATE, ['GET', 'clientUsernames/ann?select=password,enabled']]],
    ['is left alone by a PUT without it', 'first-secret', [CREATE, ['PUT', 'clientUsernames/ann', {}]]],
    ['is replaced by a PATCH', 'next-secret', [CREATE, ['PATCH', 'clientUsernames/ann', { password: 'next-secret' }]]],
    ['is empty when never set', '', [['POST', 'clientUsernames', ANN]]],
  ])('%s', async (_sentence, password, steps) => {
    expect(await passwordAfter(...steps)).toBe(password)
  })
})
