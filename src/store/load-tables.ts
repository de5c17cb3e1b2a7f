import { Kysely, PostgresDialect } from 'kysely'
import type { PoolClient } from 'pg'
import { KeymeshError } from '../domain/errors.ts'
import { type BackupHeader, type BackupPart, type BackupTable, tooNew } from './backup-format.ts'
import type { Database } from './database.ts'
import { setTextFormat } from './dump-tables.ts'
import { lockMigrations, migrateWithin } from './migrate.ts'
import type { Migration } from './migrations.ts'
import type { Schema } from './schema.ts'
import { SETTLED_TABLES, settleRestored } from './settle-restored.ts'

const BATCH_ROWS = 500
const BATCH_CHARACTERS = 8 * 1024 * 1024

export interface LoadOptions {
  readonly migrations: readonly Migration[]
  /** Sees the restored store before it is kept; what it throws undoes all. */
  readonly check: (db: Database) => Promise<void>
}

export interface Loaded {
  readonly header: BackupHeader
  readonly tables: number
  readonly rows: number
}

/**
 * Restores into a database without tables of the service, in one transaction: the schema as it was, the rows, the
 * migrations since, what a restored store must forget. Throws DATABASE_NOT_EMPTY, BACKUP_TOO_NEW, what reading the parts
 * throws, and what `check` throws; nothing is written then.
 */
export async function loadBackup(
  client: PoolClient,
  parts: AsyncIterable<BackupPart>,
  { migrations, check }: LoadOptions,
): Promise<Loaded> {
  await client.query('begin')
  try {
    await lockMigrations(client)
    await setTextFormat((statement) => client.query(statement))
    const loaded = await loadParts(client, parts, migrations)
    await migrateWithin(client, migrations)
    const db = overOneConnection(client)
    await withoutTriggers(client, SETTLED_TABLES, () => settleRestored(db, loaded.header.createdAt))
    await check(db)
    await client.query('commit')
    return loaded
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Throws BACKUP_TOO_NEW unless the program knows every migration of the backup. */
export function assertKnownSchema({ schema }: BackupHeader, migrations: readonly Migration[]): void {
  const known = new Map(migrations.map(({ version, name }) => [version, name]))
  const unknown = schema.find(({ version, name }) => known.get(version) !== name)
  if (unknown !== undefined) throw tooNew(`is of a database with migration ${unknown.version} (${unknown.name})`)
}

async function loadParts(
  client: PoolClient,
  parts: AsyncIterable<BackupPart>,
  migrations: readonly Migration[],
): Promise<Loaded> {
  let header: BackupHeader | undefined
  let open: OpenTable | undefined
  let tables = 0
  let rows = 0
  for await (const part of parts) {
    switch (part.kind) {
      case 'header':
        header = part.header
        assertKnownSchema(header, migrations)
        await assertEmpty(client)
        await migrateWithin(client, migrations, header.schema.at(-1)?.version)
        break
      case 'table':
        await open?.close()
        open = await OpenTable.open(client, part.table)
        tables++
        break
      case 'row':
        await open?.add(part.json)
        rows++
        break
      default:
        part satisfies never
    }
  }
  await open?.close()
  if (header === undefined) throw new Error('a backup without a header')
  return { header, tables, rows }
}

/** Rows go in by batches, without the triggers: what those would write is in the backup too. */
class OpenTable {
  readonly #client: PoolClient
  readonly #name: string
  readonly #insert: string
  #batch: string[] = []
  #characters = 0

  private constructor(client: PoolClient, name: string, insert: string) {
    this.#client = client
    this.#name = name
    this.#insert = insert
  }

  static async open(client: PoolClient, { table, columns }: BackupTable): Promise<OpenTable> {
    const types = await columnTypes(client, table)
    const values = columns.map((column, index) => {
      const type = types.get(column)
      if (type === undefined) throw tooNew(`has a column ${column} of a table ${table}`)
      return `(r.value ->> ${index})::${type}`
    })
    const name = client.escapeIdentifier(table)
    await client.query(`alter table ${name} disable trigger user`)
    const names = columns.map((column) => client.escapeIdentifier(column))
    const insert = `insert into ${name} (${names.join(', ')}) overriding system value
      select ${values.join(', ')} from json_array_elements($1::json) as r(value)`
    return new OpenTable(client, table, insert)
  }

  async add(json: string): Promise<void> {
    this.#batch.push(json)
    this.#characters += json.length
    if (this.#batch.length >= BATCH_ROWS || this.#characters >= BATCH_CHARACTERS) await this.#flush()
  }

  async close(): Promise<void> {
    await this.#flush()
    const name = this.#client.escapeIdentifier(this.#name)
    await this.#client.query(`alter table ${name} enable trigger user`)
    await continueNumbers(this.#client, this.#name)
  }

  async #flush(): Promise<void> {
    if (this.#batch.length === 0) return
    await this.#client.query(this.#insert, [`[${this.#batch.join(',')}]`])
    this.#batch = []
    this.#characters = 0
  }
}

async function columnTypes(client: PoolClient, table: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type from pg_attribute a
     where a.attrelid = to_regclass(quote_ident($1)) and a.attnum > 0 and not a.attisdropped`,
    [table],
  )
  return new Map(rows.map(({ name, type }) => [name, type]))
}

/** The next number of a numbered column comes after those that were restored. */
async function continueNumbers(client: PoolClient, table: string): Promise<void> {
  const { rows } = await client.query<{ column: string; sequence: string }>(
    `select a.attname as column, pg_get_serial_sequence(quote_ident($1), a.attname) as sequence from pg_attribute a
     where a.attrelid = to_regclass(quote_ident($1)) and a.attnum > 0 and not a.attisdropped
       and pg_get_serial_sequence(quote_ident($1), a.attname) is not null`,
    [table],
  )
  for (const { column, sequence } of rows) {
    const greatest = `(select max(${client.escapeIdentifier(column)}) from ${client.escapeIdentifier(table)})`
    await client.query(`select setval($1::regclass, coalesce(${greatest}, 1), ${greatest} is not null)`, [sequence])
  }
}

async function assertEmpty(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ found: boolean }>(
    "select to_regclass('schema_migrations') is not null or to_regclass('accounts') is not null as found",
  )
  if (rows[0]?.found === false) return
  throw new KeymeshError({
    code: 'DATABASE_NOT_EMPTY',
    fate: 'stop',
    message: 'The database holds a store already, and a backup is never restored over one.',
    hint: 'Give an empty database in DATABASE_URL, or a new directory in KEYMESH_DATA_DIR. Nothing was written.',
  })
}

async function withoutTriggers(client: PoolClient, tables: readonly string[], work: () => Promise<void>) {
  const all = async (what: 'disable' | 'enable'): Promise<void> => {
    for (const table of tables) {
      await client.query(`alter table ${client.escapeIdentifier(table)} ${what} trigger user`)
    }
  }
  await all('disable')
  await work()
  await all('enable')
}

/** The queries of the store, inside a transaction of this connection. */
function overOneConnection(client: PoolClient): Database {
  const lent = new Proxy(client, {
    get: (target, name) => {
      if (name === 'release') return () => undefined
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const pool = { connect: async () => lent, end: async () => undefined }
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
}
