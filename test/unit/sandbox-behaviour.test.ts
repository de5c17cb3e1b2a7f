import { afterEach, describe, expect, it } from 'vitest'
import type { FaultRule } from '../../src/sandbox/faults.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxBroker, SandboxBrokerOptions } from '../../src/sandbox/sandbox-broker.ts'
import { SempTestClient, type Step } from './sandbox-client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = await startSandbox(options)
  open.push(sandbox)
  return sandbox
}

async function startBroker(options: SandboxBrokerOptions = {}): Promise<[SandboxBroker, SempTestClient]> {
  const broker = (await start({ brokers: [options] })).broker()
  return [broker, new SempTestClient(broker)]
}

const ABOUT: Step = ['GET', '/SEMP/v2/config/about/api']

describe('sessions', () => {
  it('a client that keeps its cookie uses one slot', async () => {
    const [broker, client] = await startBroker({ sessions: { slots: 1 } })
    for (let index = 0; index < 5; index += 1) expect(await client.send(ABOUT)).toMatchObject({ httpStatus: 200 })
    expect(broker.sessions.size).toBe(1)
  })

  it('a client that ignores its cookie takes all slots and then meets 529, until sessions are idle too long', async () => {
    let nowMs = 0
    const [broker] = await startBroker({ sessions: { slots: 3, idleTimeoutMs: 1000, nowMs: () => nowMs } })
    const careless = () => new SempTestClient(broker).send(ABOUT)
    const statuses = [await careless(), await careless(), await careless(), await careless()].map(
      ({ httpStatus }) => httpStatus,
    )
    expect(statuses).toEqual([200, 200, 200, 529])
    nowMs = 1000
    expect((await careless()).httpStatus).toBe(200)
  })

  it('a session lives as long as it is used, and an expired one is replaced', async () => {
    let nowMs = 0
    const [, client] = await startBroker({ sessions: { idleTimeoutMs: 1000, nowMs: () => nowMs } })
    expect((await client.send(ABOUT)).cookie).not.toBeNull()
    nowMs = 999
    expect((await client.send(ABOUT)).cookie).toBeNull()
    nowMs = 1998
    expect((await client.send(ABOUT)).cookie).toBeNull()
    nowMs = 2998
    expect((await client.send(ABOUT)).cookie).not.toBeNull()
  })

  it.each([
    ['a wrong password', `Basic ${btoa('admin:wrong')}`],
    ['another scheme', 'Bearer token'],
    ['no credentials', ''],
  ])('%s is 401 and takes no slot', async (_sentence, authorization) => {
    const [broker, client] = await startBroker()
    expect((await client.send(ABOUT, { authorization })).httpStatus).toBe(401)
    expect(broker.sessions.size).toBe(0)
  })
})

