import { sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import type { Permission, UserRole } from '../domain/permissions.ts'
import { conflict, notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import type { ApiTokensTable } from './schema.ts'

/** What a call that brings the token needs to know, in one query. */
export interface FoundApiToken {
  readonly secretHash: string
  readonly accountId: AccountId
  readonly accountName: string
  readonly userId: string
  readonly userName: string
  readonly permissions: readonly Permission[]
  readonly roles: readonly UserRole[]
  readonly expiresAtMs: number | null
}

type FoundRow = Omit<FoundApiToken, 'expiresAtMs'> & { readonly id: string; readonly expiresAt: Date | null }

/** One for each id, in order; null where there is no such token. */
export async function findApiTokens(db: Database, ids: readonly string[]): Promise<readonly (FoundApiToken | null)[]> {
  const { rows } = await sql<FoundRow>`
    select t.id, t.secret_hash as "secretHash", t.account_id as "accountId", a.name as "accountName",
      t.user_id as "userId", u.name as "userName", t.permissions, m.roles, t.expires_at as "expiresAt"
    from api_tokens t
    join memberships m on m.user_id = t.user_id and m.account_id = t.account_id
    join users u on u.id = t.user_id
    join accounts a on a.id = t.account_id
    where t.id = any(${[...new Set(ids)]})`.execute(db)
  const found = new Map(
    rows.map(({ id, expiresAt, ...row }) => [id, { ...row, expiresAtMs: expiresAt?.getTime() ?? null }]),
  )
  return ids.map((id) => found.get(id) ?? null)
}

/** What is shown of a token: never the token, which nobody knows but its owner. */
export interface ApiTokenView {
  readonly id: string
  readonly name: string
  readonly permissions: readonly Permission[]
  readonly accountId: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

export interface NewApiToken {
  readonly id: string
  readonly accountId: string
  readonly userId: string
  readonly name: string
  readonly secretHash: string
  readonly permissions: readonly Permission[]
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

/** A user has at most this many in one account. */
export const MAX_API_TOKENS = 50

/** Throws CONFLICT when the user has as many as there may be. */
export async function createApiToken(db: Database, token: NewApiToken): Promise<ApiTokenView> {
  return await db.transaction().execute(async (trx) => {
    // Two calls at once count one after the other.
    await sql`
      select 1 from memberships where user_id = ${token.userId} and account_id = ${token.accountId} for update`.execute(
      trx,
    )
    if ((await countApiTokens(trx, token)) >= MAX_API_TOKENS) {
      throw conflict(`The user has ${MAX_API_TOKENS} API tokens already.`, 'Delete one first.')
    }
    const row = await trx
      .insertInto('api_tokens')
      .values({
        id: token.id,
        account_id: token.accountId,
        user_id: token.userId,
        name: token.name,
        secret_hash: token.secretHash,
        permissions: [...token.permissions],
        created_at: new Date(token.createdAtMs),
        expires_at: token.expiresAtMs === null ? null : new Date(token.expiresAtMs),
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    return viewOf(row)
  })
}

/** Whose tokens. */
export interface Owner {
  readonly accountId: string
  readonly userId: string
}

export async function listApiTokens(
  db: Database,
  owner: Owner,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly tokens: readonly ApiTokenView[]; readonly count: number }> {
  const rows = await db
    .selectFrom('api_tokens')
    .where('account_id', '=', owner.accountId)
    .where('user_id', '=', owner.userId)
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  return { tokens: rows.map(viewOf), count: await countApiTokens(db, owner) }
}

async function countApiTokens(db: Database, owner: Owner): Promise<number> {
  const { count } = await db
    .selectFrom('api_tokens')
    .where('account_id', '=', owner.accountId)
    .where('user_id', '=', owner.userId)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}

/** Throws NOT_FOUND. */
export async function readApiToken(db: Database, owner: Owner, id: string): Promise<ApiTokenView> {
  const row = await db
    .selectFrom('api_tokens')
    .where('id', '=', id)
    .where('account_id', '=', owner.accountId)
    .where('user_id', '=', owner.userId)
    .selectAll()
    .executeTakeFirst()
  if (row === undefined) throw notFound('API token', id)
  return viewOf(row)
}

export interface RegeneratedSecret {
  readonly secretHash: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

/** The token keeps its id, name and permissions; its old text ends at once. Throws NOT_FOUND. */
export async function regenerateApiToken(
  db: Database,
  owner: Owner,
  id: string,
  { secretHash, createdAtMs, expiresAtMs }: RegeneratedSecret,
): Promise<ApiTokenView> {
  const row = await db
    .updateTable('api_tokens')
    .set({
      secret_hash: secretHash,
      created_at: new Date(createdAtMs),
      expires_at: expiresAtMs === null ? null : new Date(expiresAtMs),
    })
    .where('id', '=', id)
    .where('account_id', '=', owner.accountId)
    .where('user_id', '=', owner.userId)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw notFound('API token', id)
  return viewOf(row)
}

/** Throws NOT_FOUND. */
export async function deleteApiToken(db: Database, owner: Owner, id: string): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('api_tokens')
    .where('id', '=', id)
    .where('account_id', '=', owner.accountId)
    .where('user_id', '=', owner.userId)
    .executeTakeFirst()
  if (numDeletedRows === 0n) throw notFound('API token', id)
}

type ApiTokenRow = {
  readonly [Column in keyof Pick<ApiTokensTable, 'id' | 'name' | 'permissions' | 'account_id'>]: ApiTokensTable[Column]
} & { readonly created_at: Date; readonly expires_at: Date | null }

function viewOf(row: ApiTokenRow): ApiTokenView {
  return {
    id: row.id,
    name: row.name,
    permissions: row.permissions,
    accountId: row.account_id,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at?.getTime() ?? null,
  }
}
