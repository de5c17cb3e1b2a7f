import { sql } from 'kysely'
import { type AccessRequestView, accessRequestView, readRequestsById, readVersionsOf } from './access-requests-view.ts'
import { filtered } from './bounded-filter.ts'
import type { Database } from './database.ts'
import { ACCESS_REQUEST_FIELDS, accessRequestDocument, readIds } from './registration-view-list.ts'
import { findRegistration, type RegistrationPlace } from './registrations-change.ts'
import { compileWhere, orderedBy, type WhereResource } from './where.ts'

export const ACCESS_REQUEST_SORT_FIELDS = [
  'accessRequestId',
  'registrationId',
  'eventApiProductId',
  'eventApiProductVersion',
  'planId',
  'state',
] as const
export type AccessRequestSortField = (typeof ACCESS_REQUEST_SORT_FIELDS)[number]

export interface AccessRequestQuery {
  readonly where?: string | undefined
  readonly sortFieldName?: AccessRequestSortField | undefined
  readonly sortDirection: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

const resource: WhereResource = { name: 'an access request', document: sql`d.document`, fields: ACCESS_REQUEST_FIELDS }

/** One page of a registration's requests, by id unless sorted. Throws NOT_FOUND, InvalidInputError for a bad `where`. */
export async function listAccessRequests(
  { db, maxTopics }: { readonly db: Database; readonly maxTopics: number },
  place: RegistrationPlace,
  query: AccessRequestQuery,
): Promise<{ readonly items: readonly AccessRequestView[]; readonly count: number }> {
  const { accountId, registrationId } = place
  const { filters } = await findRegistration(db, place)
  const condition = query.where === undefined ? sql`true` : compileWhere(query.where, resource)
  const from = sql`from access_requests a cross join lateral (select ${accessRequestDocument} as document offset 0) d
    where a.account_id = ${accountId} and a.registration_id = ${registrationId} and ${condition}`
  const field = query.sortFieldName ?? 'accessRequestId'
  const key = orderedBy(sql<string>`(d.document ->> ${sql.lit(field)})`, ACCESS_REQUEST_FIELDS[field])
  const direction = sql.raw(query.sortDirection)
  const order = sql`${key} ${direction}, a.id collate "C" ${direction}`
  const { ids, count } = await filtered(db, query, (trx) => readIds(trx, { id: sql`a.id`, from, order }, query))
  const requests = await readRequestsById(db, place, ids)
  const versions = await readVersionsOf(db, accountId, requests)
  const owner = { accountId, registrationId, filters, maxTopics }
  return {
    items: requests.map((request) => accessRequestView(owner, request, versions)),
    count,
  }
}
