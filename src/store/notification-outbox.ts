import { sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import type { DeliveryAttempt } from '../domain/notifications.ts'
import type { Database } from './database.ts'
import type { EndpointPlace } from './notification-endpoints-view.ts'

/** Endpoints with something to send now. */
export async function dueEndpoints(db: Database, nowMs: number, limit: number): Promise<readonly EndpointPlace[]> {
  const now = new Date(nowMs)
  const { rows } = await sql<{ accountId: AccountId; endpointId: string }>`
    select e.account_id as "accountId", e.id as "endpointId" from notification_endpoints e
    where e.enabled and (e.blocked_until is null or e.blocked_until <= ${now}) and (
      exists (select from notification_deliveries d where d.account_id = e.account_id and d.endpoint_id = e.id
        and d.state = 'pending' and d.next_attempt_at <= ${now})
      or ((e.next_digest_at is null or e.next_digest_at <= ${now}) and exists (
        select from notifications n where n.account_id = e.account_id and n.endpoint_id = e.id and n.delivery_id is null)))
    order by e.blocked_until nulls first, e.account_id, e.id limit ${limit}`.execute(db)
  return rows
}

/** Tells of credentials that expire within `noticeMs`, each once for each expiry and endpoint. */
export async function noticeExpiring(db: Database, nowMs: number, noticeMs: number): Promise<void> {
  if (noticeMs === 0) return
  await sql`
    insert into notifications (account_id, endpoint_id, fact, kind, subject, occurred_at, keep_until)
    select c.account_id, e.id, f.fact, 'credential.expiring',
      jsonb_build_object('registrationId', c.registration_id, 'credentialName', c.name, 'consumerKey', c.consumer_key,
        'expiresAtMs', round(extract(epoch from c.expires_at) * 1000)::bigint),
      ${new Date(nowMs)}, c.expires_at
    from credentials c
    join registrations r on r.account_id = c.account_id and r.id = c.registration_id and r.deleted_at is null
    join notification_endpoints e
      on e.account_id = c.account_id and e.enabled and 'credential.expiring' = any(e.kinds)
    cross join lateral (
      select 'credential.expiring/' || c.id || '/' || extract(epoch from c.expires_at) as fact) f
    where c.expires_at > ${new Date(nowMs)} and c.expires_at <= ${new Date(nowMs + noticeMs)} and c.retired_at is null
      and not exists (select from notifications n
        where n.account_id = c.account_id and n.endpoint_id = e.id and n.fact = f.fact)
    order by c.expires_at
    on conflict do nothing`.execute(db)
}

/** How long a silent sender keeps an endpoint to itself; longer than any attempt. */
const LEASE_MS = 60_000

export interface EndpointLease extends EndpointPlace {
  readonly holder: string
}

export interface LeasedEndpoint {
  readonly name: string
  readonly address: string
  readonly secrets: string
  readonly secrets_version: number
  readonly blockedUntilMs: number | null
}

/** One sender at a time, so that deliveries keep their order. Null: another one sends, or it is switched off or gone. */
export async function leaseEndpoint(
  db: Database,
  { accountId, endpointId, holder }: EndpointLease,
  nowMs: number,
): Promise<LeasedEndpoint | null> {
  const { rows } = await sql<Omit<LeasedEndpoint, 'blockedUntilMs'> & { blockedUntil: Date | null }>`
    update notification_endpoints set lease_holder = ${holder}, lease_until = ${new Date(nowMs + LEASE_MS)}
    where account_id = ${accountId} and id = ${endpointId} and enabled
      and (lease_holder is null or lease_holder = ${holder} or lease_until <= ${new Date(nowMs)}
        or lease_until > ${new Date(nowMs + LEASE_MS)})
    returning name, address, secrets, secrets_version, blocked_until as "blockedUntil"`.execute(db)
  const [row] = rows
  if (row === undefined) return null
  const { blockedUntil, ...leased } = row
  return { ...leased, blockedUntilMs: blockedUntil?.getTime() ?? null }
}

export async function releaseEndpoint(db: Database, { accountId, endpointId, holder }: EndpointLease): Promise<void> {
  await sql`
    update notification_endpoints set lease_holder = null, lease_until = null
    where account_id = ${accountId} and id = ${endpointId} and lease_holder = ${holder}`.execute(db)
}

export interface DueDelivery {
  readonly id: string
  readonly body: string
  readonly attempts: number
  readonly giveUpAtMs: number
}

/** The oldest that may be tried now; a person waits for a test. */
export async function nextDelivery(
  db: Database,
  { accountId, endpointId }: EndpointPlace,
  nowMs: number,
): Promise<DueDelivery | null> {
  const row = await db
    .selectFrom('notification_deliveries')
    .select(['id', 'body', 'attempts', 'give_up_at'])
    .where('account_id', '=', accountId)
    .where('endpoint_id', '=', endpointId)
    .where('state', '=', 'pending')
    .where('next_attempt_at', '<=', new Date(nowMs))
    .orderBy('test', 'desc')
    .orderBy('created_at')
    .orderBy('id')
    .executeTakeFirst()
  if (row === undefined) return null
  return { id: row.id, body: row.body, attempts: row.attempts, giveUpAtMs: row.give_up_at.getTime() }
}

export interface AttemptRecord {
  readonly place: EndpointPlace
  readonly id: string
  readonly nowMs: number
  readonly attempt: DeliveryAttempt
  /** When it is tried again; null: given up, or delivered. */
  readonly nextAttemptAtMs: number | null
}

/** In one transaction: what became of the delivery, and what that says of the endpoint. */
export async function recordAttempt(db: Database, record: AttemptRecord): Promise<void> {
  const { place, id, nowMs, attempt, nextAttemptAtMs } = record
  const now = new Date(nowMs)
  const next = nextAttemptAtMs === null ? null : new Date(nextAttemptAtMs)
  const state = attempt.outcome === 'delivered' ? 'delivered' : next === null ? 'dead' : 'pending'
  const error = attempt.outcome === 'delivered' ? null : attempt.message
  await db.transaction().execute(async (trx) => {
    await sql`
      update notification_deliveries set state = ${state}, attempts = attempts + 1, last_attempt_at = ${now},
        last_status = ${attempt.status}, last_error = ${error}, next_attempt_at = ${next ?? now},
        finished_at = ${state === 'pending' ? null : now}
      where account_id = ${place.accountId} and id = ${id} and state = 'pending'`.execute(trx)
    const healthy = attempt.outcome === 'delivered'
    const blockedUntil = attempt.outcome === 'failed' ? next : null
    await sql`
      update notification_endpoints set
        blocked_until = ${blockedUntil}, last_error = ${error},
        failing_since = case when ${healthy}::boolean then null else coalesce(failing_since, ${now}) end,
        last_delivered_at = case when ${healthy}::boolean then ${now} else last_delivered_at end,
        enabled = enabled and ${attempt.outcome !== 'gone'}::boolean,
        disabled_reason = case when ${attempt.outcome === 'gone'}::boolean then ${error} else disabled_reason end
      where account_id = ${place.accountId} and id = ${place.endpointId}`.execute(trx)
  })
}
