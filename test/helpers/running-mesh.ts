import { pino } from 'pino'
import { expect } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import type { PortalBroker, PortalFile } from '../../src/domain/portal-file.ts'
import { type OpenQueue, openQueue, startScheduler, startWorkerRole } from '../../src/roles.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import type { ImportOptions } from '../../src/store/import-portal-file.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { type MeshOptions, type TestMesh, withMesh } from './mesh.ts'
import { dumpDatabase, findSecrets } from './secret-scan.ts'
import { until } from './service.ts'

export interface RunningMeshOptions extends Omit<MeshOptions, 'portal' | 'log'> {
  /** What a broker declares beyond its address, which is that of its proxy. */
  readonly broker?: (broker: PortalBroker, index: number) => PortalBroker
  /** Shorter than the default, so that silence is noticed while a test waits. */
  readonly requestTimeoutMs?: number
}

/** Polls and sweeps each second; what a killed or lost run held is free after two. */
const SETTINGS = {
  KEYMESH_ROLES: 'worker,scheduler',
  KEYMESH_POLL_CRON: '* * * * * *',
  KEYMESH_SWEEP_CRON: '* * * * * *',
  KEYMESH_LEASE: '2s',
  KEYMESH_LOGINS: 'false',
}

/**
 * Simulated brokers, each behind a proxy that makes faults, and a worker and a scheduler at work on them: on the real
 * queue, with the retries and pauses that the service has. Its database is behind a proxy too; `mesh` looks past that.
 */
export async function startRunningMesh(options: RunningMeshOptions): Promise<RunningMesh> {
  const opened = new Disposer()
  try {
    const mesh = await withMesh({ ...options, env: { ...SETTINGS, ...options.env } })
    opened.defer(() => mesh[Symbol.asyncDispose]())
    const proxyTo = async (port: string): Promise<FaultProxy> => {
      const proxy = await startFaultProxy(Number(port))
      opened.defer(() => proxy[Symbol.asyncDispose]())
      return proxy
    }
    const proxies = await Promise.all(mesh.sandbox.brokers.map(({ url }) => proxyTo(new URL(url).port)))
    const database = await proxyTo(new URL(mesh.database.connectionString).port)
    const brokers = mesh.brokers.map((broker, index) => {
      const { management } = broker
      const url = new URL(management?.url ?? '')
      url.port = String(proxies[index]?.port)
      const requestTimeoutMs = options.requestTimeoutMs ?? 1_500
      const proxied = { ...broker, management: management && { ...management, url: url.href, requestTimeoutMs } }
      return options.broker?.(proxied, index) ?? proxied
    })
    return new RunningMesh({ opened, mesh, proxies, database, brokers, options })
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

interface RunningMeshParts {
  readonly opened: Disposer
  readonly mesh: TestMesh
  readonly proxies: readonly FaultProxy[]
  readonly database: FaultProxy
  readonly brokers: readonly PortalBroker[]
  readonly options: RunningMeshOptions
}

export class RunningMesh implements AsyncDisposable {
  readonly mesh: TestMesh
  /** In front of the worker's database. */
  readonly database: FaultProxy
  /** As they are imported. */
  readonly brokers: readonly PortalBroker[]
  /** What the worker logged, as it was written. */
  log = ''
  readonly #parts: RunningMeshParts
  /** Every secret that was ever stored, by what it is. */
  readonly #secrets = new Map<string, string>()
  #worker: Disposer | null = null

  constructor(parts: RunningMeshParts) {
    this.#parts = parts
    this.mesh = parts.mesh
    this.database = parts.database
    this.brokers = parts.brokers
  }

  sandbox(index: number): SandboxBroker {
    return this.mesh.broker(index)
  }

  proxy(index: number): FaultProxy {
    const proxy = this.#parts.proxies[index]
    if (proxy === undefined) throw new RangeError(`there is no proxy ${index}`)
    return proxy
  }

  /** Imports these parts, as a person does while the worker is at work. */
  async import(parts: Partial<PortalFile>, options: ImportOptions = {}): Promise<void> {
    await this.mesh.import({ brokers: this.brokers, ...parts }, options)
    const known = new Set(this.#secrets.values())
    for (const [key, secret] of await this.mesh.secrets()) {
      if (!known.has(secret)) this.#secrets.set(`secret ${this.#secrets.size} of ${key}`, secret)
    }
  }

  /** Starts the worker and the scheduler, as `serve` does. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<OpenQueue & { readonly context: Context }> {
    const { options } = this.#parts
    const running = new Disposer()
    this.#worker = running
    const url = new URL(this.mesh.database.connectionString)
    url.port = String(this.database.port)
    const config = toConfig({
      env: { ...this.mesh.env, DATABASE_URL: url.href, ...env },
      pid: process.pid,
      hostname: 'worker',
    })
    const log = pino(
      { level: 'trace' },
      {
        write: (line: string) => {
          this.log += line
        },
      },
    )
    const { now, login } = options
    const context = await openContext(config, { log, ...(now && { now }), ...(login && { login }) })
    running.defer(() => context[Symbol.asyncDispose]())
    const queue = await openQueue(context)
    running.defer(() => queue.backend.close())
    running.defer(await startWorkerRole(context, queue))
    running.defer(await startScheduler(context, queue))
    return { ...queue, context }
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    await worker?.dispose()
  }

  /** Resolves when every registration is where it should be on these brokers, by themselves. */
  async settled(indexes: readonly number[]): Promise<void> {
    const names = new Set(indexes.map((index) => String(this.brokers[index]?.id)))
    const open = async () =>
      (await this.mesh.pairs()).filter(
        ({ broker, state, generation, reached }) =>
          names.has(broker) && (state !== 'in-sync' || reached !== generation),
      )
    try {
      await until('all is in sync', async () => ((await open()).length === 0 ? true : null))
    } catch (error) {
      const rows = (await open()).map(({ registration, broker, state, reason }) =>
        [registration, broker, state, reason].join(' '),
      )
      throw new Error(
        `${String(error)}:\n${rows.join('\n')}\nthe worker logged last:\n${this.log.split('\n').slice(-20).join('\n')}`,
      )
    }
  }

  /** Each password on these brokers is the stored one of its own username, and no secret is anywhere else. */
  async expectSecretsInPlace(): Promise<void> {
    const readable = new Map(await dumpDatabase(this.mesh.context.db))
    readable.set('the log', this.log)
    const stored = await this.mesh.secrets()
    for (const { name, state } of this.mesh.sandbox.brokers) {
      for (const username of state.clientUsernames.names()) {
        const password = state.passwordOf(username)
        if (password === null || !stored.has(username)) continue
        expect({ name, username, isItsOwn: password === stored.get(username) }).toEqual({
          name,
          username,
          isItsOwn: true,
        })
      }
      const { clientUsernames, aclProfiles, clientProfiles, queues } = state
      const values = [clientUsernames, aclProfiles, clientProfiles, queues].flatMap((view) =>
        view.names().map((each) => JSON.stringify(view.get(each))),
      )
      readable.set(`broker ${name}`, values.join('\n'))
    }
    expect(this.#secrets.size).toBeGreaterThan(0)
    expect(findSecrets(this.#secrets, readable)).toEqual([])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop()
    } finally {
      await this.#parts.opened.dispose()
    }
  }
}
