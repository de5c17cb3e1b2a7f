import { sql } from 'kysely'
import { type AccountId, accountId } from '../domain/ids.ts'
import type { Database } from './database.ts'

/** The account of this name, made when it is not there. Its id is its first name, and stays when it is renamed. */
export async function ensureAccount(db: Database, name: string): Promise<AccountId> {
  await sql`insert into accounts (id, name) values (${name}, ${name}) on conflict do nothing`.execute(db)
  const { rows } = await sql<{ id: string }>`select id from accounts where name = ${name}`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error(`account ${name} cannot be made: its id is taken by another account`)
  return accountId(row.id)
}
