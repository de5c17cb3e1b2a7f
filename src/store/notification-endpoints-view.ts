import { sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import type { NotificationKind } from '../domain/notifications.ts'
import { notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import { revisionOf } from './import-content.ts'
import type { NotificationEndpointsTable } from './schema.ts'

export interface EndpointPlace {
  readonly accountId: AccountId
  readonly endpointId: string
}

/** An endpoint as it may be shown. */
export interface EndpointView {
  readonly id: string
  readonly name: string
  /** The URL without user, password and query. */
  readonly address: string
  readonly kinds: readonly NotificationKind[]
  readonly enabled: boolean
  /** Why the receiver's answer switched it off. */
  readonly disabledReason: string | null
  readonly createdAtMs: number
  readonly lastDeliveredAtMs: number | null
  /** Since when no attempt reached the receiver; null while it takes what it is sent. */
  readonly failingSinceMs: number | null
  readonly lastError: string | null
  readonly pendingDeliveries: number
  readonly deadDeliveries: number
}

export interface EndpointAnswer {
  readonly view: EndpointView
  readonly revision: string
}

export interface EndpointRow {
  readonly id: string
  readonly name: string
  readonly kinds: readonly string[]
  readonly enabled: boolean
  readonly secrets: string
  readonly secrets_version: number
}

/** Of what a person changes; deliveries do not touch it. */
export const endpointRevision = (row: EndpointRow): string =>
  revisionOf([row.id, row.name, row.kinds, row.enabled, row.secrets_version])

/** Sorted by name; the pages of an account's endpoints are short. */
export async function listEndpoints(
  db: Database,
  accountId: AccountId,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly endpoints: readonly EndpointView[]; readonly count: number }> {
  const all = await readEndpoints(db, accountId)
  return {
    endpoints: all.slice(page.offset, page.offset + page.limit).map(({ view }) => view),
    count: all.length,
  }
}

/** Throws NOT_FOUND. */
export async function requireEndpoint(db: Database, { accountId, endpointId }: EndpointPlace): Promise<EndpointAnswer> {
  const [found] = await readEndpoints(db, accountId, endpointId)
  if (found === undefined) throw notFound('notification endpoint', endpointId)
  return found
}

/** By id or by name, as people write it. Throws NOT_FOUND. */
export async function findEndpoint(db: Database, accountId: AccountId, idOrName: string): Promise<EndpointView> {
  const all = await readEndpoints(db, accountId)
  const found = all.find(({ view }) => view.id === idOrName) ?? all.find(({ view }) => view.name === idOrName)
  if (found === undefined) throw notFound('notification endpoint', idOrName)
  return found.view
}

async function readEndpoints(
  db: Database,
  accountId: AccountId,
  endpointId?: string,
): Promise<readonly EndpointAnswer[]> {
  const { rows } = await sql<NotificationEndpointsRow & { readonly pending: number; readonly dead: number }>`
    select e.*, coalesce(d.pending, 0) as pending, coalesce(d.dead, 0) as dead from notification_endpoints e
    left join (
      select endpoint_id, count(*) filter (where state = 'pending') as pending,
        count(*) filter (where state = 'dead' and not test) as dead
      from notification_deliveries where account_id = ${accountId} and state <> 'delivered' group by endpoint_id
    ) d on d.endpoint_id = e.id
    where e.account_id = ${accountId} and (${endpointId ?? null}::text is null or e.id = ${endpointId ?? null})
    order by e.name`.execute(db)
  return rows.map((row) => ({
    view: {
      id: row.id,
      name: row.name,
      address: row.address,
      kinds: row.kinds,
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      createdAtMs: row.created_at.getTime(),
      lastDeliveredAtMs: row.last_delivered_at?.getTime() ?? null,
      failingSinceMs: row.failing_since?.getTime() ?? null,
      lastError: row.last_error,
      pendingDeliveries: row.pending,
      deadDeliveries: row.dead,
    },
    revision: endpointRevision(row),
  }))
}

type NotificationEndpointsRow = Omit<
  NotificationEndpointsTable,
  'created_at' | 'last_delivered_at' | 'failing_since'
> & {
  readonly created_at: Date
  readonly last_delivered_at: Date | null
  readonly failing_since: Date | null
}
