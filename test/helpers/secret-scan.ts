import { sql } from 'kysely'
import type { Database } from '../../src/store/database.ts'

/** Every row of every table of a database, the queue's among them, as text, by table. */
export async function dumpDatabase(db: Database): Promise<ReadonlyMap<string, string>> {
  const { rows: tables } = await sql<{ schema: string; name: string }>`
    select table_schema as schema, table_name as name from information_schema.tables
    where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`.execute(db)
  const dump = new Map<string, string>()
  for (const { schema, name } of tables) {
    const { rows } = await sql<{ row: string }>`
      select t::text as row from ${sql.table(`${schema}.${name}`)} t`.execute(db)
    dump.set(`${schema}.${name}`, rows.map(({ row }) => row).join('\n'))
  }
  return dump
}

/** A secret as it is, and as it looks on its way through the usual formats. */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret)
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    encodeURIComponent(secret),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    Buffer.from(`admin:${secret}`).toString('base64').replace(/=+$/, ''),
  ]
}

/** `what in place` of each secret that a text holds, in whatever form. */
export function findSecrets(
  secrets: ReadonlyMap<string, string>,
  readable: ReadonlyMap<string, string>,
): readonly string[] {
  return [...secrets].flatMap(([what, secret]) =>
    [...readable]
      .filter(([, text]) => formsOf(secret).some((form) => text.includes(form)))
      .map(([place]) => `${what} in ${place}`),
  )
}
