import { sql } from 'kysely'
import pg from 'pg'
import { type AccountId, accountId } from '../domain/ids.ts'
import { conflict } from '../domain/refusals.ts'
import type { Database } from './database.ts'

/**
 * The account of this name, made when it is not there. Its id is its first name, stays when it is renamed, and still
 * finds it: a setting that names the account need not change with it.
 */
export async function ensureAccount(db: Database, name: string): Promise<AccountId> {
  await sql`insert into accounts (id, name) values (${name}, ${name}) on conflict do nothing`.execute(db)
  const { rows } = await sql<{ id: string }>`
    select id from accounts where name = ${name} or id = ${name} order by name = ${name} desc`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error(`account ${name} was removed as soon as it was made`)
  return accountId(row.id)
}

export interface NewAccount {
  readonly name: string
  /** Its first member, as an administrator. */
  readonly userId: string
}

/** Throws CONFLICT when the name is taken. */
export async function createAccount(db: Database, { name, userId }: NewAccount): Promise<AccountId> {
  return await db.transaction().execute(async (trx) => {
    const made =
      await sql`insert into accounts (id, name) values (${name}, ${name}) on conflict do nothing returning 1`.execute(
        trx,
      )
    if (made.rows.length === 0) throw conflict(`The account name ${name} is taken.`, 'Choose another one.')
    await trx
      .insertInto('memberships')
      .values({ user_id: userId, account_id: name, roles: ['administrator'] })
      .execute()
    return accountId(name)
  })
}

/** Throws CONFLICT when another account has the name, or had it first and keeps it as its id. */
export async function renameAccount(db: Database, account: { readonly id: string }, name: string): Promise<void> {
  const taken = conflict(`The account name ${name} is taken.`, 'Choose another one.')
  try {
    const { rows } = await sql`
      update accounts set name = ${name} where id = ${account.id}
        and not exists (select 1 from accounts other where other.id = ${name} and other.id <> ${account.id})
      returning 1`.execute(db)
    if (rows.length === 0) throw taken
  } catch (error) {
    throw error instanceof pg.DatabaseError && error.code === UNIQUE_VIOLATION ? taken : error
  }
}

/**
 * Removes an account that holds nothing but users, their tokens and notification endpoints; users of no other account go
 * with it. Throws CONFLICT while it holds anything else.
 */
export async function deleteAccount(
  db: Database,
  account: { readonly id: string; readonly name: string },
): Promise<void> {
  try {
    await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ id: string }>`
        delete from memberships where account_id = ${account.id} returning user_id as id`.execute(trx)
      await sql`
        delete from users u where id = any(${rows.map(({ id }) => id)})
        and not exists (select 1 from memberships m where m.user_id = u.id)`.execute(trx)
      await sql`delete from notification_endpoints where account_id = ${account.id}`.execute(trx)
      await sql`delete from accounts where id = ${account.id}`.execute(trx)
    })
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== FOREIGN_KEY_VIOLATION) throw error
    throw conflict(`Account ${account.name} is not empty.`, 'Remove its catalogue, brokers and registrations first.')
  }
}

const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
