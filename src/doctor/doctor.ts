import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { pino } from 'pino'
import { type Process, toUsableConfig } from '../config.ts'
import { Disposer } from '../disposer.ts'
import type { ManagementSettings, MessagingSettings } from '../domain/catalogue.ts'
import { KeymeshError } from '../domain/errors.ts'
import type { KeyRing } from '../secrets/key-ring.ts'
import { createSealer } from '../secrets/seal.ts'
import { type Database, openDatabase } from '../store/database.ts'
import { startEmbeddedPostgres } from '../store/embedded-postgres.ts'
import { brokerPasswordPlace } from '../store/sealer-port.ts'
import { type CheckedBroker, checkBroker, unopenedBroker } from './broker-checks.ts'
import { checkClock, checkDatabase, checkMigrations } from './database-checks.ts'
import { type Finding, failed, inTime, skipped } from './finding.ts'
import {
  checkDataDirectory,
  checkDisk,
  checkNode,
  checkSettings,
  checkSmfClient,
  installedSmfClient,
} from './host-checks.ts'
import { checkKeyRing, checkSealedRows } from './key-checks.ts'
import { checkQueue } from './queue-checks.ts'
import { checkRemoteCatalogue } from './remote-check.ts'

export interface DoctorOptions {
  readonly process: Process
  readonly nodeVersion: string
  readonly now: () => number
  readonly signal: AbortSignal
  /** What is looked at next, for a person who waits. */
  readonly onProgress?: (what: string) => void
}

const DATABASE_CHECKS = ['migrations', 'clock', 'sealed secrets', 'brokers'] as const
const DATABASE_TIMEOUT_MS = 30_000
/** One broker with all its protocols; a broker that is silent is told of by then. */
const BROKER_TIMEOUT_MS = 20_000

/**
 * Looks at the whole set-up and changes nothing: settings, database, keys, queue, brokers, what is installed. Every check
 * is made, also when others fail; those that rest on one that failed say so. The findings come as they are made.
 */
export async function* diagnose(options: DoctorOptions): AsyncGenerator<Finding, void, undefined> {
  const { now, signal, onProgress = () => undefined } = options
  const { config, problems } = toUsableConfig(options.process)
  yield* checkSettings(problems)
  yield checkNode(options.nodeVersion)
  const keys = await checkKeyRing(config)
  const opened = new Disposer()
  try {
    onProgress('the database')
    const exposedOn: string[] = []
    const database = await openForChecks(config, opened).catch((error: unknown) => error)
    if (config.databaseUrl === null && (await exists(config.dataDirectory))) {
      yield await checkDataDirectory(config)
      yield await checkDisk(config)
    }
    const found = isOpen(database) ? await settled('database', () => checkDatabase(database.db, database.where)) : null
    if (found !== null) yield found
    else if (database === NOT_MADE) yield skipped('database', 'There is none yet: the first start makes it.')
    else yield failed('database', database, 'Start PostgreSQL, or correct DATABASE_URL.')
    yield database === NOT_MADE && keys.finding.outcome === 'warning'
      ? skipped(keys.finding.check, 'There is none yet: the first start makes it.')
      : keys.finding
    let knowsBrokers = false
    if (isOpen(database) && found?.outcome !== 'problem') {
      yield await settled('migrations', () => checkMigrations(database.db))
      yield await checkClock(database.db, { now, leaseMs: config.leaseMs })
      yield await settled('sealed secrets', () => checkSealedRows(database.db, keys.ring))
      onProgress('the brokers')
      for await (const part of brokerFindings(database.db, keys.ring, signal)) {
        yield* part.findings
        exposedOn.push(...part.smf)
      }
      knowsBrokers = true
    } else {
      const why = database === NOT_MADE ? 'There is no database yet.' : 'The database cannot be used.'
      for (const check of DATABASE_CHECKS) yield skipped(check, why)
    }
    onProgress('the queue')
    yield* await checkQueue(config)
    onProgress('the remote catalogue')
    yield await settled('remote catalogue', () => checkRemoteCatalogue(config, now, signal))
    yield checkSmfClient(installedSmfClient(), knowsBrokers ? exposedOn : null)
  } finally {
    await opened.dispose()
  }
}

async function settled(check: string, work: () => Promise<Finding>): Promise<Finding> {
  try {
    return await inTime(work(), DATABASE_TIMEOUT_MS)
  } catch (error) {
    return failed(check, error, 'Look at the log of the database, and whether it is the one of this Keymesh.')
  }
}

