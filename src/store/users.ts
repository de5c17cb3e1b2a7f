import { sql } from 'kysely'
import { type AccountId, accountId } from '../domain/ids.ts'
import type { UserRole } from '../domain/permissions.ts'
import type { Database } from './database.ts'

/** What a user is in one account. */
export interface Membership {
  readonly accountId: AccountId
  readonly accountName: string
  readonly roles: readonly UserRole[]
}

export interface SignedInUser {
  readonly id: string
  readonly name: string
  /** What a user token must carry to count. */
  readonly tokenGeneration: number
  readonly memberships: readonly Membership[]
}

export async function findSignedInUser(db: Database, id: string): Promise<SignedInUser | null> {
  const found = await findUser(db, 'id', id)
  return found === null ? null : found.user
}

export interface UserWithPassword {
  readonly user: SignedInUser
  readonly passwordHash: string
}

/** Names differ by more than their case. */
export async function findUserByName(db: Database, name: string): Promise<UserWithPassword | null> {
  return await findUser(db, 'name', name)
}

async function findUser(db: Database, by: 'id' | 'name', text: string): Promise<UserWithPassword | null> {
  const user = await db
    .selectFrom('users')
    .selectAll()
    .$if(by === 'id', (query) => query.where('id', '=', text))
    .$if(by === 'name', (query) => query.where(sql`lower(name)`, '=', text.toLowerCase()))
    .executeTakeFirst()
  if (user === undefined) return null
  const memberships = await db
    .selectFrom('memberships as m')
    .innerJoin('accounts as a', 'a.id', 'm.account_id')
    .where('m.user_id', '=', user.id)
    .select(['a.id', 'a.name', 'm.roles'])
    .orderBy('a.name')
    .execute()
  return {
    passwordHash: user.password_hash,
    user: {
      id: user.id,
      name: user.name,
      tokenGeneration: user.token_generation,
      memberships: memberships.map((row) => ({
        accountId: accountId(row.id),
        accountName: row.name,
        roles: row.roles,
      })),
    },
  }
}

export interface NewUser {
  readonly id: string
  readonly name: string
  readonly passwordHash: string
  readonly accountId: string
  readonly roles: readonly UserRole[]
}

/** Inside a transaction. Throws the database's unique violation when the name is taken. */
export async function insertUser(db: Database, user: NewUser): Promise<void> {
  await db.insertInto('users').values({ id: user.id, name: user.name, password_hash: user.passwordHash }).execute()
  await db
    .insertInto('memberships')
    .values({ user_id: user.id, account_id: user.accountId, roles: [...user.roles] })
    .execute()
}