describe('live clients', () => {
  const SETUP: readonly Step[] = [
    ['POST', 'aclProfiles', { aclProfileName: 'a' }],
    ['POST', 'clientProfiles', { clientProfileName: 'c' }],
    ['POST', 'clientUsernames', { clientUsername: 'ann', enabled: true }],
    ['POST', 'queues', { queueName: 'q', owner: 'ann', egressEnabled: true, ingressEnabled: true }],
  ]
  async function connected(sempVersion: string) {
    const [broker, client] = await startBroker({ sempVersion })
    for (const step of SETUP) expect((await client.send(step)).httpStatus).toBe(200)
    broker.state.connect('ann')
    broker.state.connect('ann', { queueName: 'q' })
    broker.state.connect('default')
    return { broker, client, accounts: broker.state.accounts }
  }

  it.each<[string, Step, readonly [clients: number, consumers: number]]>([
    [
      'another ACL profile drops the clients of the username',
      ['PATCH', 'clientUsernames/ann', { aclProfileName: 'a' }],
      [2, 0],
    ],
    ['another client profile drops them', ['PATCH', 'clientUsernames/ann', { clientProfileName: 'c' }], [2, 0]],
    [
      'a PUT that changes the profile drops them',
      ['PUT', 'clientUsernames/ann', { enabled: true, aclProfileName: 'a' }],
      [2, 0],
    ],
    ['disabling the username drops them', ['PATCH', 'clientUsernames/ann', { enabled: false }], [2, 0]],
    ['deleting the username drops them', ['DELETE', 'clientUsernames/ann'], [2, 0]],
    ['disabling the message VPN drops everybody', ['PATCH', '', { enabled: false }], [3, 0]],
    ['the same profile again drops nobody', ['PATCH', 'clientUsernames/ann', { aclProfileName: 'default' }], [0, 0]],
    ['a new password drops nobody', ['PATCH', 'clientUsernames/ann', { password: 'new' }], [0, 0]],
    ['another owner ends consumers', ['PATCH', 'queues/q', { owner: 'bob' }], [0, 1]],
    ['another permission ends consumers', ['PATCH', 'queues/q', { permission: 'consume' }], [0, 1]],
    ['another access type ends consumers', ['PATCH', 'queues/q', { accessType: 'non-exclusive' }], [0, 1]],
    ['egress going off ends consumers', ['PATCH', 'queues/q', { egressEnabled: false }], [0, 1]],
    ['ingress going off ends nothing', ['PATCH', 'queues/q', { ingressEnabled: false }], [0, 0]],
    ['another quota ends nothing', ['PATCH', 'queues/q', { maxMsgSpoolUsage: 9 }], [0, 0]],
  ])('%s', async (_sentence, step, dropped) => {
    const { client, accounts } = await connected('2.49')
    expect(await client.send(step)).toMatchObject({ httpStatus: 200 })
    expect([accounts.clientsDropped, accounts.consumersDropped]).toEqual(dropped)
    expect(accounts.clients()).toHaveLength(3 - dropped[0] - dropped[1])
  })

  it.each<[string, Step, Step]>([
    [
      'the ACL profile of an enabled username',
      ['PATCH', 'clientUsernames/ann', { aclProfileName: 'a' }],
      ['PATCH', 'clientUsernames/ann', { enabled: false }],
    ],
    [
      'the owner of a queue with egress on',
      ['PATCH', 'queues/q', { owner: 'bob' }],
      ['PATCH', 'queues/q', { egressEnabled: false }],
    ],
  ])('SEMP 2.30 wants it disabled before it changes %s', async (_sentence, change, disable) => {
    const { client, accounts } = await connected('2.30')
    expect(await client.send(change)).toMatchObject({ httpStatus: 400, code: 89 })
    expect(accounts.clients()).toHaveLength(3)
    expect((await client.send(disable)).httpStatus).toBe(200)
    expect((await client.send(change)).httpStatus).toBe(200)
  })

  it('a login is checked against the same accounts', async () => {
    const { broker, client } = await connected('2.49')
    await client.send(['PATCH', 'clientUsernames/ann', { password: 'right' }])
    const login = (name: string, password: string) => broker.state.checkLogin(name, password)
    expect([login('ann', 'right'), login('ann', 'wrong'), login('eve', 'right')]).toEqual([
      'accepted',
      'wrong-password',
      'unknown-username',
    ])
    await client.send(['PATCH', 'clientUsernames/ann', { enabled: false }])
    expect(login('ann', 'right')).toBe('shutdown')
  })
})

describe('a SEMP user of the message VPN alone', () => {
  it.each<[string, Step, number | null]>([
    ['may not create a client profile', ['POST', 'clientProfiles', { clientProfileName: 'c' }], 72],
    ['may not change a client profile', ['PATCH', 'clientProfiles/default', { compressionEnabled: false }], 72],
    ['may not delete a client profile', ['DELETE', 'clientProfiles/default'], 72],
    ['may not change how clients authenticate', ['PATCH', '', { authenticationBasicEnabled: false }], 72],
    ['may read client profiles', ['GET', 'clientProfiles/default'], null],
    ['may create a username', ['POST', 'clientUsernames', { clientUsername: 'ann' }], null],
  ])('%s', async (_sentence, step, code) => {
    const [, client] = await startBroker({ sempScope: 'vpn' })
    expect((await client.send(step)).code).toBe(code)
  })

  it('leaves alone, with a PUT, what it may not modify', async () => {
    const [broker, client] = await startBroker({ sempScope: 'vpn' })
    await client.send(['PUT', '', { enabled: true }])
    expect(broker.state.values).toMatchObject({ authenticationBasicType: 'internal', enabled: true })
  })
})

