import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { type DestinationStream, type Logger, pino } from 'pino'
import { BrokerCircuits } from './broker-circuits.ts'
import { BrokerConnections } from './broker-connections.ts'
import { BrokerLogins, type LoginObserver } from './broker-logins.ts'
import type { Config, LoginConfig } from './config.ts'
import { Disposer } from './disposer.ts'
import { errorLine } from './domain/errors.ts'
import { type AccountId, runId } from './domain/ids.ts'
import { Engine } from './engine.ts'
import { createLoginClients } from './login/login-clients.ts'
import { NotificationSender } from './notifications/notification-sender.ts'
import { Notifier } from './notifier.ts'
import { enterRun, idsForLog } from './observability/activity.ts'
import { LIBRARY_EVENT } from './observability/log-events.ts'
import { Metrics } from './observability/metrics.ts'
import { Observer } from './observability/observer.ts'
import { openTracing, type Tracing } from './observability/tracing.ts'
import type { LoginPort } from './reconcile/login-port.ts'
import type { ReconcileStore } from './reconcile/store-port.ts'
import type { BrokerKey, SweepStore } from './reconcile/sweep-port.ts'
import { RemoteFollower } from './remote-follower.ts'
import { followKeyRing } from './secrets/following-key-ring.ts'
import { createFollowingSealer } from './secrets/following-sealer.ts'
import { type KeyRing, parseKeyRing } from './secrets/key-ring.ts'
import { keyRingPath, openKeyRingFile } from './secrets/key-ring-file.ts'
import { createPasswords, type Passwords } from './secrets/passwords.ts'
import { createSealer, type Sealer } from './secrets/seal.ts'
import { createUserTokens, type UserTokens } from './secrets/user-tokens.ts'
import { ensureAccount } from './store/accounts.ts'
import { type Database, openDatabase } from './store/database.ts'
import { startEmbeddedPostgres } from './store/embedded-postgres.ts'
import { migrate } from './store/migrate.ts'
import { migrations } from './store/migrations.ts'
import { cryptoRandom } from './store/random-source.ts'
import { createReconcileStore } from './store/reconcile-store.ts'
import { createSweepMemory } from './store/sweep-memory.ts'
import { createSweepStore } from './store/sweep-store.ts'
import { UrgentRuns } from './urgent-runs.ts'

export interface Context extends AsyncDisposable {
  readonly config: Config
  readonly log: Logger
  readonly now: () => number
  readonly accountId: AccountId
  /** For the queue, which has connections of its own. Holds a password: never logged. */
  readonly connectionString: string
  readonly db: Database
  readonly sealer: Sealer
  readonly keyRing: KeyRing
  /** Where the key ring is kept; null when it came from the environment. */
  readonly keyRingFile: string | null
  readonly passwords: Passwords
  readonly userTokens: UserTokens
  readonly reconcileStore: ReconcileStore
  readonly sweepStore: SweepStore
  readonly connections: BrokerConnections
  readonly engine: Engine
  readonly metrics: Metrics
  readonly tracing: Tracing
  readonly observer: Observer
  /** Messaging clients that log in once and leave. */
  readonly login: LoginPort
  /** Null when the account has its catalogue of its own. */
  readonly remote: RemoteFollower | null
  readonly notifier: Notifier
  /** Settles when the embedded database ends although nobody stopped it. */
  readonly databaseLost: Promise<Error>
}

const RELAXED_CONNECTIONS = 4
/** Far shorter than any lease; a write is on its way to the broker for longer. */
const LEASE_CHECK_FRESH_MS = 250

export interface ContextOptions {
  readonly log?: Logger
  readonly now?: () => number
  /** Instead of real messaging clients. */
  readonly login?: LoginPort
  /** Gives up durability for speed. For tests only. */
  readonly unsafeFastDatabase?: boolean
}

/**
 * The composition root: the only place that knows every adapter. Starts or joins the database, migrates it, opens the
 * key ring. Disposing gives everything back in the opposite order.
 */
