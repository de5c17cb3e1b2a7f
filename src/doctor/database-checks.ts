import { sql } from 'kysely'
import type { Database } from '../store/database.ts'
import { migrations } from '../store/migrations.ts'
import { type Finding, failed, ok, problem, warning } from './finding.ts'

/** `where`: how the database is called, without a password. */
export async function checkDatabase(db: Database, where: string): Promise<Finding> {
  const { rows } = await sql<{ version: string; standby: boolean; readOnly: string }>`
    select current_setting('server_version') as version, pg_is_in_recovery() as standby,
      current_setting('transaction_read_only') as "readOnly"`.execute(db)
  const [row] = rows
  const found = `PostgreSQL ${row?.version ?? '?'}, ${where}`
  if (row?.standby === true) {
    return problem('database', `${found}, is a standby and takes no writes.`, 'Let DATABASE_URL name the primary.')
  }
  if (row?.readOnly === 'on') {
    const fix = 'Let its user write: default_transaction_read_only must be off for it.'
    return problem('database', `${found}, takes no writes.`, fix)
  }
  return ok('database', `${found}, answers and takes writes.`)
}

/** Reads what was applied; applies nothing. */
export async function checkMigrations(db: Database): Promise<Finding> {
  const check = 'migrations'
  const newest = migrations.at(-1)?.version ?? 0
  const found = await sql<{ present: boolean }>`select to_regclass('schema_migrations') is not null as present`.execute(
    db,
  )
  const start = 'Start the service, or run any other command on the database: it applies them.'
  if (found.rows[0]?.present !== true) return warning(check, 'The database has no tables of Keymesh yet.', start)
  const { rows } = await sql<{ version: number; name: string; breaking: boolean }>`
    select version, name, breaking from schema_migrations order by version`.execute(db)
  const known = new Map(migrations.map(({ version, name }) => [version, name]))
  const other = rows.find(({ version, name }) => version <= newest && known.get(version) !== name)
  if (other !== undefined) {
    return problem(
      check,
      `Migration ${other.version} (${other.name}) is not one of this program: another line of releases made the database.`,
      'Let DATABASE_URL name the database of this Keymesh.',
    )
  }
  const ahead = rows.filter(({ version }) => version > newest)
  if (ahead.length > 0) {
    const list = ahead.map(({ version, name }) => `${version} (${name})`).join(', ')
    const said = `A newer Keymesh has applied ${list}.`
    const fix = 'Bring this program to that release.'
    return ahead.length > 1 || ahead.some(({ breaking }) => breaking)
      ? problem(check, said, fix)
      : warning(check, said, fix)
  }
  const applied = rows.at(-1)?.version ?? 0
  const missing = migrations.filter(({ version }) => version > applied).length
  if (missing > 0) return warning(check, `The database is at version ${applied} of ${newest}.`, start)
  return ok(check, `All ${rows.length} are applied, up to version ${newest}.`)
}

/** Leases and tokens end by clocks: a small difference is harmless, one as long as a lease is not. */
const NOTICED_DIFFERENCE_MS = 2_000
const FIX_CLOCK = 'Let both hosts follow the same time servers (NTP).'

export async function checkClock(
  db: Database,
  { now, leaseMs }: { readonly now: () => number; readonly leaseMs: number },
): Promise<Finding> {
  try {
    const startedAtMs = now()
    const { rows } = await sql<{ atMs: number }>`
      select extract(epoch from clock_timestamp())::float8 * 1000 as "atMs"`.execute(db)
    const endedAtMs = now()
    const apart = Math.round((rows[0]?.atMs ?? Number.NaN) - (startedAtMs + endedAtMs) / 2)
    // What the way there and back may account for is no difference.
    const certain = Math.max(0, Math.abs(apart) - (endedAtMs - startedAtMs) / 2)
    const found = `The clock of the database is ${Math.abs(apart)} ms ${apart < 0 ? 'behind' : 'ahead of'} this one.`
    if (certain >= leaseMs) return problem('clock', found, FIX_CLOCK)
    return certain >= NOTICED_DIFFERENCE_MS ? warning('clock', found, FIX_CLOCK) : ok('clock', found)
  } catch (error) {
    return failed('clock', error, FIX_CLOCK)
  }
}
