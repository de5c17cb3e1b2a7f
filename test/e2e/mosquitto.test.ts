import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openQueue, startWorkerRole } from '../../src/roles.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { until } from '../helpers/service.ts'
import { ordersPortal } from '../integration/reconcile-fixtures.ts'

const INSTALLED = spawnSync('mosquitto_pub', ['--help'], { stdio: 'ignore' }).error === undefined
if (!INSTALLED) process.stdout.write('mosquitto-clients are not installed: their tests are skipped\n')

const REGISTRATIONS = '/api/v2/apim/appRegistrations'

/** The service at work on one simulated broker, as a portal uses it. */
class World {
  readonly mesh: TestMesh
  readonly api: TestApi
  readonly caFile: string
  readonly #close: readonly (() => Promise<unknown>)[]

  constructor(mesh: TestMesh, api: TestApi, caFile: string, close: readonly (() => Promise<unknown>)[]) {
    this.mesh = mesh
    this.api = api
    this.caFile = caFile
    this.#close = close
  }

  static async open(): Promise<World> {
    const mesh = await withMesh({
      sandbox: { logins: { mqtt: 0, 'secure-mqtt': 0 } },
      portal: (brokers) => ordersPortal(brokers, []),
    })
    const queue = await openQueue(mesh.context)
    const stopWorker = await startWorkerRole(mesh.context, queue)
    const { db, sealer, engine } = mesh.context
    const api = await withApi({ dependencies: { db, sealer, engine, enqueue: queue.enqueue } })
    const directory = await mkdtemp(join(tmpdir(), 'keymesh-mosquitto-'))
    const caFile = join(directory, 'ca.pem')
    await writeFile(caFile, mesh.broker().caCertificate)
    return new World(mesh, api, caFile, [
      stopWorker,
      async () => api[Symbol.asyncDispose](),
      () => queue.backend.close(),
      async () => mesh[Symbol.asyncDispose](),
      () => rm(directory, { recursive: true, force: true }),
    ])
  }

  async close(): Promise<void> {
    for (const close of this.#close) await close()
  }

  /** Through the API alone; resolves when the credential works. */
  async client(id: string): Promise<{ readonly username: string; readonly password: string; readonly path: string }> {
    const post = async <Body>(path: string, body: object): Promise<Body> => {
      const answer = await this.api.call<{ data: Body }>('POST', path, { body })
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
      return answer.body.data
    }
    await post(REGISTRATIONS, { registrationId: id, name: id, source: 'portal' })
    await post(`${REGISTRATIONS}/${id}/accessRequests`, {
      accessRequestId: `${id}-1`,
      eventApiProductId: 'orders',
      planId: 'gold',
    })
    const created = await post<{ secret: { consumerKey: string; consumerSecret: string } }>(
      `${REGISTRATIONS}/${id}/credentials`,
      { name: 'main' },
    )
    await until(`${id} is LIVE`, async () => {
      const answer = await this.api.call<{ data: { state: string } }>(
        'GET',
        `${REGISTRATIONS}/${id}/accessRequests/${id}-1`,
      )
      return answer.body.data.state === 'LIVE' ? true : null
    })
    const { consumerKey: username, consumerSecret: password } = created.secret
    return { username, password, path: `${REGISTRATIONS}/${id}/credentials/${username}` }
  }

  arguments({ username, password }: { username: string; password: string }, tls = false): readonly string[] {
    const protocol = tls ? 'secure-mqtt' : 'mqtt'
    const port = this.mesh.broker().endpoints.find((endpoint) => endpoint.protocol === protocol)?.port
    const trust = tls ? ['--cafile', this.caFile] : []
    return ['-h', 'localhost', '-p', String(port), '-u', username, '-P', password, '-V', 'mqttv311', ...trust]
  }
}

interface Ended {
  readonly status: number | null
  readonly printed: string
}

async function ended(process: ChildProcess): Promise<Ended> {
  let printed = ''
  for (const stream of [process.stdout, process.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
    })
  }
  await once(process, 'close')
  return { status: process.exitCode, printed }
}

const start = (program: 'mosquitto_pub' | 'mosquitto_sub', args: readonly string[]): ChildProcess =>
  spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
const run = (program: 'mosquitto_pub' | 'mosquitto_sub', args: readonly string[]): Promise<Ended> =>
  ended(start(program, args))

describe.skipIf(!INSTALLED)('a client of mosquitto-clients', { timeout: 120_000 }, () => {
  let world: World
  beforeAll(async () => {
    world = await World.open()
  }, 120_000)
  afterAll(() => world.close())

  it.each([
    ['in clear text', false],
    ['over TLS', true],
  ])('logs in %s with a credential that the API created, and is refused with another password', async (_, tls) => {
    const client = await world.client(`app-${tls ? 'tls' : 'plain'}`)
    const message = ['-t', 'orders/europe/cancel', '-m', 'please', '-q', '1']
    expect(await run('mosquitto_pub', [...world.arguments(client, tls), ...message])).toEqual({
      status: 0,
      printed: '',
    })
    const wrong = await run('mosquitto_pub', [...world.arguments({ ...client, password: 'not-it' }, tls), ...message])
    expect(wrong).toMatchObject({ status: 4, printed: expect.stringContaining('bad user name or password') })
  })

  it('publishes and receives what its access request grants, and nothing else', async () => {
    const client = await world.client('app-topics')
    const denied = await run('mosquitto_sub', [...world.arguments(client), '-t', 'payroll/#', '-W', '10'])
    expect(denied.printed).toContain('All subscription requests were denied')
    const publish = await run('mosquitto_pub', [...world.arguments(client), '-t', 'payroll/pay', '-m', 'x', '-q', '1'])
    expect(publish.printed).toContain('The connection was lost')
    // Ends once the subscription is acknowledged.
    const granted = await run('mosquitto_sub', [
      ...world.arguments(client),
      '-t',
      'orders/asia/changed',
      '-E',
      '-W',
      '20',
    ])
    expect(granted).toEqual({ status: 0, printed: '' })
  })

  it('is refused, and thrown out, after the credential is deleted', async () => {
    const client = await world.client('app-deleted')
    const listening = start('mosquitto_sub', [...world.arguments(client), '-t', 'orders/asia/changed', '-W', '60'])
    const end = ended(listening)
    const { accounts } = world.mesh.broker().state
    await until('the client is connected', () => (accounts.connectionsOf(client.username) > 0 ? true : null))
    expect((await world.api.call('DELETE', client.path)).status).toBe(204)
    await until('the client is thrown out', () => (accounts.connectionsOf(client.username) === 0 ? true : null))
    listening.kill()
    await end
    const after = await run('mosquitto_pub', [...world.arguments(client), '-t', 'orders/europe/cancel', '-m', 'x'])
    expect(after.status).not.toBe(0)
    expect(after.printed).toContain('Connection Refused')
  })
})