export async function openContext(config: Config, options: ContextOptions = {}): Promise<Context> {
  const opened = new Disposer()
  try {
    return await open(config, options, opened)
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

async function open(config: Config, options: ContextOptions, opened: Disposer): Promise<Context> {
  const log = options.log ?? createLogger(config)
  const now = options.now ?? Date.now
  const { connectionString, lost } = await openPostgres(config, log, options, opened)
  const onIdleError = (error: Error): void =>
    log.warn({ event: 'database.connection-lost', error: errorLine(error) }, 'A database connection was lost')
  const { db, pool, close } = openDatabase({
    connectionString,
    maxConnections: config.databaseConnections,
    onIdleError,
  })
  opened.defer(close)
  const relaxed = openDatabase({
    connectionString,
    maxConnections: RELAXED_CONNECTIONS,
    waitForDisk: false,
    onIdleError,
  })
  opened.defer(relaxed.close)
  await migrate(pool, migrations)
  const { latestRing, ...keys } = await openKeyRing(config, db, log)
  const accountId = await ensureAccount(db, config.account)
  const metrics = new Metrics()
  const tracing = await openTracing(config.traces)
  opened.defer(() => tracing.close())
  const observer = new Observer({ metrics, tracing, log })
  const reconcileStore = observer.store(
    createReconcileStore(db, keys.sealer, {
      relaxed: relaxed.db,
      leaseCheckFreshMs: LEASE_CHECK_FRESH_MS,
      onDrift: observer.drift,
    }),
  )
  const urgent = new UrgentRuns()
  const sweepStore = createSweepStore(db, urgent.standBack)
  const { sealer } = keys
  const remote =
    config.remote === null
      ? null
      : new RemoteFollower({
          db,
          sealer,
          random: cryptoRandom,
          now,
          log,
          accountId,
          remote: config.remote,
          instance: config.instance,
        })
  if (remote !== null) opened.defer(() => remote.close())
  const connections = new BrokerConnections(db, keys.sealer, { observe: observer.semp, isUrgent: urgent.any })
  opened.defer(() => connections.close())
  const circuits = new BrokerCircuits({
    db,
    now,
    random: Math.random,
    onChange: (broker, { failures }) => observer.rested(broker, failures),
  })
  const sender = new NotificationSender(config.notifications)
  opened.defer(() => sender.close())
  const { retryMs } = config.notifications
  const notifier = new Notifier({ db, sealer, sender, now, ids: cryptoRandom, random: Math.random, retryMs, log })
  const login = options.login ?? ownClients(opened)
  const logins =
    config.logins === null
      ? null
      : openLogins({ db, connections, now, login, observer: observer.logins, settings: config.logins })
  const engine = new Engine({
    db,
    connections,
    circuits,
    urgent,
    reconcileStore,
    sweepStore,
    sweepMemory: createSweepMemory(db),
    maxListings: config.sweepListings,
    now,
    newRunId: () => {
      const id = runId(randomUUID())
      enterRun(id)
      return id
    },
    instance: config.instance,
    leaseMs: config.leaseMs,
    concurrency: config.concurrency,
    settings: { graceMs: config.graceMs, maxTopics: config.maxTopics, maxDeletes: config.maxDeletes },
    verifier: logins,
    proveEveryMs: config.logins?.everyMs ?? Number.POSITIVE_INFINITY,
    observe: observer.run,
  })
  return {
    config,
    log,
    now,
    accountId,
    connectionString,
    db,
    ...keys,
    passwords: createPasswords(),
    userTokens: createUserTokens({ ring: latestRing, now }),
    reconcileStore,
    sweepStore,
    connections,
    engine,
    metrics,
    tracing,
    observer,
    login,
    remote,
    notifier,
    databaseLost: lost,
    [Symbol.asyncDispose]: () => opened.dispose(),
  }
}

interface LoginParts {
  readonly db: Database
  readonly connections: BrokerConnections
  readonly now: () => number
  readonly login: LoginPort
  readonly observer: LoginObserver
  readonly settings: LoginConfig
}

function openLogins({ db, connections, now, login, observer, settings }: LoginParts): BrokerLogins {
  const port = (broker: BrokerKey) => connections.port(broker)
  return new BrokerLogins({
    db,
    login,
    facts: async (broker, signal) => (await port(broker)).facts(signal),
    connections: async (broker, clientUsername, signal) => (await port(broker)).connections(clientUsername, signal),
    now,
    wrongPassword: () => randomUUID(),
    observer,
    ...settings,
  })
}

/** Nothing of a client is loaded before it is used. */
function ownClients(opened: Disposer): LoginPort {
  const clients = createLoginClients()
  opened.defer(() => clients.close())
  return clients
}

/** Errors of libraries carry what they were given: rows in a database's detail, a client with its settings. None of it is logged. */
export function loggedError(error: unknown): object {
  if (!(error instanceof Error)) return { message: errorLine(error) }
  const { name, message, stack } = error
  return { type: name, code: 'code' in error ? String(error.code) : undefined, message, stack }
}

/**
 * JSON lines on standard error, so that standard output belongs to the commands. Each line has the ids of the request,
 * the job, the run and the trace that it belongs to.
 */
export function createLogger(
  config: Pick<Config, 'logLevel' | 'instance'>,
  destination: DestinationStream = pino.destination({ dest: 2, sync: true }),
): Logger {
  return pino(
    {
      level: config.logLevel,
      base: { instance: config.instance },
      serializers: { err: loggedError },
      mixin: (line, _level, logger) => ({
        ...('event' in line ? {} : { event: LIBRARY_EVENT }),
        ...idsForLog(logger.bindings()),
      }),
    },
    destination,
  )
}

async function openPostgres(config: Config, log: Logger, options: ContextOptions, opened: Disposer) {
  if (config.databaseUrl !== null) {
    return { connectionString: config.databaseUrl, lost: new Promise<Error>(() => undefined) }
  }
  const embedded = await startEmbeddedPostgres({
    dataDirectory: config.dataDirectory,
    log,
    ...(options.unsafeFastDatabase === undefined ? {} : { unsafeFast: options.unsafeFastDatabase }),
  })
  opened.defer(() => embedded.stop())
  return embedded
}

async function openKeyRing(config: Config, db: Database, log: Logger) {
  if (config.keys !== null) {
    const keyRing = parseKeyRing(config.keys, 'KEYMESH_KEYS')
    return { keyRing, keyRingFile: null, sealer: createSealer(keyRing), latestRing: async () => keyRing }
  }
  const mayCreate = !(await holdsSecrets(db))
  const keyRing = await openKeyRingFile({ dataDirectory: config.dataDirectory, mayCreate, log })
  const keyRingFile = keyRingPath(config.dataDirectory)
  const sealer = createFollowingSealer(keyRingFile, keyRing)
  return { keyRing, keyRingFile, sealer, latestRing: followKeyRing(keyRingFile, keyRing) }
}

async function holdsSecrets(db: Database): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select 1 from credentials) or exists (select 1 from brokers where management_password is not null)
      or exists (select 1 from notification_endpoints)
      as found`.execute(db)
  return rows[0]?.found ?? false
}
