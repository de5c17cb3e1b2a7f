import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { type OpenQueue, openQueue } from '../../src/roles.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { addApiToken } from '../bench/api-token.ts'
import { startFaultProxy } from '../helpers/fault-proxy.ts'
import { BrokerHands } from './broker-hands.ts'
import type { FaultyBroker } from './faults.ts'
import { Life } from './life.ts'
import { ServiceProcess } from './service-process.ts'
import { type SoakSettings, serviceEnvironment } from './settings.ts'
import { startOf } from './soak-catalogue.ts'
import type { Call } from './targets.ts'

/** In the beginning of every secret. In steps of three characters, so that base64 of it begins alike. */
export const MARKER = 'SoakSecret-_'

export interface SoakPlace {
  /** A database without any table, or with all. */
  readonly connectionString: string
  readonly redisUrl?: string
}

export interface WorldBroker extends FaultyBroker {
  readonly hands: BrokerHands
}

export interface ServiceCallbacks {
  readonly onLine: (line: string) => void
  readonly onDelete: (broker: number, path: string) => void
}

/** Simulated brokers behind proxies, the API in this process, and services in others, all on one database. */
export class SoakWorld {
  readonly brokers: readonly WorldBroker[]
  readonly context: Context
  readonly queue: OpenQueue
  readonly life: Life
  readonly #app: App
  readonly #token: string
  readonly #env: Readonly<Record<string, string>>
  readonly #opened: Disposer

  private constructor(parts: {
    readonly brokers: readonly WorldBroker[]
    readonly context: Context
    readonly queue: OpenQueue
    readonly life: Life
    readonly app: App
    readonly token: string
    readonly env: Readonly<Record<string, string>>
    readonly opened: Disposer
  }) {
    this.brokers = parts.brokers
    this.context = parts.context
    this.queue = parts.queue
    this.life = parts.life
    this.#app = parts.app
    this.#token = parts.token
    this.#env = parts.env
    this.#opened = parts.opened
  }

  static async open(settings: SoakSettings, place: SoakPlace, onLine: (line: string) => void): Promise<SoakWorld> {
    const opened = new Disposer()
    try {
      const brokers = await openBrokers(settings, opened)
      const env = {
        DATABASE_URL: place.connectionString,
        KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal(),
        ...(place.redisUrl === undefined ? {} : { REDIS_URL: place.redisUrl }),
        ...serviceEnvironment(settings),
      }
      const log = pino({ level: 'trace', base: { instance: 'soak' } }, { write: onLine })
      const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'soak' }), { log })
      opened.defer(() => context[Symbol.asyncDispose]())
      const queue = await openQueue(context)
      opened.defer(() => queue.backend.close())
      const app = await createApp({ ...context, enqueue: queue.enqueue, random: cryptoRandom, checkAnswers: true })
      opened.defer(() => app.close())
      await app.ready()
      const life = new Life(context.accountId, settings.brokers)
      const token = await addApiToken(context)
      const world = new SoakWorld({ brokers, context, queue, life, app, token, env, opened })
      await world.#start(settings)
      return world
    } catch (error) {
      await opened.dispose()
      throw error
    }
  }

  /** A worker and a scheduler in a process of their own. */
  startService(name: string, { onLine, onDelete }: ServiceCallbacks): ServiceProcess {
    const ports = new Map(this.brokers.map(({ proxy }, index) => [String(proxy.port), index]))
    return new ServiceProcess({
      name,
      env: this.#env,
      onLine,
      onDelete: ({ origin, path }) => {
        const broker = ports.get(new URL(origin).port)
        if (broker !== undefined) onDelete(broker, path)
      },
    })
  }

  async call({ method, path, body }: Call): Promise<{ readonly status: number; readonly body: string }> {
    const response = await this.#app.inject({
      method,
      url: path,
      headers: { authorization: `Bearer ${this.#token}` },
      ...(body === undefined ? {} : { payload: body }),
    })
    return { status: response.statusCode, body: response.body }
  }

  async #start({ registrations, seed, requestTimeoutMs }: SoakSettings): Promise<void> {
    const brokers = this.brokers.map(({ sandbox, proxy }) => ({
      url: `http://127.0.0.1:${proxy.port}`,
      msgVpnName: sandbox.msgVpnName,
      username: sandbox.username,
      password: sandbox.password,
      mqttPort: sandbox.endpoints[0]?.port ?? 0,
    }))
    const { file, changes } = startOf(brokers, { registrations, seed, requestTimeoutMs, marker: MARKER })
    const { db, sealer, now, accountId } = this.context
    for (const { hands } of this.brokers) hands.settleOthers()
    await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, file)
    for (const change of changes) this.life.apply(change, 0)
  }

  async close(): Promise<void> {
    await this.#opened.dispose()
  }
}

async function openBrokers(settings: SoakSettings, opened: Disposer): Promise<readonly WorldBroker[]> {
  const sandbox = await startSandbox({
    brokers: settings.brokers,
    common: { logins: { mqtt: 0 }, password: `${MARKER}${randomBytes(6).toString('hex')}` },
    seed: settings.seed,
  })
  opened.defer(() => sandbox.close())
  return Promise.all(
    sandbox.brokers.map(async (broker): Promise<WorldBroker> => {
      const proxy = await startFaultProxy(broker.port)
      opened.defer(() => proxy[Symbol.asyncDispose]())
      return { sandbox: broker, proxy, hands: new BrokerHands(broker) }
    }),
  )
}
