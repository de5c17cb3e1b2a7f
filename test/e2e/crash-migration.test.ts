import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Disposer } from '../../src/disposer.ts'
import { migrate } from '../../src/store/migrate.ts'
import { migrations } from '../../src/store/migrations.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { type PostgresTap, type StatementPoint, startPostgresTap } from '../helpers/postgres-tap.ts'
import { Service, until } from '../helpers/service.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'
import { farCron } from './crash-world.ts'

/** The release that left the database: it had the main tables, and nothing of what came after. */
const OLD_VERSION = 3
const APPS = ['app-1', 'app-2']
const COMMIT = /^Q[\s\S]{4}commit/i

const opened = new Disposer()
let mesh: TestMesh
let old: TestDatabase
let tap: PostgresTap
let directory: string

beforeAll(async () => {
  mesh = await withMesh({
    sandbox: { logins: { mqtt: 0 } },
    portal: (brokers) =>
      ordersPortal(
        brokers,
        APPS.map((id) => client(id)),
      ),
  })
  opened.defer(() => mesh[Symbol.asyncDispose]())
  await mesh.sweep()
  old = await createTestDatabase({ migrated: false })
  opened.defer(() => old.drop())
  await migrate(
    old.pool,
    migrations.filter(({ version }) => version <= OLD_VERSION),
  )
  await copyRows(mesh.database.pool, old.pool)
  tap = await startPostgresTap(old.connectionString)
  opened.defer(() => tap[Symbol.asyncDispose]())
  directory = await mkdtemp(join(tmpdir(), 'keymesh-migration-'))
  opened.defer(() => rm(directory, { recursive: true, force: true }))
})
afterAll(() => opened.dispose())

/** All rows, as far as the older schema has a place for them. */
async function copyRows(from: pg.Pool, to: pg.Pool): Promise<void> {
  const client = await to.connect()
  try {
    // Without its triggers and foreign keys the order does not matter.
    await client.query("set session_replication_role = 'replica'")
    for (const { table, columns } of await tablesOf(to)) {
      if (table === 'schema_migrations') continue
      const { rows } = await from.query(`select to_jsonb(t) as row from ${table} t`)
      const list = columns.map((column) => `"${column}"`).join(', ')
      await client.query(
        `insert into ${table} (${list}) select ${list} from jsonb_populate_recordset(null::${table}, $1)`,
        [JSON.stringify(rows.map(({ row }) => row))],
      )
    }
  } finally {
    client.release(true)
  }
}

async function tablesOf(
  pool: pg.Pool,
): Promise<readonly { readonly table: string; readonly columns: readonly string[] }[]> {
  const { rows } = await pool.query(`
    select table_name as table, array_agg(column_name::text order by column_name) as columns
    from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema = 'public' and table_type = 'BASE TABLE' and is_generated = 'NEVER' and is_identity = 'NO' group by 1 order by 1`)
  return rows
}

/** Columns, indexes, constraints and triggers, the order in which they were made apart. */
async function schemaOf(pool: pg.Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ line: string }>(`
    select concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) as line
    from information_schema.columns where table_schema = 'public'
    union all select indexdef from pg_indexes where schemaname = 'public'
    union all select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
      where connamespace = 'public'::regnamespace
    union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    order by 1`)
  return rows.map(({ line }) => line)
}

async function versions(): Promise<readonly number[]> {
  const { rows } = await old.pool.query<{ version: number }>('select version from schema_migrations order by version')
  return rows.map(({ version }) => version)
}

const upTo = (last: number): readonly number[] =>
  migrations.map(({ version }) => version).filter((each) => each <= last)
const LAST = migrations.at(-1)?.version ?? 0
const versionOf = (name: string): number => migrations.find((each) => each.name === name)?.version ?? 0

const env = () => ({
  ...mesh.env,
  DATABASE_URL: tap.connectionString,
  KEYMESH_LOG_LEVEL: 'info',
  KEYMESH_LOGINS: 'true',
  KEYMESH_ROLES: 'worker,scheduler',
  KEYMESH_POLL_CRON: '* * * * * *',
  KEYMESH_SWEEP_CRON: farCron(),
})

/** Begins the service and kills it there. */
async function killAt(point: StatementPoint): Promise<void> {
  const hold = tap.hold(point)
  await using service = Service.begin({ dataDirectory: directory, env: env() })
  await until('the service is stopped', () => {
    if (service.isRunning) return hold.isReached() ? true : null
    throw new Error(`the service ended by itself:\n${service.printed}`)
  })
}

/** In the order of a start: each goes on where the one before was killed. */
const KILLS: readonly { readonly when: string; readonly point: StatementPoint; readonly left: readonly number[] }[] = [
  {
    when: 'after the tables of a migration were changed, before it was recorded',
    point: { statement: /insert into schema_migrations/, about: ['product documents'], moment: 'before' },
    left: upTo(versionOf('product documents') - 1),
  },
  {
    when: 'after the commit of a migration',
    point: { statement: COMMIT, about: ['logins', 'insert into schema_migrations'], moment: 'after' },
    left: upTo(versionOf('logins')),
  },
  {
    when: 'while the tables of the queue are made',
    point: { statement: /INSERT INTO migration/, moment: 'before' },
    left: upTo(LAST),
  },
]

describe('a start on the database of an older release', { timeout: 120_000 }, () => {
  it.each(KILLS)('killed $when, leaves whole migrations only', async ({ point, left }) => {
    await killAt(point)
    expect(await versions()).toEqual(left)
    const { rows } = await old.pool.query('select consumer_key from credentials order by 1')
    expect(rows.map(({ consumer_key: key }) => key)).toEqual(APPS.map(keyOf))
  })

  it('then brings it to the present, and the service works with all that was there', async () => {
    const { requests, state } = mesh.broker()
    requests.reset()
    await using service = await Service.start({ dataDirectory: directory, env: env() })
    expect(await versions()).toEqual(upTo(LAST))
    expect(await schemaOf(old.pool)).toEqual(await schemaOf(mesh.database.pool))
    // What the older release did not know yet is found out; what it did is not done again.
    await old.pool.query('update pairs set due_at = now()')
    await until('the logins are proved', async () => {
      const { rows } = await old.pool.query('select outcome from login_verdicts')
      return rows.length === APPS.length && rows.every(({ outcome }) => outcome === 'accepted') ? true : null
    })
    expect(requests.writes).toBe(0)
    state.clientUsernames.remove(keyOf('app-1'))
    await old.pool.query('update pairs set due_at = now()')
    await until('the lost username is back', () =>
      state.checkLogin(keyOf('app-1'), givenSecretOf('app-1')) === 'accepted' ? true : null,
    )
    expect(service.log.filter(({ level }) => Number(level) >= 40)).toEqual([])
  })
})
