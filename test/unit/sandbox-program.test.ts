import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { sandboxCommand } from '../../src/cli/sandbox.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts'
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
  function selfSigned(): { key: string; cert: string } | null {
    const directory = mkdtempSync(join(tmpdir(), 'keymesh-tls-'))
    try {
      const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
      const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
      execFileSync(
        'openssl',
        ['req', '-x509', ...curve, '-nodes', '-days', '2', ...subject, '-keyout', key, '-out', cert],
        {
          stdio: 'ignore',
        },
      )
      return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
    } catch {
      process.stderr.write('skipped: openssl is not installed, the sandbox is not tested over TLS\n')
      return null
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
  const tls = selfSigned()

  const statusOver = (url: string, ca?: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Basic ${btoa('admin:admin')}` }
      const request = httpsRequest(
        `${url}/SEMP/v2/config/about/api`,
        { headers, agent: false, ...(ca && { ca }) },
        (response) => {
          response.resume()
          response.on('end', () => resolve(response.statusCode ?? 0))
        },
      )
      request.on('error', reject)
      request.end()
    })

  it.skipIf(tls === null)('is spoken with the given certificate, which a client must know', async () => {
    const { url } = (await start({ brokers: 1, ...(tls && { tls }) })).broker()
    expect(url).toMatch(/^https:/)
    expect(await statusOver(url, tls?.cert)).toBe(200)
    await expect(statusOver(url)).rejects.toThrow(/self-signed/)
  })
})

describe('the control API', () => {
  it('needs the SEMP credentials', async () => {
    const client = new SempTestClient((await start({ brokers: 1 })).broker())
    expect((await client.send(['GET', '/sandbox/counters'], { authorization: '' })).httpStatus).toBe(401)
  })

  it('tells counters, resets them, and is not counted itself', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    const client = new SempTestClient(broker)
    await client.send(ABOUT)
    const counters = async () =>
      (await (
        await fetch(`${broker.url}/sandbox/counters`, { headers: { authorization: `Basic ${btoa('admin:admin')}` } })
      ).json()) as {
        total: number
      }
    expect((await counters()).total).toBe(1)
    await client.send(['POST', '/sandbox/reset'])
    expect((await counters()).total).toBe(0)
  })

  it.each<[string, Step, number]>([
    ['sets faults', ['POST', '/sandbox/faults', [{ fault: 'http-503', match: { path: '/about' }, times: 3 }]], 200],
    ['refuses a fault that it does not know', ['POST', '/sandbox/faults', [{ fault: 'flood' }]], 400],
    ['refuses a rate above 1', ['POST', '/sandbox/faults', [{ fault: 'reset', rate: 2 }]], 400],
    ['sets a latency', ['POST', '/sandbox/latency', { latencyMs: 1 }], 200],
    ['refuses a negative latency', ['POST', '/sandbox/latency', { latencyMs: -1 }], 400],
    ['refuses a body that is not JSON', ['POST', '/sandbox/latency', '{'], 400],
    ['knows nothing else', ['POST', '/sandbox/secrets', {}], 404],
  ])('%s', async (_sentence, step, httpStatus) => {
    const client = new SempTestClient((await start({ brokers: 1 })).broker())
    const [method, path, body] = step
    expect((await client.send([method, path, body])).httpStatus).toBe(httpStatus)
  })

  it('clears the objects', async () => {
    const broker = (await start({ brokers: 1 })).broker()
    broker.state.queues.put('q')
    await new SempTestClient(broker).send(['POST', '/sandbox/clear'])
    expect(broker.state.queues.names()).toEqual([])
  })
})

describe('keymesh sandbox', () => {
  async function run(...flags: string[]) {
    let write = (_text: string) => {}
    let stop = () => {}
    const printing = new Promise<string>((resolve) => {
      write = resolve
    })
    const stopped = new Promise<void>((resolve) => {
      stop = resolve
    })
    const command = sandboxCommand({ write, untilStopped: () => stopped })
    command.exitOverride().configureOutput({ writeErr: () => {} })
    const ended = command.parseAsync(flags, { from: 'user' })
    const printed = await Promise.race([printing, ended.then(() => '')])
    return { printed, stop, ended }
  }

  it('prints one line of JSON and stays up until it is stopped', async () => {
    const { printed, stop, ended } = await run('--brokers', '2', '--json', '--sessions', '5')
    expect(printed.trimEnd().split('\n')).toHaveLength(1)
    const { brokers } = JSON.parse(printed) as { brokers: { url: string; username: string; password: string }[] }
    expect(brokers).toHaveLength(2)
    const [broker] = brokers
    const about = () =>
      fetch(`${broker?.url}/SEMP/v2/config/about/api`, {
        headers: { authorization: `Basic ${btoa(`${broker?.username}:${broker?.password}`)}` },
      })
    expect((await about()).status).toBe(200)
    stop()
    await ended
    await expect(about()).rejects.toThrow()
  })

  it('prints a table that a person can read', async () => {
    const { printed, stop, ended } = await run('--brokers', '1', '--user', 'operator:word:with:colons')
    stop()
    await ended
    expect(printed).toContain('broker-1')
    expect(printed).toContain('operator')
    expect(printed).toContain('word:with:colons')
  })

  it.each([
    ['no broker', ['--brokers', '0']],
    ['a port out of range', ['--port', '70000']],
    ['a user without a password', ['--user', 'admin']],
  ])('refuses %s', async (_sentence, flags) => {
    await expect(run(...flags)).rejects.toThrow(/needed/)
  })
})
