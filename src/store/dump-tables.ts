import { sql } from 'kysely'
import type { BackupPart, BackupTable } from './backup-format.ts'
import type { Database } from './database.ts'

const FETCHED_ROWS = 1000

/** Values as text that every version of PostgreSQL writes and reads alike. */
const TEXT_SETTINGS = [
  "set local datestyle = 'ISO, YMD'",
  "set local intervalstyle = 'postgres'",
  "set local timezone = 'UTC'",
  'set local extra_float_digits = 3',
  "set local bytea_output = 'hex'",
]

/** For the transaction that writes values as text, and the one that reads them. */
export async function setTextFormat(run: (statement: string) => Promise<unknown>): Promise<void> {
  for (const statement of TEXT_SETTINGS) await run(statement)
}

/** Every table of the service, those that others refer to first. `trx` is one snapshot. */
export async function* dumpTables(trx: Database): AsyncGenerator<BackupPart> {
  await setTextFormat((statement) => sql.raw(statement).execute(trx))
  for (const table of await tablesInOrder(trx)) {
    yield { kind: 'table', table }
    const values = table.columns.map((column) => sql`${sql.ref(column)}::text`)
    await sql`declare backup_rows no scroll cursor for
      select array_to_json(array[${sql.join(values)}]::text[])::text as row from ${sql.table(table.table)}`.execute(trx)
    for (;;) {
      const { rows } = await sql<{ row: string }>`fetch ${sql.lit(FETCHED_ROWS)} from backup_rows`.execute(trx)
      for (const { row } of rows) yield { kind: 'row', json: row }
      if (rows.length < FETCHED_ROWS) break
    }
    await sql`close backup_rows`.execute(trx)
  }
}

/** Migrations that the database has had, oldest first. */
export async function readSchemaHistory(trx: Database): Promise<readonly { version: number; name: string }[]> {
  const { rows } = await sql<{ version: number; name: string }>`
    select version, name from schema_migrations order by version`.execute(trx)
  return rows
}

async function tablesInOrder(trx: Database): Promise<readonly BackupTable[]> {
  const { rows: tables } = await sql<BackupTable>`
    select c.relname as "table", (
      select json_agg(a.attname order by a.attnum) from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'schema_migrations'
    order by c.relname`.execute(trx)
  const { rows: references } = await sql<{ from: string; to: string }>`
    select source.relname as "from", target.relname as "to"
    from pg_constraint k join pg_class source on source.oid = k.conrelid join pg_class target on target.oid = k.confrelid
    where k.contype = 'f' and k.connamespace = current_schema()::regnamespace and k.conrelid <> k.confrelid`.execute(
    trx,
  )
  const ordered: BackupTable[] = []
  const left = new Set(tables)
  while (left.size > 0) {
    const names = new Set([...left].map(({ table }) => table))
    const free = [...left].filter(({ table }) => !references.some(({ from, to }) => from === table && names.has(to)))
    if (free.length === 0) throw new Error(`the tables ${[...names].join(', ')} refer to each other in a circle`)
    for (const each of free) left.delete(each)
    ordered.push(...free)
  }
  return ordered
}