describe('misbehaviour', () => {
  const CREATE: Step = ['POST', 'queues', { queueName: 'q' }]
  const outcome = (client: SempTestClient, step: Step) =>
    client.send(step).then(
      ({ httpStatus }) => String(httpStatus),
      () => 'broken',
    )

  it.each<[string, FaultRule, string, boolean]>([
    ['503 is answered without doing the work', { fault: 'http-503' }, '503', false],
    ['529 is answered without doing the work', { fault: 'http-529' }, '529', false],
    ['401 is answered without doing the work', { fault: 'http-401' }, '401', false],
    ['503 can come after the work', { fault: 'http-503', applied: true }, '503', true],
    ['a connection is reset before the work', { fault: 'reset' }, 'broken', false],
    ['a connection is reset after the work', { fault: 'reset', applied: true }, 'broken', true],
    ['half a body comes after the work', { fault: 'half-body' }, 'broken', true],
    ['junk comes after the work', { fault: 'junk-json' }, 'broken', true],
  ])('%s', async (_sentence, rule, expected, isApplied) => {
    const [broker, client] = await startBroker()
    broker.setFaults([{ ...rule, times: 1 }])
    expect(await outcome(client, CREATE)).toBe(expected)
    expect(broker.state.queues.has('q')).toBe(isApplied)
    expect(await outcome(client, ABOUT)).toBe('200')
  })

  it('a timeout never answers, and stopping the broker ends it', async () => {
    const [broker] = await startBroker({ faults: [{ fault: 'timeout' }] })
    const pending = fetch(`${broker.url}/SEMP/v2/config/about/api`)
    await expect.poll(() => broker.requests.total).toBe(1)
    const ended = pending.then(
      () => 'answered',
      () => 'ended',
    )
    await broker.stop()
    expect(await ended).toBe('ended')
  })

  it('can be kept to a method, a path and a number of times', async () => {
    const [broker, client] = await startBroker()
    broker.setFaults([{ fault: 'http-503', match: { method: 'GET', path: /\/queues(\?|$)/ }, times: 2 }])
    const statuses: number[] = []
    for (const path of ['queues', 'aclProfiles', 'queues?count=5', 'queues']) {
      statuses.push((await client.send(['GET', path])).httpStatus)
    }
    expect(statuses).toEqual([503, 200, 503, 200])
  })

  it('comes at its rate, the same way for the same seed', async () => {
    const run = async () => {
      const [broker, client] = await startBroker({ faults: [{ fault: 'http-503', rate: 0.3 }] })
      const statuses: number[] = []
      for (let index = 0; index < 100; index += 1) statuses.push((await client.send(ABOUT)).httpStatus)
      return [statuses, broker.requests.snapshot().byStatus[503]] as const
    }
    const [first, failures] = await run()
    expect(failures).toBeGreaterThan(15)
    expect(failures).toBeLessThan(45)
    expect((await run())[0]).toEqual(first)
  })

  it('waits before an answer', async () => {
    const [broker, client] = await startBroker({ latencyMs: 40 })
    const startedAtMs = performance.now()
    await client.send(ABOUT)
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(38)
    broker.setLatencyMs(0)
  })

  it('is of one broker, not of the others', async () => {
    const sandbox = await start({ brokers: 2 })
    sandbox.broker(0).setFaults([{ fault: 'http-503' }])
    const statuses = sandbox.brokers.map(async (broker) => (await new SempTestClient(broker).send(ABOUT)).httpStatus)
    expect(await Promise.all(statuses)).toEqual([503, 200])
  })
})
