import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { listedOf, MAX_LISTED, type SentKind } from '../domain/notifications.ts'
import type { Database } from './database.ts'
import { unblock } from './notification-deliveries.ts'
import type { EndpointPlace } from './notification-endpoints-view.ts'
import { type Notification, type NotificationPayload, notificationSchema, summaryOf } from './notification-payload.ts'
import type { RandomSource } from './random-source.ts'

/** After a digest the next facts are gathered for this long. */
export const DIGEST_EVERY_MS = 60_000
/** Of one digest; what is beyond is in the next. */
const MAX_GATHERED = 10_000

export interface DigestOptions {
  readonly nowMs: number
  /** How long its delivery is tried. */
  readonly retryMs: number
  readonly random: RandomSource
}

interface OutboxRow {
  readonly fact: string
  readonly kind: SentKind
  readonly subject: unknown
  readonly occurredAt: Date
}

/**
 * Makes one delivery of everything that waits for the endpoint, in one transaction, so that each fact is in exactly one
 * delivery. False when nothing waits, or the endpoint had its digest of this minute.
 */
export async function makeDigest(db: Database, place: EndpointPlace, options: DigestOptions): Promise<boolean> {
  const { nowMs, retryMs, random } = options
  const { accountId, endpointId } = place
  return await db.transaction().execute(async (trx) => {
    const { rows: due } = await sql`
      select 1 from notification_endpoints where account_id = ${accountId} and id = ${endpointId} and enabled
        and (next_digest_at is null or next_digest_at <= ${new Date(nowMs)}
          or next_digest_at > ${new Date(nowMs + DIGEST_EVERY_MS)})
      for no key update`.execute(trx)
    if (due.length === 0) return false
    const id = random.id()
    const { numAffectedRows } = await sql`
      update notifications set delivery_id = ${id} where id in (
        select id from notifications where account_id = ${accountId} and endpoint_id = ${endpointId}
          and delivery_id is null and kind <> 'test'
        order by id limit ${MAX_GATHERED})`.execute(trx)
    const gathered = Number(numAffectedRows ?? 0)
    if (gathered === 0) return false
    const body = JSON.stringify(await payloadOf(trx, place, id, nowMs))
    await insertDelivery(trx, place, {
      id,
      body,
      notifications: gathered,
      nowMs,
      giveUpAtMs: nowMs + retryMs,
      test: false,
    })
    await sql`
      update notification_endpoints set next_digest_at = ${new Date(nowMs + DIGEST_EVERY_MS)}
      where account_id = ${accountId} and id = ${endpointId}`.execute(trx)
    return true
  })
}

/** A delivery that tells nothing and is tried once. Answers its id. Throws NOT_FOUND, CONFLICT when it is switched off. */
export async function makeTest(
  db: Database,
  place: EndpointPlace,
  {
    nowMs,
    requestedBy,
    random,
  }: { readonly nowMs: number; readonly requestedBy: string; readonly random: RandomSource },
): Promise<string> {
  const id = random.id()
  await db.transaction().execute(async (trx) => {
    await unblock(trx, place)
    await sql`
      insert into notifications (account_id, endpoint_id, fact, kind, subject, occurred_at, delivery_id)
      values (${place.accountId}, ${place.endpointId}, ${`test/${id}`}, 'test',
        ${JSON.stringify({ requestedBy })}::jsonb, ${new Date(nowMs)}, ${id})`.execute(trx)
    const body = JSON.stringify(await payloadOf(trx, place, id, nowMs))
    await insertDelivery(trx, place, { id, body, notifications: 1, nowMs, giveUpAtMs: nowMs, test: true })
  })
  return id
}

interface NewDelivery {
  readonly id: string
  readonly body: string
  readonly notifications: number
  readonly nowMs: number
  readonly giveUpAtMs: number
  readonly test: boolean
}

async function insertDelivery(trx: Database, place: EndpointPlace, delivery: NewDelivery): Promise<void> {
  await trx
    .insertInto('notification_deliveries')
    .values({
      account_id: place.accountId,
      endpoint_id: place.endpointId,
      id: delivery.id,
      state: 'pending',
      test: delivery.test,
      notifications: delivery.notifications,
      body: delivery.body,
      next_attempt_at: new Date(delivery.nowMs),
      give_up_at: new Date(delivery.giveUpAtMs),
      created_at: new Date(delivery.nowMs),
    })
    .execute()
}

async function payloadOf(
  trx: Database,
  { accountId, endpointId }: EndpointPlace,
  deliveryId: string,
  nowMs: number,
): Promise<NotificationPayload> {
  const { rows: kinds } = await sql<{ kind: SentKind; count: number }>`
    select kind, count(*) as count from notifications where delivery_id = ${deliveryId} group by kind order by kind`.execute(
    trx,
  )
  const counts = new Map(kinds.map(({ kind, count }) => [kind, count]))
  const listed = listedOf(counts, MAX_LISTED)
  const { rows } = await sql<OutboxRow>`
    select n.fact, n.kind, n.subject, n.occurred_at as "occurredAt"
    from jsonb_each_text(${JSON.stringify(Object.fromEntries(listed))}::jsonb) as share (kind, places)
    cross join lateral (
      select id, fact, notifications.kind, subject, occurred_at from notifications
      where delivery_id = ${deliveryId} and notifications.kind = share.kind order by id limit share.places::integer
    ) n order by n.id`.execute(trx)
  const account = await trx.selectFrom('accounts').select('name').where('id', '=', accountId).executeTakeFirstOrThrow()
  const gathered = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const notifications = rows.flatMap((row) => toNotification(accountId, row) ?? [])
  return {
    type: 'keymesh.notifications',
    timestamp: new Date(nowMs).toISOString(),
    data: {
      accountId,
      accountName: account.name,
      endpointId,
      counts: Object.fromEntries(counts),
      omitted: gathered - notifications.length,
      notifications,
    },
  }
}

/** Null for what this program does not know: a newer one wrote it. It is counted and not listed. */
function toNotification(accountId: string, { fact, kind, subject, occurredAt }: OutboxRow): Notification | null {
  const id = createHash('sha256')
    .update(JSON.stringify([accountId, fact]))
    .digest('hex')
    .slice(0, 32)
  const parsed = notificationSchema.safeParse({ id, kind, occurredAtMs: occurredAt.getTime(), summary: '', subject })
  return parsed.success ? { ...parsed.data, summary: summaryOf(parsed.data) } : null
}
