import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { Disposer } from '../../src/disposer.ts'
import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import type { PortalBroker, PortalFile } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'
import { apiTokenHash, apiTokenText } from '../../src/http/authentication.ts'
import { createMqttLogin } from '../../src/login/mqtt.ts'
import { createApiToken } from '../../src/store/api-tokens.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { insertUser } from '../../src/store/users.ts'
import { type FaultProxy, startFaultProxy } from '../helpers/fault-proxy.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { type PostgresTap, startPostgresTap } from '../helpers/postgres-tap.ts'
import { type SempTap, startSempTap } from '../helpers/semp-tap.ts'
import { Service, until } from '../helpers/service.ts'
import { eventApi, plan, product, productVersion } from '../integration/import-fixtures.ts'

/** A broker with taps in front of its management and messaging, for one row of a table. */
export interface TappedBroker {
  readonly semp: SempTap
  readonly mqtt: FaultProxy
}

/** What became of an API call: null when the process was gone before it answered. */
export type Called = { readonly status: number; readonly body: CalledBody } | null

export interface CalledBody {
  readonly data?: { readonly secret?: { readonly consumerKey: string; readonly consumerSecret: string } }
}

const SETTINGS = {
  KEYMESH_HOST: '127.0.0.1',
  PORT: '0',
  KEYMESH_LOG_LEVEL: 'info',
  KEYMESH_POLL_CRON: '* * * * * *',
  // What a killed process held is free after this.
  KEYMESH_LEASE: '5s',
  KEYMESH_GRACE_PERIOD: '0s',
  // What is held in a login or a request stays so until the process is killed.
  KEYMESH_LOGIN_TIMEOUT: '300s',
}
const REQUEST_TIMEOUT_MS = 300_000

/** Half a year away: a sweep would heal what a crash left, before it is looked at. */
export const farCron = (): string => `0 0 1 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`

/**
 * `keymesh serve` as a process of its own that is killed where a test stops it: its database is behind a tap that stops
 * statements, its brokers behind taps that stop writes and logins. Everything but the service lives on.
 */
export class CrashWorld implements AsyncDisposable {
  readonly mesh: TestMesh
  readonly database: PostgresTap
  readonly #opened: Disposer
  readonly #brokers: readonly TappedBroker[]
  readonly #directory: string
  readonly #token: string
  #service: Service | null = null
  #printed = ''

  private constructor(parts: {
    readonly opened: Disposer
    readonly mesh: TestMesh
    readonly database: PostgresTap
    readonly brokers: readonly TappedBroker[]
    readonly directory: string
    readonly token: string
  }) {
    this.#opened = parts.opened
    this.mesh = parts.mesh
    this.database = parts.database
    this.#brokers = parts.brokers
    this.#directory = parts.directory
    this.#token = parts.token
  }

  /** Each broker has a product of its own: `productOf(index)`, one topic, guaranteed delivery through one queue. */
  static async open(names: readonly string[]): Promise<CrashWorld> {
    const opened = new Disposer()
    try {
      const mesh = await withMesh({
        brokers: names.map((name) => ({ name })),
        sandbox: { logins: { mqtt: 0 } },
        env: SETTINGS,
      })
      opened.defer(() => mesh[Symbol.asyncDispose]())
      const tapped = await Promise.all(
        mesh.sandbox.brokers.map(async (broker): Promise<TappedBroker> => {
          const semp = await startSempTap(broker.url)
          opened.defer(() => semp[Symbol.asyncDispose]())
          const mqtt = await startFaultProxy(broker.endpoints[0]?.port ?? 0)
          opened.defer(() => mqtt[Symbol.asyncDispose]())
          return { semp, mqtt }
        }),
      )
      const database = await startPostgresTap(mesh.database.connectionString)
      opened.defer(() => database[Symbol.asyncDispose]())
      const directory = await mkdtemp(join(tmpdir(), 'keymesh-crash-'))
      opened.defer(() => rm(directory, { recursive: true, force: true }))
      await mesh.import(catalogue(mesh.brokers.map((broker, index) => behind(broker, tapped[index]))))
      const token = await administratorToken(mesh)
      return new CrashWorld({ opened, mesh, database, brokers: tapped, directory, token })
    } catch (error) {
      await opened.dispose()
      throw error
    }
  }

