import { type RawBuilder, sql } from 'kysely'
import type { AccountId } from '../domain/ids.ts'
import { filtered } from './bounded-filter.ts'
import type { Database } from './database.ts'
import { type RegistrationReader, type RegistrationView, readRegistrations } from './registration-view.ts'
import { compileWhere, orderedBy, type WhereFields, type WhereResource } from './where.ts'

export const REGISTRATION_SORT_FIELDS = [
  'registrationId',
  'name',
  'source',
  'sourceOwner',
  'applicationDomainId',
] as const
export type RegistrationSortField = (typeof REGISTRATION_SORT_FIELDS)[number]

const COLUMN_OF: Readonly<Record<RegistrationSortField, string>> = {
  registrationId: 'r.id',
  name: 'r.name',
  source: 'r.source',
  sourceOwner: 'r.source_owner',
  applicationDomainId: 'r.application_domain_id',
}

export interface RegistrationQuery {
  readonly where?: string | undefined
  readonly sortFieldName?: RegistrationSortField | undefined
  readonly sortDirection: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

/** One page, by id unless sorted, and how many there are. Throws InvalidInputError when `where` is no expression over it. */
export async function listRegistrations(
  reader: RegistrationReader,
  accountId: AccountId,
  query: RegistrationQuery,
): Promise<{ readonly items: readonly RegistrationView[]; readonly count: number }> {
  const from = fromRegistrations(accountId, query.where)
  const key = orderedBy(sql.ref(COLUMN_OF[query.sortFieldName ?? 'registrationId']), 'text')
  const direction = sql.raw(query.sortDirection)
  const order = sql`${key} ${direction} nulls last, r.id collate "C" ${direction}`
  const { ids, count } = await filtered(reader.db, query, (db) => readIds(db, { id: sql`r.id`, from, order }, query))
  return { items: await readRegistrations(reader, accountId, ids), count }
}

interface IdsSource {
  readonly id: RawBuilder<unknown>
  readonly from: RawBuilder<unknown>
  readonly order: RawBuilder<unknown>
}

/** The ids on one page, and how many there are on all. */
export async function readIds(
  db: Database,
  { id, from, order }: IdsSource,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ readonly ids: readonly string[]; readonly count: number }> {
  const { rows } = await sql<{ id: string }>`
    select ${id} as id ${from} order by ${order} limit ${limit} offset ${offset}`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count ${from}`.execute(db)
  return { ids: rows.map((row) => row.id), count: counted.rows[0]?.count ?? 0 }
}

/** The document is made only for a filter, once per registration (`offset 0` keeps it from being made per condition). */
function fromRegistrations(accountId: string, where: string | undefined): RawBuilder<unknown> {
  const mine = sql`from registrations r`
  const live = sql`r.account_id = ${accountId} and r.deleted_at is null`
  if (where === undefined) return sql`${mine} where ${live}`
  return sql`${mine} cross join lateral (select ${document} as document offset 0) d
    where ${live} and ${compileWhere(where, resource)}`
}

export const filtersDocument = (column: string) => sql`(
  select coalesce(jsonb_agg(jsonb_build_object('name', key, 'values', value)), '[]') from jsonb_each(${sql.ref(column)}))`

/** Of an access request `a`. */
export const accessRequestDocument = sql`jsonb_build_object(
  'accessRequestId', a.id, 'registrationId', a.registration_id, 'eventApiProductId', a.product_id,
  'eventApiProductVersion', a.product_version, 'planId', a.plan_id,
  'state', case when a.expired_at is null then a.state else 'REVOKED' end, 'filters', ${filtersDocument('a.filters')})`

const nameValues = { array: { name: 'text', value: 'text' } } as const
const filterFields = { array: { name: 'text', values: { array: 'text' } } } as const

export const ACCESS_REQUEST_FIELDS = {
  accessRequestId: 'text',
  registrationId: 'text',
  eventApiProductId: 'text',
  eventApiProductVersion: 'version',
  planId: 'text',
  state: 'text',
  filters: filterFields,
} as const satisfies WhereFields

const fields: WhereFields = {
  registrationId: 'text',
  source: 'text',
  name: 'text',
  applicationDomainId: 'text',
  sourceOwner: 'text',
  brokerType: 'text',
  attributes: nameValues,
  filters: filterFields,
  accessRequests: { array: ACCESS_REQUEST_FIELDS },
  apis: {
    array: {
      id: 'text',
      version: 'text',
      name: 'text',
      displayName: 'text',
      description: 'text',
      customAttributes: nameValues,
    },
  },
  credentials: {
    array: { name: 'text', issuedAt: 'number', expiresAt: 'number', secret: { object: { consumerKey: 'text' } } },
  },
  webhooks: { array: { name: 'text', uri: 'text', method: 'text', mode: 'text' } },
  gatewayMessagingServices: { array: { name: 'text' } },
}

const millisecondsOf = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::bigint`

/** Of requests that ask for something still, or that have it. */
const open = sql`a.account_id = r.account_id and a.registration_id = r.id and a.expired_at is null
  and a.state not in ('REJECTED', 'REVOKED')`

/** What can be asked for; no consumer secret, which nobody finds out by asking for parts of it. */
const document = sql`jsonb_build_object(
  'registrationId', r.id, 'source', r.source, 'name', r.name, 'applicationDomainId', r.application_domain_id,
  'sourceOwner', r.source_owner, 'brokerType', 'solace', 'attributes', r.attributes,
  'filters', ${filtersDocument('r.filters')},
  'accessRequests', (
    select coalesce(jsonb_agg(${accessRequestDocument}), '[]') from access_requests a
    where a.account_id = r.account_id and a.registration_id = r.id),
  'apis', (
    select coalesce(jsonb_agg(jsonb_build_object('id', e.id, 'version', e.version, 'name', e.name,
      'displayName', e.display_name, 'description', e.description, 'customAttributes', e.custom_attributes)), '[]')
    from event_apis e
    where e.account_id = r.account_id and exists (
      select from access_requests a
      join product_version_event_apis x
        on x.account_id = a.account_id and x.product_id = a.product_id and x.version = a.product_version
      where ${open} and x.event_api_id = e.id and x.event_api_version = e.version)),
  'credentials', (
    select coalesce(jsonb_agg(jsonb_build_object('name', c.name, 'issuedAt', ${millisecondsOf('c.issued_at')},
      'expiresAt', coalesce(${millisecondsOf('c.expires_at')}, -1),
      'secret', jsonb_build_object('consumerKey', c.consumer_key))), '[]')
    from credentials c
    where c.account_id = r.account_id and c.registration_id = r.id and c.retired_at is null),
  'webhooks', (
    select coalesce(jsonb_agg(w.definition || jsonb_build_object('name', w.name)), '[]') from webhooks w
    where w.account_id = r.account_id and w.registration_id = r.id),
  'gatewayMessagingServices', (
    select coalesce(jsonb_agg(jsonb_build_object('name', g.document -> 'name')), '[]') from gateway_documents g
    where g.account_id = r.account_id and exists (
      select from access_requests a
      join product_version_brokers b
        on b.account_id = a.account_id and b.product_id = a.product_id and b.version = a.product_version
      where ${open} and a.state <> 'PENDING_APPROVAL' and b.broker_id = g.id)))`

const resource: WhereResource = { name: 'an application registration', document: sql`d.document`, fields }
