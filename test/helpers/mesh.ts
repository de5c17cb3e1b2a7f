import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { DEFAULT_BROKER_POLICY, type MessagingSettings } from '../../src/domain/catalogue.ts'
import { brokerId, registrationId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalFile } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { RunOptions } from '../../src/engine.ts'
import { parsePortalFile } from '../../src/portal-file/parse-portal-file.ts'
import type { LoginPort } from '../../src/reconcile/login-port.ts'
import type { Plan } from '../../src/reconcile/plan.ts'
import type { Pair } from '../../src/reconcile/store-port.ts'
import type { SweepResult } from '../../src/reconcile/sweep.ts'
import type { BrokerKey } from '../../src/reconcile/sweep-port.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxBroker, SandboxBrokerOptions } from '../../src/sandbox/sandbox-broker.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { type DriftFilter, type DriftView, readDrift } from '../../src/store/drift-view.ts'
import { type ImportOptions, type ImportResult, importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { credentialPlace } from '../../src/store/sealer-port.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

export interface MeshOptions {
  /** How many simulated brokers, or each with its own options; one when absent. */
  readonly brokers?: number | readonly SandboxBrokerOptions[]
  /** Options that all simulated brokers share. */
  readonly sandbox?: SandboxBrokerOptions
  /** What to import at once; nothing but the brokers when absent. */
  readonly portal?: (brokers: readonly PortalBroker[]) => Partial<PortalFile>
  /** Settings beyond the database and the key ring. */
  readonly env?: Readonly<Record<string, string>>
  readonly now?: () => number
  readonly log?: Logger
  /** Instead of real messaging clients. */
  readonly login?: LoginPort
}

export interface PairView {
  readonly registration: string
  readonly broker: string
  readonly state: string
  readonly reason: string | null
  readonly generation: number
  readonly reached: number
}

/** `await using mesh = await withMesh({…})`: simulated brokers, a database of its own, and an open context. */
export async function withMesh(options: MeshOptions = {}): Promise<TestMesh> {
  const opened = new Disposer()
  try {
    const database = await createTestDatabase()
    opened.defer(() => database.drop())
    const sandbox = await startSandbox({
      brokers: options.brokers ?? 1,
      ...(options.sandbox && { common: options.sandbox }),
    })
    opened.defer(() => sandbox.close())
    const keys = formatKeyRing(newKeyRing()).reveal()
    const env = {
      DATABASE_URL: database.connectionString,
      KEYMESH_KEYS: keys,
      KEYMESH_LOG_LEVEL: 'silent',
      KEYMESH_LOGINS: String(sandbox.brokers.some(({ endpoints }) => endpoints.length > 0)),
      ...options.env,
    }
    const mesh = new TestMesh({
      opened,
      database,
      sandbox,
      env,
      options,
      context: await openAs('first', env, options, opened),
    })
    if (options.portal !== undefined) await mesh.import(options.portal(mesh.brokers))
    return mesh
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

type Environment = Readonly<Record<string, string>>

async function openAs(name: string, env: Environment, options: MeshOptions, opened: Disposer): Promise<Context> {
  const { now, log, login } = options
  const config = toConfig({ env, pid: process.pid, hostname: name })
  const context = await openContext(config, { ...(now && { now }), ...(log && { log }), ...(login && { login }) })
  opened.defer(() => context[Symbol.asyncDispose]())
  return context
}

interface MeshParts {
  readonly opened: Disposer
  readonly database: TestDatabase
  readonly sandbox: Sandbox
  readonly env: Environment
  readonly options: MeshOptions
  readonly context: Context
}

export class TestMesh implements AsyncDisposable {
  readonly sandbox: Sandbox
  readonly database: TestDatabase
  readonly context: Context
  /** What a process of its own needs to work on the same database. */
  readonly env: Environment
  /** `broker-1`, `broker-2`, … as they are imported. */
  readonly brokers: readonly PortalBroker[]
  readonly #parts: MeshParts
  #imported: PortalFile

  constructor(parts: MeshParts) {
    this.#parts = parts
    this.sandbox = parts.sandbox
    this.database = parts.database
    this.context = parts.context
    this.env = parts.env
    this.brokers = parts.sandbox.brokers.map(portalBroker)
    this.#imported = emptyPortalFile(this.brokers)
  }

  /** Imports the file of the last import with these parts replaced. */
  async import(parts: Partial<PortalFile>, options: ImportOptions = {}): Promise<ImportResult> {
    const { db, sealer, accountId, now } = this.context
    const file = { ...this.#imported, ...parts }
    const result = await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, file, options)
    if (options.dryRun !== true) this.#imported = file
    return result
  }

  /** A context as another process has it: its own connections, its own name in leases. Disposed with the mesh. */
  another(name: string): Promise<Context> {
    return openAs(name, this.env, this.#parts.options, this.#parts.opened)
  }

  broker(index = 0): SandboxBroker {
    return this.sandbox.broker(index)
  }

  key(index = 0): BrokerKey {
    const broker = this.#imported.brokers[index]
    if (broker === undefined) throw new RangeError(`the mesh has no broker ${index}`)
    return { accountId: this.context.accountId, brokerId: broker.id }
  }

  pair(registration: string, index = 0): Pair {
    return { ...this.key(index), registrationId: registrationId(registration) }
  }

  sweep(index = 0, options: Partial<RunOptions> = {}): Promise<SweepResult> {
    return this.context.engine.sweep(this.key(index), { trigger: 'sweep', ...options })
  }

  async sweepAll(): Promise<readonly SweepResult[]> {
    const results: SweepResult[] = []
    for (const index of this.#imported.brokers.keys()) results.push(await this.sweep(index))
    return results
  }

  /** What a sweep would do now. */
  async plans(index = 0, options: Partial<RunOptions> = {}): Promise<readonly Plan[]> {
    const plans: Plan[] = []
    for await (const plan of this.context.engine.planBroker(this.key(index), options)) plans.push(plan)
    return plans
  }

  /** Write requests that all brokers got. */
  writes(): number {
    return this.sandbox.brokers.reduce((sum, { requests }) => sum + requests.writes, 0)
  }

  /** In the order of registration and broker. */
  async pairs(): Promise<readonly PairView[]> {
    const { rows } = await sql<PairView>`
      select registration_id as registration, broker_id as broker, state, reason, generation, reached_generation as reached
      from pairs order by registration_id, broker_id`.execute(this.context.db)
    return rows
  }

  drift(filter: Partial<DriftFilter> = {}): Promise<readonly DriftView[]> {
    return readDrift(this.context.db, { accountId: this.context.accountId, limit: 1000, ...filter })
  }

  secrets(): Promise<ReadonlyMap<string, string>> {
    return storedSecrets(this.context)
  }

  async secretOf(consumerKey: string): Promise<string> {
    const secret = (await this.secrets()).get(consumerKey)
    if (secret === undefined) throw new Error(`no credential has the key ${consumerKey}`)
    return secret
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.opened.dispose()
  }
}

/** Stored secrets in clear text by consumer key, of credentials that are not retired. */
export async function storedSecrets({ db, sealer, accountId }: Context): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('credentials').selectAll().where('retired_at', 'is', null).execute()
  const opened = rows.map(async (row) => {
    const secret = await sealer.open(row.secret, credentialPlace(accountId, row.id, row.secret_version))
    return [row.consumer_key, secret.reveal()] as const
  })
  return new Map(await Promise.all(opened))
}

/** The management settings that reach a simulated broker. */
const managementOf = ({ url, msgVpnName, username }: SandboxBroker) => ({
  url,
  msgVpnName,
  username,
  maxConcurrentRequests: 4,
  requestTimeoutMs: 10_000,
})

/** A simulated broker as a portal file declares it. */
export function portalBroker(sandbox: SandboxBroker): PortalBroker {
  return {
    id: brokerId(sandbox.name),
    name: sandbox.name,
    kind: 'solace',
    eventMeshId: 'mesh',
    management: managementOf(sandbox),
    managementPassword: new Secret(sandbox.password),
    messaging: messagingOf(sandbox),
    policy: DEFAULT_BROKER_POLICY,
  }
}

/** Where clients log in to a simulated broker; a port that nobody listens on when it has none. */
const messagingOf = ({ endpoints, caCertificate }: SandboxBroker): MessagingSettings =>
  endpoints.length === 0
    ? { host: 'localhost', protocols: [{ protocol: 'smfs', port: 55443 }] }
    : { host: 'localhost', protocols: endpoints, caCertificate }

export const emptyPortalFile = (brokers: readonly PortalBroker[]): PortalFile => ({
  file: 'portal.yaml',
  environments: [{ id: 'test', name: 'Test' }],
  eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'test' }],
  brokers,
  applicationDomains: [{ id: 'sales', name: 'Sales', description: '' }],
  eventApis: [],
  products: [],
  registrations: [],
  warnings: [],
})

export const EXAMPLE_CATALOGUE = fileURLToPath(new URL('../../examples/catalogue.yaml', import.meta.url))
/** What the sandbox has to be like for the sample catalogue's brokers. */
export const EXAMPLE_SANDBOX = {
  msgVpnName: 'rail',
  username: 'keymesh',
  password: 'semp-password-of-the-example',
} as const

/** The sample catalogue, its brokers moved to the simulated ones. */
export async function exampleCatalogue(sandbox: Sandbox): Promise<PortalFile> {
  const file = await parsePortalFile(EXAMPLE_CATALOGUE, { env: () => EXAMPLE_SANDBOX.password })
  const brokers = file.brokers.map((broker, index) => {
    if (broker.management === null) throw new Error(`broker ${broker.id} of the sample has no management settings`)
    return { ...broker, management: { ...broker.management, url: sandbox.broker(index).url } }
  })
  return { ...file, brokers }
}
