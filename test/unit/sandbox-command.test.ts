import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sandboxCommand } from '../../src/cli/sandbox.ts'
import { PROTOCOLS } from '../../src/domain/catalogue.ts'
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
    const { printed, stop, ended } = await run('--brokers', '2', '--json', '--sessions', '5', '--no-logins')
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

  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'keymesh-sandbox-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  interface Printed {
    readonly brokers: readonly { readonly endpoints: readonly { readonly protocol: string; readonly port: number }[] }[]
    readonly caFile?: string
  }

  it('says where clients log in, with a certificate to trust', async () => {
    const caFile = join(directory, 'ca.pem')
    const { printed, stop, ended } = await run('--brokers', '2', '--json', '--ca-file', caFile)
    const found = JSON.parse(printed) as Printed
    expect(found.caFile).toBe(caFile)
    const pem = await readFile(caFile, 'utf8')
    expect(pem.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect(new X509Certificate(pem).ca).toBe(true)
    for (const { endpoints } of found.brokers) {
      expect(endpoints.map(({ protocol }) => protocol)).toEqual([...PROTOCOLS])
      const port = endpoints.find(({ protocol }) => protocol === 'amqps')?.port ?? 0
      await new Promise<void>((resolve, reject) => {
        const socket = connect({ host: 'localhost', port, ca: pem }, () => {
          socket.end()
          resolve()
        })
        socket.on('error', reject)
      })
    }
    stop()
    await ended
  })

  it('takes ports in a row', async () => {
    const first = await freePorts(2 * PROTOCOLS.length)
    const { printed, stop, ended } = await run('--brokers', '2', '--json', '--login-port', String(first))
    const ports = (JSON.parse(printed) as Printed).brokers.flatMap(({ endpoints }) => endpoints.map(({ port }) => port))
    expect(ports).toEqual(Array.from({ length: 2 * PROTOCOLS.length }, (_, index) => first + index))
    stop()
    await ended
  })

  it('opens no ports for clients when told', async () => {
    const { printed, stop, ended } = await run(
      '--brokers',
      '1',
      '--json',
      '--no-logins',
      '--ca-file',
      join(directory, 'x'),
    )
    expect(JSON.parse(printed)).toEqual({ brokers: [expect.objectContaining({ endpoints: [] })] })
    stop()
    await ended
  })

  it('prints the ports for a person, and where the certificates are', async () => {
    const caFile = join(directory, 'ca.pem')
    const { printed, stop, ended } = await run('--brokers', '1', '--ca-file', caFile)
    stop()
    await ended
    for (const protocol of PROTOCOLS) expect(printed).toContain(protocol)
    expect(printed).toMatch(/at 127\.0\.0\.1:/)
    expect(printed).toContain(`Certificates to trust for logins over TLS: ${caFile}`)
  })

  it.each([
    ['a login port that leaves too few', ['--brokers', '3', '--login-port', '65510'], /the ports up to 65542/],
    ['a file that cannot be written', ['--ca-file', join('nowhere', 'at', 'all', 'ca.pem')], /cannot be written/],
  ])('refuses %s', async (_sentence, flags, message) => {
    await expect(run(...flags)).rejects.toThrow(message)
  })

  it.each([
    ['no broker', ['--brokers', '0']],
    ['a port out of range', ['--port', '70000']],
    ['a user without a password', ['--user', 'admin']],
  ])('refuses %s', async (_sentence, flags) => {
    await expect(run(...flags)).rejects.toThrow(/needed/)
  })
})

/** The first of so many free ports in a row; another program may take one of them meanwhile, rarely. */
async function freePorts(count: number): Promise<number> {
  const listen = (port: number) =>
    new Promise<{ port: number; close: () => Promise<void> } | null>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(null))
      server.listen(port, '127.0.0.1', () => {
        const address = server.address()
        const close = () => new Promise<void>((done) => server.close(() => done()))
        resolve({ port: typeof address === 'object' && address !== null ? address.port : 0, close })
      })
    })
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const probe = await listen(0)
    await probe?.close()
    const first = probe?.port ?? 0
    if (first + count > 65_535) continue
    const open = await Promise.all(Array.from({ length: count }, (_, index) => listen(first + index)))
    await Promise.all(open.map((each) => each?.close()))
    if (open.every((each) => each !== null)) return first
  }
  throw new Error(`there are no ${count} free ports in a row`)
}
