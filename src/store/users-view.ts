import { sql } from 'kysely'
import type { UserRole } from '../domain/permissions.ts'
import type { Database } from './database.ts'

/** A user as an administrator of one account sees it: nothing of other accounts, never the password's hash. */
export interface MemberView {
  readonly id: string
  readonly name: string
  readonly roles: readonly UserRole[]
  readonly createdAtMs: number
}

const SORT_COLUMNS = { name: 'u.name', createdTime: 'm.created_at' } as const
export type MemberSortField = keyof typeof SORT_COLUMNS

export interface MemberPage {
  readonly limit: number
  readonly offset: number
  readonly sortBy: MemberSortField
  readonly descending: boolean
}

export async function listMembers(
  db: Database,
  accountId: string,
  page: MemberPage,
): Promise<{ readonly members: readonly MemberView[]; readonly count: number }> {
  const direction = page.descending ? 'desc' : 'asc'
  const rows = await membersOf(db, accountId)
    .orderBy(SORT_COLUMNS[page.sortBy], direction)
    .orderBy('u.id', direction)
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  const { count } = await db
    .selectFrom('memberships')
    .where('account_id', '=', accountId)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return { members: rows.map(viewOf), count }
}

/** Null when the account has no such user. */
export async function readMember(db: Database, accountId: string, userName: string): Promise<MemberView | null> {
  const row = await membersOf(db, accountId).where(sql`lower(u.name)`, '=', userName.toLowerCase()).executeTakeFirst()
  return row === undefined ? null : viewOf(row)
}

/** What an ETag of the member is made of. */
export const memberRevision = ({ id, roles }: MemberView): string => `${id}:${[...roles].sort().join(',')}`

const membersOf = (db: Database, accountId: string) =>
  db
    .selectFrom('memberships as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .where('m.account_id', '=', accountId)
    .select(['u.id', 'u.name', 'm.roles', 'm.created_at'])

interface MemberRow {
  readonly id: string
  readonly name: string
  readonly roles: readonly UserRole[]
  readonly created_at: Date
}

const viewOf = (row: MemberRow): MemberView => ({
  id: row.id,
  name: row.name,
  roles: row.roles,
  createdAtMs: row.created_at.getTime(),
})
