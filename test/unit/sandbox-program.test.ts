import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, OTHER_CA, TRUSTED_CA } from '../contract/tls-fixtures.ts'
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

const ABOUT: Step = ['GET', '/SEMP/v2/config/about/api']

describe('a broker in a program', () => {
  it('stops, refuses connections, and starts on the same port with the same objects', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    const client = new SempTestClient(broker)
    await client.send(['POST', 'queues', { queueName: 'q' }])
    const { url } = broker
    await broker.stop()
    await expect(client.send(ABOUT)).rejects.toThrow()
    await broker.start()
    expect(broker.url).toBe(url)
    expect((await client.send(['GET', 'queues/q'])).httpStatus).toBe(200)
  })

  it('counts requests by method and kind, and logs them when told', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    const client = new SempTestClient(broker)
    broker.requests.keepLog(2)
    const steps: readonly Step[] = [
      ['GET', ''],
      ['POST', 'queues', { queueName: 'q' }],
      ['POST', 'queues/q/subscriptions', { subscriptionTopic: 'a' }],
      ['GET', 'queues/q/subscriptions?count=100'],
      ['GET', 'queues/absent'],
      ['DELETE', 'queues/q/subscriptions/a'],
    ]
    for (const step of steps) await client.send(step)
    expect(broker.requests.snapshot()).toEqual({
      total: 6,
      reads: 3,
      writes: 3,
      byOperation: {
        'get msgVpns': 1,
        'get queues': 1,
        'list subscriptions': 1,
        'post queues': 1,
        'post subscriptions': 1,
        'delete subscriptions': 1,
      },
      byStatus: { 200: 5, 400: 1 },
    })
    expect(broker.requests.log.map(({ method, httpStatus }) => [method, httpStatus])).toEqual([
      ['GET', 400],
      ['DELETE', 200],
    ])
    expect([broker.requests.count('post'), broker.requests.count('list', 'subscriptions')]).toEqual([2, 1])
    broker.requests.reset()
    expect(broker.requests.total).toBe(0)
  })

  it('is changed behind the back of its clients, uncounted', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    const client = new SempTestClient(broker)
    const { state } = broker
    state.aclProfiles.put('a', { publishTopicDefaultAction: 'allow' })
    state.aclProfiles.addMember('a', 'publishTopicExceptions', 'smf,x/y,z')
    state.clientUsernames.put('ann', { aclProfileName: 'a', enabled: true, password: 'one' })
    state.setPassword('ann', 'two')
    state.clientUsernames.change('ann', { enabled: false })
    expect(broker.requests.total).toBe(0)
    expect((await client.send(['GET', 'aclProfiles/a/publishTopicExceptions'])).data).toMatchObject([
      { publishTopicException: 'x/y,z', publishTopicExceptionSyntax: 'smf' },
    ])
    expect((await client.send(['GET', 'clientUsernames/ann'])).data).toMatchObject({
      aclProfileName: 'a',
      enabled: false,
    })
    expect(state.passwordOf('ann')).toBe('two')
    expect(state.aclProfiles.removeMember('a', 'publishTopicExceptions', 'smf,x/y,z')).toBe(true)
    expect(state.aclProfiles.members('a', 'publishTopicExceptions')).toEqual([])
    state.queues.put('q')
    state.setQueued('q', { messages: 1, bytes: 10 })
    broker.wipe()
    state.queues.put('q')
    expect(await client.send(['GET', '/SEMP/v2/monitor/msgVpns/sandbox/queues/q'])).toMatchObject({
      collections: { msgs: { count: 0 } },
    })
    expect([state.aclProfiles.names(), state.clientUsernames.names()]).toEqual([['default'], ['default']])
  })

  it('never prints a password of a username', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    broker.state.clientUsernames.put('ann', { password: 'hidden-word' })
    const printed = JSON.stringify([broker, broker.state, broker.requests.snapshot()])
    expect(printed).not.toContain('hidden-word')
  })

  it('can lose its message VPN and hold others', async () => {
    const broker = (await start({ brokers: [{ msgVpnName: 'one', otherMsgVpnNames: ['two'] }] })).broker()
    const client = new SempTestClient(broker)
    broker.state.removeMsgVpn()
    expect(await client.send(['GET', ''])).toMatchObject({ httpStatus: 400, code: 6 })
    expect(await client.send(['GET', 'queues'])).toMatchObject({ httpStatus: 400, code: 6 })
    const other = '/SEMP/v2/config/msgVpns/two/queues'
    expect((await client.send(['POST', other, { queueName: 'q' }])).httpStatus).toBe(200)
    expect(broker.stateOf('two').queues.names()).toEqual(['q'])
  })

  it('says so when its port is taken, and leaves no broker behind', async () => {
    const blocker = createServer()
    const port = await new Promise<number>((resolve) => {
      blocker.listen(0, '127.0.0.1', () => resolve((blocker.address() as { port: number }).port))
    })
    await expect(startSandbox({ brokers: [{ port: 0 }, { port }] })).rejects.toMatchObject({
      code: 'SANDBOX_CANNOT_LISTEN',
      fate: 'stop',
    })
    await new Promise((resolve) => blocker.close(resolve))
  })
})

describe('TLS', () => {
  const statusOver = (url: string, ca: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Basic ${btoa('admin:admin')}` }
      const request = httpsRequest(`${url}/SEMP/v2/config/about/api`, { headers, agent: false, ca }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      request.on('error', reject)
      request.end()
    })

  it('is spoken with the given certificate, which a client must be able to verify', async () => {
    const tls = { key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE }
    const { url, port } = (await start({ brokers: 1, tls })).broker()
    expect(url).toMatch(/^https:/)
    const byName = `https://localhost:${port}`
    expect(await statusOver(byName, TRUSTED_CA)).toBe(200)
    await expect(statusOver(byName, OTHER_CA)).rejects.toThrow(/certificate/)
  })
})