const NOT_MADE = Symbol('no database was made yet')

interface OpenForChecks {
  readonly db: Database
  /** For a person; no password in it. */
  readonly where: string
}

const isOpen = (value: unknown): value is OpenForChecks => typeof value === 'object' && value !== null && 'db' in value

/** Joins or starts the embedded database when there is one; makes none, and applies no migration. */
async function openForChecks(
  config: ReturnType<typeof toUsableConfig>['config'],
  opened: Disposer,
): Promise<OpenForChecks | typeof NOT_MADE> {
  const { databaseUrl, dataDirectory } = config
  let connectionString = databaseUrl
  let where = databaseUrl === null ? `embedded in ${dataDirectory}` : placeOf(databaseUrl)
  if (connectionString === null) {
    const made =
      (await exists(join(dataDirectory, 'postgres'))) || (await exists(join(dataDirectory, 'postgres-location')))
    if (!made) return NOT_MADE
    const embedded = await startEmbeddedPostgres({ dataDirectory, log: pino({ level: 'silent' }) })
    opened.defer(() => embedded.stop())
    connectionString = embedded.connectionString
    where += embedded.joined ? ', in use by a running service' : ''
  }
  const { db, close } = openDatabase({ connectionString, maxConnections: 2, onIdleError: () => undefined })
  opened.defer(close)
  // Whether it answers at all is part of opening it.
  await inTime(sql`select 1`.execute(db), DATABASE_TIMEOUT_MS)
  return { db, where }
}

function placeOf(databaseUrl: string): string {
  const { hostname, port, pathname } = new URL(databaseUrl)
  return `database ${pathname.slice(1) || '(default)'} at ${hostname || 'the local socket'}${port === '' ? '' : `:${port}`}`
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

interface BrokerRow {
  readonly account: string
  readonly id: string
  readonly management: ManagementSettings | null
  readonly sealed: string | null
  readonly version: number
  readonly messaging: MessagingSettings | null
}

interface BrokerPart {
  readonly findings: readonly Finding[]
  /** The broker's name when it exposes SMF. */
  readonly smf: readonly string[]
}

const AT_A_TIME = 8

/** Of all accounts; in their order, though they are asked side by side. */
async function* brokerFindings(db: Database, ring: KeyRing | null, signal: AbortSignal): AsyncGenerator<BrokerPart> {
  let rows: readonly BrokerRow[]
  try {
    rows = (
      await sql<BrokerRow>`
        select account_id as account, id, management, management_password as sealed,
          management_password_version as version, messaging
        from brokers order by account_id, id`.execute(db)
    ).rows
  } catch (error) {
    yield { findings: [failed('brokers', error, 'Bring the database to the version of this program.')], smf: [] }
    return
  }
  if (rows.length === 0) {
    yield { findings: [skipped('brokers', 'None is declared: `keymesh import FILE` does that.')], smf: [] }
    return
  }
  const isOneAccount = new Set(rows.map(({ account }) => account)).size === 1
  for (let start = 0; start < rows.length; start += AT_A_TIME) {
    const parts = rows.slice(start, start + AT_A_TIME).map(async (row): Promise<BrokerPart> => {
      const name = isOneAccount ? row.id : `${row.account}/${row.id}`
      const smf = row.messaging?.protocols.some(({ protocol }) => protocol.startsWith('smf')) === true ? [name] : []
      return { findings: await findingsOf(row, name, ring, signal), smf }
    })
    yield* await Promise.all(parts)
  }
}

async function findingsOf(
  { account, id, management, sealed, version, messaging }: BrokerRow,
  name: string,
  ring: KeyRing | null,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (management === null || sealed === null) {
    const fix = 'Import a portal file with its URL, message VPN, user name and password.'
    return [{ check: `broker ${name}`, outcome: 'warning', found: 'Its management settings are incomplete.', fix }]
  }
  let broker: CheckedBroker
  try {
    if (ring === null)
      throw new KeymeshError({ code: 'KEY_RING_MISSING', fate: 'stop', message: 'There is no key ring.' })
    const password = await createSealer(ring).open(sealed, brokerPasswordPlace(account, id, version))
    broker = { name, management, password, messaging }
  } catch (error) {
    return unopenedBroker(name, error)
  }
  return await checkBroker(broker, AbortSignal.any([signal, AbortSignal.timeout(BROKER_TIMEOUT_MS)]))
}
