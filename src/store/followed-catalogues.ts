import { sql } from 'kysely'
import { conflict } from '../domain/refusals.ts'
import type { Database } from './database.ts'

/** An account that follows another service's catalogue: since its first complete pass. */
export interface FollowedCatalogue {
  readonly origin: string
  /** Ids of brokers whose messaging settings come from it. */
  readonly messagingOf: readonly string[]
}

/** Null while the account is its own. */
export async function readFollowed(db: Database, accountId: string): Promise<FollowedCatalogue | null> {
  const { rows } = await sql<FollowedCatalogue>`
    select origin, messaging_of as "messagingOf" from followed_catalogues
    where account_id = ${accountId} and followed_since is not null`.execute(db)
  return rows[0] ?? null
}

/** Throws CONFLICT when what is to be changed here would be changed back by the next pass. */
export async function refuseFollowed(db: Database, accountId: string): Promise<void> {
  const followed = await readFollowed(db, accountId)
  if (followed !== null) throw followsRemote(followed)
}

export const followsRemote = ({ origin }: FollowedCatalogue) =>
  conflict(
    `The account follows the catalogue of ${origin}: products, Event APIs and registrations cannot be changed here.`,
    'Change them there.',
  )

/** A number for a pass that begins now; later passes have higher ones. */
export async function beginPass(
  db: Database,
  accountId: string,
  { origin, atMs }: { readonly origin: string; readonly atMs: number },
): Promise<number> {
  const at = new Date(atMs)
  const { rows } = await sql<{ pass: number }>`
    insert into followed_catalogues (account_id, origin, passes, started_at) values (${accountId}, ${origin}, 1, ${at})
    on conflict (account_id) do update set passes = followed_catalogues.passes + 1, started_at = excluded.started_at,
      origin = case when followed_catalogues.followed_since is null then excluded.origin else followed_catalogues.origin end
    returning passes as pass`.execute(db)
  return rows[0]?.pass ?? 1
}

export interface PassPlace {
  readonly accountId: string
  readonly pass: number
}

/** Locks the account's row until the transaction ends. False when a later pass was written, which knows more. */
export async function mayWritePass(trx: Database, { accountId, pass }: PassPlace): Promise<boolean> {
  const { rows } = await sql<{ writtenPass: number }>`
    select written_pass as "writtenPass" from followed_catalogues where account_id = ${accountId} for update`.execute(
    trx,
  )
  const [row] = rows
  return row !== undefined && row.writtenPass < pass
}

export interface WrittenPass extends PassPlace {
  readonly origin: string
  readonly atMs: number
  readonly warnings: readonly string[]
  readonly unmanagedBrokers: readonly UnmanagedBroker[]
  readonly messagingOf: readonly string[]
}

/** A messaging service that a product names and that no broker here has management settings for. */
export interface UnmanagedBroker {
  readonly id: string
  readonly name: string
}

/** Belongs into the transaction that wrote what the pass found. From then on the account follows. */
export async function recordPass(trx: Database, written: WrittenPass): Promise<void> {
  const at = new Date(written.atMs)
  await sql`
    update followed_catalogues set origin = ${written.origin}, followed_since = case
        when origin = ${written.origin} then coalesce(followed_since, ${at}) else ${at} end,
      written_pass = ${written.pass}, succeeded_at = ${at}, error_code = null, error = null,
      warnings = ${JSON.stringify(written.warnings)}::jsonb,
      unmanaged_brokers = ${JSON.stringify(written.unmanagedBrokers)}::jsonb, messaging_of = ${written.messagingOf}
    where account_id = ${written.accountId}`.execute(trx)
}

/** What earlier passes wrote stays. */
export async function recordFailedPass(
  db: Database,
  { accountId, pass }: PassPlace,
  failure: { readonly atMs: number; readonly code: string; readonly message: string },
): Promise<void> {
  await sql`
    update followed_catalogues
    set failed_at = ${new Date(failure.atMs)}, error_code = ${failure.code}, error = ${failure.message}
    where account_id = ${accountId} and written_pass < ${pass}`.execute(db)
}

/** What was declared here is no longer taken from the remote. */
export async function keepOwnMessaging(trx: Database, accountId: string, brokers: readonly string[]): Promise<void> {
  if (brokers.length === 0) return
  await sql`
    update followed_catalogues set messaging_of = (
      select coalesce(array_agg(id), '{}') from unnest(messaging_of) id where id <> all(${brokers}))
    where account_id = ${accountId} and messaging_of && ${brokers}`.execute(trx)
}

/** The account is its own again, with all that it has. False when it was. */
export async function stopFollowing(db: Database, accountId: string): Promise<boolean> {
  const { rows } = await sql`
    delete from followed_catalogues where account_id = ${accountId} returning 1`.execute(db)
  return rows.length > 0
}

/** How an account stands with the service that it follows, or is to follow. */
export interface RemoteCatalogueStatus {
  readonly origin: string
  /** Null: no pass was complete yet, and the account is its own. */
  readonly followedSinceMs: number | null
  readonly lastStartedAtMs: number | null
  readonly lastSucceededAtMs: number | null
  readonly lastFailedAtMs: number | null
  /** Of the last pass, when it failed. */
  readonly errorCode: string | null
  readonly error: string | null
  readonly warnings: readonly string[]
  readonly unmanagedBrokers: readonly UnmanagedBroker[]
}

interface StatusRow
  extends Pick<RemoteCatalogueStatus, 'origin' | 'errorCode' | 'error' | 'warnings' | 'unmanagedBrokers'> {
  readonly followedSince: Date | null
  readonly startedAt: Date | null
  readonly succeededAt: Date | null
  readonly failedAt: Date | null
}

/** Null when the account never had to do with another service. */
export async function readRemoteStatus(db: Database, accountId: string): Promise<RemoteCatalogueStatus | null> {
  const { rows } = await sql<StatusRow>`
    select origin, followed_since as "followedSince", started_at as "startedAt", succeeded_at as "succeededAt",
      failed_at as "failedAt", error_code as "errorCode", error, warnings, unmanaged_brokers as "unmanagedBrokers"
    from followed_catalogues where account_id = ${accountId}`.execute(db)
  const [row] = rows
  if (row === undefined) return null
  const { followedSince, startedAt, succeededAt, failedAt, ...rest } = row
  return {
    ...rest,
    followedSinceMs: followedSince?.getTime() ?? null,
    lastStartedAtMs: startedAt?.getTime() ?? null,
    lastSucceededAtMs: succeededAt?.getTime() ?? null,
    lastFailedAtMs: failedAt?.getTime() ?? null,
  }
}
