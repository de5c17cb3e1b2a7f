import { sql } from 'kysely'
import type { AccessRequestState } from '../domain/registration.ts'
import type { Database } from './database.ts'

export const ACCESS_REQUEST_STATES = [
  'PENDING_APPROVAL',
  'APPROVED',
  'LIVE',
  'ERROR',
  'REJECTED',
  'REVOKED',
] as const satisfies readonly AccessRequestState[]

/** As the portal lists it; the time in epoch milliseconds. */
export interface QueuedAccessRequest {
  readonly registrationId: string
  readonly registrationName: string
  readonly accessRequestId: string
  readonly productId: string
  /** Null: the product is gone. */
  readonly productName: string | null
  readonly productVersion: string
  readonly planId: string
  readonly state: AccessRequestState
  readonly reason: string | null
  readonly createdTime: number
}

export interface AccessRequestFilter {
  readonly accountId: string
  readonly state?: AccessRequestState | undefined
  readonly productId?: string | undefined
  readonly registrationId?: string | undefined
}

/** Of all registrations that are there, oldest first. */
export async function readAccessRequestQueue(
  db: Database,
  filter: AccessRequestFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly items: readonly QueuedAccessRequest[]; readonly count: number }> {
  const from = sql`
    from access_requests a
    join registrations r on r.account_id = a.account_id and r.id = a.registration_id and r.deleted_at is null
    left join products p on p.account_id = a.account_id and p.id = a.product_id
    where a.account_id = ${filter.accountId}
      and (${filter.state ?? null}::text is null or a.state = ${filter.state ?? null})
      and (${filter.productId ?? null}::text is null or a.product_id = ${filter.productId ?? null})
      and (${filter.registrationId ?? null}::text is null or a.registration_id = ${filter.registrationId ?? null})`
  const { rows } = await sql<Omit<QueuedAccessRequest, 'createdTime'> & { readonly createdAt: Date }>`
    select a.registration_id as "registrationId", r.name as "registrationName", a.id as "accessRequestId",
      a.product_id as "productId", p.name as "productName", a.product_version as "productVersion",
      a.plan_id as "planId", a.state, a.reason, a.created_at as "createdAt"
    ${from} order by a.created_at, a.registration_id, a.id limit ${page.limit} offset ${page.offset}`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count ${from}`.execute(db)
  const items = rows.map(({ createdAt, ...row }) => ({ ...row, createdTime: createdAt.getTime() }))
  return { items, count: counted.rows[0]?.count ?? 0 }
}
