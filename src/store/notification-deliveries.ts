import { sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import { conflict, notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import type { EndpointPlace } from './notification-endpoints-view.ts'

export const DELIVERY_STATES = ['pending', 'delivered', 'dead'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** A delivery as it may be shown: it holds no secret. */
export interface DeliveryView {
  /** What receivers see as `webhook-id`. */
  readonly id: string
  readonly endpointId: string
  readonly state: DeliveryState
  readonly test: boolean
  /** How many facts it tells. */
  readonly notifications: number
  readonly attempts: number
  readonly createdAtMs: number
  /** Null unless it is pending. */
  readonly nextAttemptAtMs: number | null
  readonly giveUpAtMs: number
  readonly lastAttemptAtMs: number | null
  readonly lastStatus: number | null
  readonly lastError: string | null
  readonly finishedAtMs: number | null
}

export interface DeliveryFilter {
  readonly accountId: AccountId
  readonly endpointId?: string
  readonly state?: DeliveryState
}

interface DeliveryRow {
  readonly id: string
  readonly endpoint_id: string
  readonly state: DeliveryState
  readonly test: boolean
  readonly notifications: number
  readonly attempts: number
  readonly created_at: Date
  readonly next_attempt_at: Date
  readonly give_up_at: Date
  readonly last_attempt_at: Date | null
  readonly last_status: number | null
  readonly last_error: string | null
  readonly finished_at: Date | null
}

const COLUMNS = [
  'id',
  'endpoint_id',
  'state',
  'test',
  'notifications',
  'attempts',
  'created_at',
  'next_attempt_at',
  'give_up_at',
  'last_attempt_at',
  'last_status',
  'last_error',
  'finished_at',
] as const

const viewOf = (row: DeliveryRow): DeliveryView => ({
  id: row.id,
  endpointId: row.endpoint_id,
  state: row.state,
  test: row.test,
  notifications: row.notifications,
  attempts: row.attempts,
  createdAtMs: row.created_at.getTime(),
  nextAttemptAtMs: row.state === 'pending' ? row.next_attempt_at.getTime() : null,
  giveUpAtMs: row.give_up_at.getTime(),
  lastAttemptAtMs: row.last_attempt_at?.getTime() ?? null,
  lastStatus: row.last_status,
  lastError: row.last_error,
  finishedAtMs: row.finished_at?.getTime() ?? null,
})

const deliveriesOf = (db: Database, { accountId, endpointId, state }: DeliveryFilter) => {
  let found = db.selectFrom('notification_deliveries').where('account_id', '=', accountId)
  if (endpointId !== undefined) found = found.where('endpoint_id', '=', endpointId)
  if (state !== undefined) found = found.where('state', '=', state)
  return found
}

/** Newest first, and how many there are. */
export async function listDeliveries(
  db: Database,
  filter: DeliveryFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly deliveries: readonly DeliveryView[]; readonly count: number }> {
  const rows = await deliveriesOf(db, filter)
    .select(COLUMNS)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  const { count } = await deliveriesOf(db, filter)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return { deliveries: rows.map(viewOf), count }
}

/** With the body as it was or will be sent. Throws NOT_FOUND. */
export async function readDelivery(
  db: Database,
  accountId: AccountId,
  id: string,
): Promise<DeliveryView & { readonly body: string }> {
  const row = await deliveriesOf(db, { accountId })
    .select([...COLUMNS, 'body'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (row === undefined) throw notFound('delivery', id)
  return { ...viewOf(row), body: row.body }
}

export interface ResendOptions {
  readonly nowMs: number
  /** How long it is tried from now on. */
  readonly retryMs: number
}

/**
 * Sends a delivery again, with the same id and body, as soon as the endpoint is looked at; one that is pending is tried
 * now. Throws NOT_FOUND, CONFLICT when the endpoint is switched off.
 */
export async function resendDelivery(
  db: Database,
  accountId: AccountId,
  id: string,
  { nowMs, retryMs }: ResendOptions,
): Promise<DeliveryView> {
  return await db.transaction().execute(async (trx) => {
    const { endpointId } = await readDelivery(trx, accountId, id)
    await unblock(trx, { accountId, endpointId })
    await sql`
      update notification_deliveries set state = 'pending', attempts = 0, next_attempt_at = ${new Date(nowMs)},
        give_up_at = case when test then ${new Date(nowMs)}::timestamptz else ${new Date(nowMs + retryMs)}::timestamptz end,
        finished_at = null
      where account_id = ${accountId} and id = ${id}`.execute(trx)
    const { body: _body, ...view } = await readDelivery(trx, accountId, id)
    return view
  })
}

/** All dead letters of an endpoint; answers how many. Throws NOT_FOUND, CONFLICT when the endpoint is switched off. */
export async function resendDead(
  db: Database,
  place: EndpointPlace,
  { nowMs, retryMs }: ResendOptions,
): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    await unblock(trx, place)
    const { numAffectedRows } = await sql`
      update notification_deliveries set state = 'pending', attempts = 0, next_attempt_at = ${new Date(nowMs)},
        give_up_at = ${new Date(nowMs + retryMs)}, finished_at = null
      where account_id = ${place.accountId} and endpoint_id = ${place.endpointId} and state = 'dead' and not test`.execute(
      trx,
    )
    return Number(numAffectedRows ?? 0)
  })
}

/** Who asks by hand does not wait for the end of a rest. */
export async function unblock(trx: Database, { accountId, endpointId }: EndpointPlace): Promise<void> {
  const row = await trx
    .updateTable('notification_endpoints')
    .set({ blocked_until: null })
    .where('account_id', '=', accountId)
    .where('id', '=', endpointId)
    .returning(['enabled', 'name'])
    .executeTakeFirst()
  if (row === undefined) throw notFound('notification endpoint', endpointId)
  if (row.enabled) return
  throw conflict(`The notification endpoint "${row.name}" is switched off.`, 'Switch it on first.')
}
