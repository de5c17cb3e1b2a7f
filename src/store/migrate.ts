import type { Pool, PoolClient } from 'pg'
import pg from 'pg'
import { KeymeshError } from '../domain/errors.ts'
import type { Migration } from './migrations.ts'

/** Any number, the same in every release: replicas that start at once take turns on it. */
const MIGRATION_LOCK = '5271146883925047211'
/** How many unknown, not breaking migrations an older program tolerates: those of the next release, for a rolling update. */
const TOLERATED_AHEAD = 1

export interface MigrateOutcome {
  /** Versions that this call applied, in order. */
  readonly applied: readonly number[]
  /** The highest version in the database afterwards; 0 when there is none. */
  readonly schemaVersion: number
  /** Versions in the database that this program does not know yet. */
  readonly ahead: readonly number[]
}

interface AppliedRow {
  readonly version: number
  readonly name: string
  readonly breaking: boolean
}

/**
 * Brings the schema forward, one transaction per migration, each recorded in `schema_migrations`. Any number of processes
 * may do so at once. Throws SCHEMA_TOO_NEW when the database is ahead of what this program can live with,
 * SCHEMA_DIVERGED when its history is another one, MIGRATION_FAILED when a migration's SQL fails (nothing of it is kept).
 */
export async function migrate(pool: Pool, migrations: readonly Migration[]): Promise<MigrateOutcome> {
  assertAscending(migrations)
  const applied: number[] = []
  const client = await pool.connect()
  let broken: Error | undefined
  // Without a listener a connection that dies between two queries would end the process.
  const onError = (error: Error): void => {
    broken = error
  }
  client.on('error', onError)
  try {
    for (;;) {
      const step = await applyNext(client, migrations)
      if (step.applied === null) return { applied, schemaVersion: step.schemaVersion, ahead: step.ahead }
      applied.push(step.applied)
    }
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

interface Step {
  /** Null when nothing was left to do. */
  readonly applied: number | null
  readonly schemaVersion: number
  readonly ahead: readonly number[]
}

async function applyNext(client: PoolClient, migrations: readonly Migration[]): Promise<Step> {
  await client.query('begin')
  try {
    await lockMigrations(client)
    const history = await readHistory(client)
    const ahead = checkHistory(history, migrations)
    const schemaVersion = history.at(-1)?.version ?? 0
    const next = migrations.find(({ version }) => version > schemaVersion)
    if (next !== undefined) await apply(client, next)
    await client.query('commit')
    return next === undefined
      ? { applied: null, schemaVersion, ahead }
      : { applied: next.version, schemaVersion: next.version, ahead }
  } catch (error) {
    // The connection may be gone, and then the server has rolled back already: the first error is the one to tell.
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Until the transaction ends nobody else changes the schema. */
export async function lockMigrations(client: PoolClient): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
}

/** Brings the schema forward inside the caller's transaction, which holds the lock; to `version`, or to the end. */
export async function migrateWithin(
  client: PoolClient,
  migrations: readonly Migration[],
  version: number = Number.POSITIVE_INFINITY,
): Promise<void> {
  const newest = (await readHistory(client)).at(-1)?.version ?? 0
  for (const migration of migrations) {
    if (migration.version > newest && migration.version <= version) await apply(client, migration)
  }
}

async function readHistory(client: PoolClient): Promise<AppliedRow[]> {
  await client.query(`create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    breaking boolean not null,
    applied_at timestamptz not null default now()
  )`)
  const { rows } = await client.query<AppliedRow>(
    'select version, name, breaking from schema_migrations order by version',
  )
  return rows
}

async function apply(client: PoolClient, migration: Migration): Promise<void> {
  try {
    await client.query(migration.sql)
    await client.query('insert into schema_migrations (version, name, breaking) values ($1, $2, $3)', [
      migration.version,
      migration.name,
      migration.breaking === true,
    ])
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || isTransient(error.code)) throw error
    throw new KeymeshError({
      code: 'MIGRATION_FAILED',
      fate: 'stop',
      message: `Migration ${label(migration)} failed: ${error.message}`,
      hint: 'Nothing of it was kept and the program before it still works. Correct what the message names and start again.',
      cause: error,
    })
  }
}

/** Deadlocks, lack of resources, a server that is going down: classes 40, 53, 57 of SQLSTATE. */
function isTransient(sqlState: string | undefined): boolean {
  return sqlState !== undefined && /^(40|53|57)/.test(sqlState)
}

/** Returns the versions that only the database knows. */
function checkHistory(history: readonly AppliedRow[], migrations: readonly Migration[]): number[] {
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  const newestKnown = migrations.at(-1)?.version ?? 0
  const ahead = history.filter(({ version }) => version > newestKnown)
  const breaking = ahead.filter((row) => row.breaking)
  if (breaking.length > 0 || ahead.length > TOLERATED_AHEAD) {
    throw tooNew(breaking.length > 0 ? breaking : ahead, newestKnown)
  }
  const newestApplied = history.at(-1)?.version ?? 0
  const applied = new Set(history.map(({ version }) => version))
  for (const row of history) {
    if (row.version <= newestKnown && known.get(row.version)?.name !== row.name) throw diverged(row, 'database')
  }
  for (const migration of migrations) {
    if (migration.version < newestApplied && !applied.has(migration.version)) throw diverged(migration, 'program')
  }
  return ahead.map(({ version }) => version)
}

function assertAscending(migrations: readonly Migration[]): void {
  migrations.forEach((migration, index) => {
    const previous = index === 0 ? 0 : (migrations[index - 1]?.version ?? 0)
    if (!Number.isInteger(migration.version) || migration.version <= previous) {
      throw new Error(`migration ${label(migration)} is not in ascending order of versions`)
    }
  })
}

function tooNew(rows: readonly AppliedRow[], newestKnown: number): KeymeshError {
  return new KeymeshError({
    code: 'SCHEMA_TOO_NEW',
    fate: 'stop',
    message: `The database has ${rows.map(label).join(', ')}, which this program (up to version ${newestKnown}) cannot live with.`,
    hint: 'A newer Keymesh has used this database. Start that release or a newer one; nothing was changed.',
  })
}

function diverged(migration: Pick<Migration, 'version' | 'name'>, only: 'database' | 'program'): KeymeshError {
  return new KeymeshError({
    code: 'SCHEMA_DIVERGED',
    fate: 'stop',
    message: `Migration ${label(migration)} is known to the ${only} only: the database was made by another line of releases.`,
    hint: 'Check that DATABASE_URL names the database of this Keymesh. Nothing was changed.',
  })
}

function label({ version, name }: Pick<Migration, 'version' | 'name'>): string {
  return `${version} (${name})`
}
