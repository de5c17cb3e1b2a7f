import { sql } from 'kysely'
import type { Database } from '../../src/store/database.ts'

/** By table. */
export type TableDigest = Readonly<Record<string, string>>

/**
 * Answers a function that digests every table of the database but those that are left out: as long as no row was written,
 * it answers the same, and a row that was written as it was before is written. It counts rows and adds up the
 * transactions that wrote them (`xmin`), which costs little enough to be asked after every request.
 */
export async function tableDigester(
  db: Database,
  options: { readonly without: readonly string[] },
): Promise<() => Promise<TableDigest>> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`.execute(db)
  const names = rows.map(({ name }) => name)
  for (const each of options.without) if (!names.includes(each)) throw new Error(`there is no table ${each}`)
  const parts = names
    .filter((name) => !options.without.includes(name))
    .map(
      (name) => sql`select ${sql.lit(name)} as name, count(*) || '/' || coalesce(sum(xmin::text::bigint), 0) as digest
        from ${sql.table(name)}`,
    )
  const query = sql<{ name: string; digest: string }>`${sql.join(parts, sql` union all `)}`.compile(db)
  return async () => {
    const answer = await db.executeQuery(query)
    return Object.fromEntries(answer.rows.map(({ name, digest }) => [name, digest]))
  }
}
