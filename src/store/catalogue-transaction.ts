import { sql } from 'kysely'
import type { Database } from './database.ts'

const ATTEMPTS = 3
const DEADLOCK = '40P01'

/** A transaction that changes the catalogue of an account: two of them wait for each other. */
export async function inCatalogueTransaction<Result>(
  db: Database,
  accountId: string,
  work: (trx: Database) => Promise<Result>,
): Promise<Result> {
  const run = () =>
    db.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${`keymesh import ${accountId}`}, 0))`.execute(trx)
      return await work(trx)
    })
  // The reconciler locks rows of its own choice meanwhile; the database ends one of two that wait for each other.
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run()
    } catch (error) {
      if (databaseField(error, 'code') !== DEADLOCK || attempt === ATTEMPTS) throw error
    }
  }
}

/** What the database says of an error of its own. */
export function databaseField(error: unknown, field: 'code' | 'constraint' | 'table'): string | undefined {
  if (!(error instanceof Error)) return undefined
  const value: unknown = Object.getOwnPropertyDescriptor(error, field)?.value
  return typeof value === 'string' ? value : undefined
}