  broker(index: number): TappedBroker {
    const broker = this.#brokers[index]
    if (broker === undefined) throw new RangeError(`there is no broker ${index}`)
    return broker
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#service = await Service.start({
      dataDirectory: this.#directory,
      env: {
        ...this.mesh.env,
        DATABASE_URL: this.database.connectionString,
        KEYMESH_LOG_LEVEL: 'info',
        KEYMESH_SWEEP_CRON: farCron(),
        ...env,
      },
    })
  }

  /** SIGKILL. What taps withheld from others is gone with the process. */
  async kill(): Promise<void> {
    await this.#service?.kill()
    this.#printed = this.printed
    this.#service = null
    for (const { semp, mqtt } of this.#brokers) {
      semp.clear()
      await mqtt.set({ kind: 'none' })
    }
  }

  /** By all that were started. */
  get printed(): string {
    return this.#printed + (this.#service?.printed ?? '')
  }

  async call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Called> {
    const url = String((await this.#service?.logged('api.listening'))?.url)
    try {
      const response = await fetch(`${url}/api/v2/apim/appRegistrations${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
    } catch {
      return null
    }
  }

  /** Whether a client with this password gets in, over MQTT. */
  async login(index: number, username: string, password: string): Promise<string> {
    const port = this.mesh.broker(index).endpoints[0]?.port ?? 0
    const target = {
      host: 'localhost',
      protocol: 'mqtt',
      port,
      msgVpnName: this.mesh.broker(index).msgVpnName,
    } as const
    const verdict = await createMqttLogin().probe(
      target,
      { username, password: new Secret(password) },
      { timeoutMs: 20_000 },
    )
    return verdict.outcome
  }

  /** Resolves when every registration, or this one, is where it should be, and nobody works on it any more. */
  async settled(registration: string | null = null): Promise<void> {
    const open = async () => {
      const { rows } = await sql<{ registration: string; state: string; reason: string | null; lease: string | null }>`
        select registration_id as registration, state, reason, lease_holder as lease from pairs
        where (reached_generation < generation or state <> 'in-sync' or lease_holder is not null or due_at <= now())
          and registration_id = coalesce(${registration}, registration_id)
        order by registration_id`.execute(this.mesh.context.db)
      return rows
    }
    try {
      await until('everything is in sync', async () => ((await open()).length === 0 ? true : null))
    } catch (error) {
      const log = this.#service?.printed.split('\n').slice(-30).join('\n')
      throw new Error(`${String(error)}:\n${JSON.stringify(await open(), null, 1)}\n${log ?? ''}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.kill()
    } finally {
      await this.#opened.dispose()
    }
  }
}

export const productOf = (index: number): string => `orders${index}`

function catalogue(brokers: readonly PortalBroker[]): Partial<PortalFile> {
  const eventApis = [{ id: eventApiId('orders-api'), version: '1.0.0' }]
  return {
    brokers,
    eventApis: [eventApi('orders-api')],
    products: brokers.map(({ id }, index) =>
      product(productOf(index), {
        versions: [productVersion({ eventApis, plans: [plan('gold')], brokers: [brokerId(id)] })],
      }),
    ),
  }
}

function behind(broker: PortalBroker, tapped: TappedBroker | undefined): PortalBroker {
  const { management } = broker
  if (tapped === undefined || management === null) throw new Error(`broker ${broker.id} has no tap`)
  return {
    ...broker,
    management: { ...management, url: tapped.semp.url, requestTimeoutMs: REQUEST_TIMEOUT_MS },
    messaging: { host: 'localhost', protocols: [{ protocol: 'mqtt', port: tapped.mqtt.port }] },
  }
}

/** An API token that may do everything. */
async function administratorToken({ context: { db, accountId, passwords, now } }: TestMesh): Promise<string> {
  const [userId, id, secret] = [cryptoRandom.token(11), cryptoRandom.token(11), cryptoRandom.token(43)]
  const passwordHash = await passwords.hash(new Secret('correct horse battery'))
  await insertUser(db, { id: userId, name: 'admin', passwordHash, accountId, roles: ['administrator'] })
  const times = { createdAtMs: now(), expiresAtMs: null }
  const secretHash = apiTokenHash(secret)
  await createApiToken(db, { id, accountId, userId, name: 'test', secretHash, permissions: PERMISSIONS, ...times })
  return apiTokenText(id, secret)
}
