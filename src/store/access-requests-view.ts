import type { AccessRequestState, Filters } from '../domain/registration.ts'
import type { Database } from './database.ts'
import { type FilterView, filterViews } from './filters-view.ts'
import { accessRequestContent, revisionOf } from './import-content.ts'
import { isCounted } from './import-state.ts'
import { type GrantedRequest, type Owner, type QueuesView, queuesOf } from './registration-view-permissions.ts'
import { readVersionViews, type VersionViews } from './registration-view-versions.ts'
import type { RegistrationPlace } from './registrations-change.ts'

export interface StoredRequest {
  readonly registrationId: string
  readonly id: string
  readonly productId: string
  readonly productVersion: string
  readonly planId: string
  readonly state: AccessRequestState
  /** Why the state is ERROR. */
  readonly reason: string | null
  readonly filters: Filters
  readonly queueNonce: string
  readonly approvedAtMs: number | null
  readonly expiresAtMs: number | null
  readonly expiredAtMs: number | null
}

export interface AccessRequestView extends QueuesView {
  readonly accessRequestId: string
  readonly registrationId: string
  readonly eventApiProductId: string
  readonly eventApiProductVersion: string
  readonly planId: string
  readonly state: AccessRequestState
  /** Of ERROR. */
  readonly reason?: string
  readonly filters: readonly FilterView[]
}

/** All of these registrations; of one registration by id. */
export async function readRequests(
  db: Database,
  accountId: string,
  registrationIds: readonly string[],
): Promise<readonly StoredRequest[]> {
  if (registrationIds.length === 0) return []
  const rows = await requestRows(db, accountId).where('registration_id', 'in', registrationIds).orderBy('id').execute()
  return rows.map(storedRequest)
}

/** In the order of the ids, those that are there. */
export async function readRequestsById(
  db: Database,
  { accountId, registrationId }: RegistrationPlace,
  ids: readonly string[],
): Promise<readonly StoredRequest[]> {
  if (ids.length === 0) return []
  const rows = await requestRows(db, accountId)
    .where('registration_id', '=', registrationId)
    .where('id', 'in', ids)
    .execute()
  const byId = new Map(rows.map((row) => [row.id, storedRequest(row)]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Null when the registration has no such request. */
export async function findRequest(
  db: Database,
  accountId: string,
  registrationId: string,
  id: string,
): Promise<StoredRequest | null> {
  const row = await requestRows(db, accountId)
    .where('registration_id', '=', registrationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row === undefined ? null : storedRequest(row)
}

const requestRows = (db: Database, accountId: string) =>
  db.selectFrom('access_requests').selectAll().where('account_id', '=', accountId)

type RequestRow = Awaited<ReturnType<ReturnType<typeof requestRows>['execute']>>[number]

const storedRequest = (row: RequestRow): StoredRequest => ({
  registrationId: row.registration_id,
  id: row.id,
  productId: row.product_id,
  productVersion: row.product_version,
  planId: row.plan_id,
  state: row.state,
  reason: row.reason,
  filters: row.filters,
  queueNonce: row.queue_nonce,
  approvedAtMs: row.approved_at?.getTime() ?? null,
  expiresAtMs: row.expires_at?.getTime() ?? null,
  expiredAtMs: row.expired_at?.getTime() ?? null,
})

/** What an ETag of the request is made of. */
export const requestRevision = (request: StoredRequest): string =>
  revisionOf({ ...accessRequestContent(request), expired: request.expiredAtMs !== null })

const versionOf = ({ productId, productVersion }: StoredRequest) => ({ productId, version: productVersion })

export const readVersionsOf = (
  db: Database,
  accountId: string,
  requests: readonly StoredRequest[],
): Promise<VersionViews> => readVersionViews(db, accountId, requests.map(versionOf))

/** Null when nothing on a broker comes from the request now. */
export function grantedRequest(request: StoredRequest, versions: VersionViews): GrantedRequest | null {
  const version = versions(versionOf(request))
  const policy = version?.policies.get(request.planId)
  if (version === undefined || policy === undefined || !isCounted(request)) return null
  if (version.state !== 'RELEASED' && version.state !== 'DEPRECATED') return null
  return { id: request.id, filters: request.filters, queueNonce: request.queueNonce, policy, version }
}

/** One whose time is over is shown as revoked, which it is: the API has no word for the difference. */
export function accessRequestView(owner: Owner, request: StoredRequest, versions: VersionViews): AccessRequestView {
  const granted = grantedRequest(request, versions)
  const state = request.expiredAtMs === null ? request.state : 'REVOKED'
  return {
    accessRequestId: request.id,
    registrationId: request.registrationId,
    eventApiProductId: request.productId,
    eventApiProductVersion: request.productVersion,
    planId: request.planId,
    state,
    ...(state === 'ERROR' && request.reason !== null ? { reason: request.reason } : {}),
    filters: filterViews(request.filters),
    ...(granted === null ? {} : queuesOf(owner, granted)),
  }
}
