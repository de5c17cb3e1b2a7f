import { sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import type { Database } from './database.ts'
import { astray } from './pairs-view.ts'

/** A registration in a list for people; holds no secret. */
export interface RegistrationSummary {
  readonly registrationId: string
  readonly name: string
  readonly source: string
  readonly sourceOwner: string | null
  /** Client usernames that are live. */
  readonly credentials: number
  readonly accessRequests: number
  /** Of them, those that wait for a decision. */
  readonly waiting: number
  /** Of them, those in ERROR. */
  readonly failing: number
  /** On which it is, or should be. */
  readonly brokers: number
  /** Of them, those where it is not in sync. */
  readonly astray: number
  readonly paused: boolean
}

export const REGISTRATION_FILTERS = ['astray', 'waiting', 'failing', 'paused'] as const
/** Not in sync somewhere; with a request that waits for a decision; with one in ERROR; paused itself. */
export type RegistrationStateFilter = (typeof REGISTRATION_FILTERS)[number]

export interface RegistrationSearch {
  readonly accountId: AccountId
  /** Part of an id, a name, an owner or a client username. */
  readonly text?: string | undefined
  readonly state?: RegistrationStateFilter | undefined
  readonly brokerId?: string | undefined
}

/** In the order of their ids. */
export async function searchRegistrations(
  db: Database,
  search: RegistrationSearch,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly registrations: readonly RegistrationSummary[]; readonly count: number }> {
  const matches = conditions(search)
  const { rows } = await sql<RegistrationSummary>`
    with r as materialized (
      select r.account_id, r.id, r.name, r.source, r.source_owner from registrations r where ${matches}
      order by r.id limit ${page.limit} offset ${page.offset}
    )
    select r.id as "registrationId", r.name, r.source, r.source_owner as "sourceOwner", a.*, p.*,
      (select count(*) from credentials c
        where c.account_id = r.account_id and c.registration_id = r.id and c.retired_at is null) as credentials,
      ${isPaused} as paused
    from r
    cross join lateral (
      select count(*) as "accessRequests", count(*) filter (where a.state = 'PENDING_APPROVAL') as waiting,
        count(*) filter (where a.state = 'ERROR' and a.expired_at is null) as failing
      from access_requests a where a.account_id = r.account_id and a.registration_id = r.id) a
    cross join lateral (
      select count(*) filter (where p.wanted) as brokers, count(*) filter (where ${astray}) as astray
      from pairs p where p.account_id = r.account_id and p.registration_id = r.id) p
    order by r.id`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count from registrations r where ${matches}`.execute(
    db,
  )
  return { registrations: rows, count: counted.rows[0]?.count ?? 0 }
}

/** Of a row `r` of `registrations`. */
const isPaused = sql<boolean>`exists (
  select from pauses x where x.account_id = r.account_id and x.scope = 'registration' and x.id = r.id)`

function conditions({ accountId, text, state, brokerId }: RegistrationSearch) {
  const parts = [sql`r.account_id = ${accountId} and r.deleted_at is null`]
  if (text !== undefined) {
    const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
    parts.push(sql`(r.id ilike ${pattern} or r.name ilike ${pattern} or r.source_owner ilike ${pattern}
      or r.id in (select c.registration_id from credentials c
        where c.account_id = ${accountId} and c.retired_at is null and c.consumer_key ilike ${pattern}))`)
  }
  // What is rare is looked for first, and its registrations are looked up then.
  if (state === 'astray') {
    const onBroker = brokerId === undefined ? sql`` : sql`and p.broker_id = ${brokerId}`
    parts.push(sql`r.id in (
      select p.registration_id from pairs p
      where p.account_id = ${accountId} ${onBroker} and (p.state <> 'in-sync' or p.reached_generation < p.generation)
      union select p.registration_id from drift p
      where p.account_id = ${accountId} ${onBroker} and p.repaired_at is null and p.registration_id is not null)`)
  } else if (brokerId !== undefined) {
    parts.push(sql`r.id in (
      select p.registration_id from pairs p where p.account_id = ${accountId} and p.broker_id = ${brokerId} and p.wanted)`)
  }
  if (state === 'waiting' || state === 'failing') {
    parts.push(sql`r.id in (
      select a.registration_id from access_requests a where a.account_id = ${accountId}
        and a.state = ${state === 'waiting' ? 'PENDING_APPROVAL' : 'ERROR'} and a.expired_at is null)`)
  }
  if (state === 'paused') parts.push(isPaused)
  return sql.join(parts, sql` and `)
}

/** A credential without its secret, which is not even read; times in epoch milliseconds. */
export interface CredentialFacts {
  readonly name: string
  /** The client username. */
  readonly consumerKey: string
  readonly version: number
  readonly issuedAtMs: number
  readonly expiresAtMs: number | null
  /** Expired, revoked or deleted. */
  readonly retiredAtMs: number | null
}

const MAX_CREDENTIALS = 200

/** Live ones first, then the newest. */
export async function listCredentialFacts(
  db: Database,
  accountId: string,
  registrationId: string,
): Promise<readonly CredentialFacts[]> {
  const rows = await db
    .selectFrom('credentials')
    .select(['name', 'consumer_key', 'secret_version', 'issued_at', 'expires_at', 'retired_at'])
    .where('account_id', '=', accountId)
    .where('registration_id', '=', registrationId)
    .orderBy(sql`retired_at is not null`)
    .orderBy('issued_at', 'desc')
    .orderBy('id')
    .limit(MAX_CREDENTIALS)
    .execute()
  return rows.map((row) => ({
    name: row.name,
    consumerKey: row.consumer_key,
    version: row.secret_version,
    issuedAtMs: row.issued_at.getTime(),
    expiresAtMs: row.expires_at?.getTime() ?? null,
    retiredAtMs: row.retired_at?.getTime() ?? null,
  }))
}

/** Whether it is paused itself, not with its account or broker. */
export async function isRegistrationPaused(db: Database, accountId: string, registrationId: string): Promise<boolean> {
  const row = await db
    .selectFrom('pauses')
    .select('id')
    .where('account_id', '=', accountId)
    .where('scope', '=', 'registration')
    .where('id', '=', registrationId)
    .executeTakeFirst()
  return row !== undefined
}
