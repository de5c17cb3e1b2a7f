import { sql } from 'kysely'
import type { Database } from './database.ts'
import { whereProblem } from './where-expression.ts'

/** A filter that takes longer would keep the database from others. */
const PATIENCE_MS = 5_000
const QUERY_CANCELLED = '57014'

/** Runs a read with a client's filter; throws InvalidInputError with the path `where` when the database takes too long. */
export async function withinPatience<Result>(
  db: Database,
  read: (db: Database) => Promise<Result>,
  patienceMs = PATIENCE_MS,
): Promise<Result> {
  try {
    return await db.transaction().execute(async (trx) => {
      await sql`set local statement_timeout = ${sql.lit(patienceMs)}`.execute(trx)
      return await read(trx)
    })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === QUERY_CANCELLED)) throw error
    throw whereProblem(`takes longer than ${patienceMs / 1000} seconds to apply; use fewer conditions`)
  }
}

/** The same where a filter is given; only it can take long. */
export const filtered = <Result>(
  db: Database,
  { where }: { readonly where?: string | undefined },
  read: (db: Database) => Promise<Result>,
): Promise<Result> => (where === undefined ? read(db) : withinPatience(db, read))
