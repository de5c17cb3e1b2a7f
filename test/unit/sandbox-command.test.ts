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
