import { sql } from 'kysely'
import { isAdministrator, type UserRole } from '../domain/permissions.ts'
import { conflict, forbidden, notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import { insertUser, type NewUser } from './users.ts'
import { memberRevision, readMember } from './users-view.ts'

/** On whose behalf: an administrator of the account, who reaches no further than that, or somebody on the host. */
export type Authority = { readonly userId: string } | 'host'

/** Which member of which account. */
export interface MemberName {
  readonly accountId: string
  readonly userName: string
}

/** Called inside the transaction, the row locked; throws when the caller read another revision. */
type RevisionCheck = (revision: string) => void

/** Throws CONFLICT when the name is taken, in whatever account: names are one for all, as people sign in by them. */
export async function createUser(db: Database, user: NewUser): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const taken = await sql`select 1 from users where lower(name) = ${user.name.toLowerCase()}`.execute(trx)
    if (taken.rows.length > 0) throw nameTaken(user.name)
    await insertUser(trx, user)
  })
}

/** The first user of all, made by one of the replicas that start at once; false when there are users. */
export async function createFirstUser(db: Database, user: NewUser): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('keymesh first user', 0))`.execute(trx)
    if (await hasUsers(trx)) return false
    await insertUser(trx, user)
    return true
  })
}

export async function hasUsers(db: Database): Promise<boolean> {
  const { rows } = await sql`select 1 from users limit 1`.execute(db)
  return rows.length > 0
}

/**
 * Makes a user of another account a member of this one. Throws CONFLICT, as if the name were merely taken, unless the
 * authority administers every account of that user: joining changes how the user signs in to all of them.
 */
export async function addMember(
  db: Database,
  { accountId, userName }: MemberName,
  roles: readonly UserRole[],
  authority: Authority,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const id = await lockUser(trx, userName)
    if (id === null) throw notFound('user', userName)
    if (!(await administersAll(trx, authority, id))) throw nameTaken(userName)
    const added = await sql`
      insert into memberships (user_id, account_id, roles) values (${id}, ${accountId}, ${[...roles]})
      on conflict do nothing returning 1`.execute(trx)
    if (added.rows.length === 0) throw conflict(`User ${userName} belongs to the account already.`)
  })
}

/** Throws NOT_FOUND, CONFLICT when the account would be left without an administrator. */
export async function setRoles(
  db: Database,
  member: MemberName,
  roles: readonly UserRole[],
  check: RevisionCheck,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const userId = await lockMember(trx, member, check)
    await sql`
      update memberships set roles = ${[...roles]}
      where user_id = ${userId} and account_id = ${member.accountId}`.execute(trx)
    if (!isAdministrator(roles)) await keepAnAdministrator(trx, member.accountId)
  })
}

/** Ends the user's API tokens of the account too; the user goes with the last account. Throws as `setRoles`. */
export async function removeMember(db: Database, member: MemberName, check: RevisionCheck): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const userId = await lockMember(trx, member, check)
    await sql`delete from memberships where user_id = ${userId} and account_id = ${member.accountId}`.execute(trx)
    await keepAnAdministrator(trx, member.accountId)
    await sql`
      delete from users u where id = ${userId}
      and not exists (select 1 from memberships m where m.user_id = u.id)`.execute(trx)
  })
}

/**
 * Every user token of the user ends. Throws NOT_FOUND, and FORBIDDEN when the user also belongs to an account that the
 * authority does not administer: the password opens that one too.
 */
export async function setPassword(
  db: Database,
  member: MemberName,
  passwordHash: string,
  authority: Authority,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const userId = await lockMember(trx, member, () => undefined)
    if (!(await administersAll(trx, authority, userId))) {
      throw forbidden(`User ${member.userName} also belongs to accounts that you do not administer.`)
    }
    await changePassword(trx, userId, passwordHash)
  })
}

/** The user's own change, after the present password was verified. */
export async function changePassword(db: Database, userId: string, passwordHash: string): Promise<void> {
  await sql`
    update users set password_hash = ${passwordHash}, token_generation = token_generation + 1
    where id = ${userId}`.execute(db)
}

/** Locks, in this order everywhere, the user, the account's list of members, and the membership. */
async function lockMember(db: Database, { accountId, userName }: MemberName, check: RevisionCheck): Promise<string> {
  const userId = await lockUser(db, userName)
  await sql`select 1 from accounts where id = ${accountId} for no key update`.execute(db)
  const member = userId === null ? null : await readMember(db, accountId, userName)
  if (userId === null || member === null) throw notFound('user', userName)
  check(memberRevision(member))
  return userId
}

async function lockUser(db: Database, name: string): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`
    select id from users where lower(name) = ${name.toLowerCase()} for update`.execute(db)
  return rows[0]?.id ?? null
}

async function keepAnAdministrator(db: Database, accountId: string): Promise<void> {
  const { rows } = await sql`
    select 1 from memberships where account_id = ${accountId} and 'administrator' = any(roles) limit 1`.execute(db)
  if (rows.length === 0) {
    throw conflict('The account would be left without an administrator.', 'Make another user one first.')
  }
}

async function administersAll(db: Database, authority: Authority, userId: string): Promise<boolean> {
  if (authority === 'host') return true
  const { rows } = await sql`
    select 1 from memberships theirs
    where theirs.user_id = ${userId} and not exists (
      select 1 from memberships own
      where own.user_id = ${authority.userId} and own.account_id = theirs.account_id
        and 'administrator' = any(own.roles)
    ) limit 1`.execute(db)
  return rows.length === 0
}

const nameTaken = (name: string) => conflict(`The user name ${name} is taken.`, 'Choose another one.')
