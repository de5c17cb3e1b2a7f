import { sql } from 'kysely'
import type { ClassOfServicePolicy, Viewpoint } from '../domain/catalogue.ts'
import type { JsonObject } from '../domain/portal-file.ts'
import { withinPatience } from './bounded-filter.ts'
import type { Database } from './database.ts'
import {
  type DocumentPage,
  type DocumentText,
  documentOrder,
  type PageOrder,
  readDocumentPage,
} from './document-page.ts'
import { PRODUCT_FIELD_ALIASES, PRODUCT_FIELDS, PRODUCT_SORT_FIELDS, type ProductSortField } from './product-fields.ts'
import { compileWhere, orderedBy, type WhereResource } from './where.ts'

// What the API shows of the catalogue. A list and a detail show the newest visible version of a product, which is
// RELEASED; the history shows every version that was published and still has what made it so: RELEASED, DEPRECATED or
// RETIRED, shared, public, with a plan and a usable broker.

const products: WhereResource = {
  name: 'an Event API Product',
  document: sql`document`,
  fields: PRODUCT_FIELDS,
  aliases: PRODUCT_FIELD_ALIASES,
}

type ProductQuery = PageOrder<ProductSortField> & { readonly where?: string | undefined }

/** Visible products. Throws InvalidInputError when `where` is no expression over products, or a too slow one. */
export function listProducts(db: Database, accountId: string, query: ProductQuery): Promise<DocumentPage> {
  const { where, sortFieldName, sortDirection } = query
  const direction = sql.raw(sortDirection)
  const byId = sql`product_id collate "C"`
  const order =
    sortFieldName === undefined
      ? sql`${byId} ${direction}`
      : sql`${sortFieldName === 'version' ? sql`version_key ${direction}` : documentOrder(products.document, PRODUCT_SORT_FIELDS, query)}, ${byId}`
  const listed = sql`product_documents where account_id = ${accountId} and listed`
  if (where === undefined) return readDocumentPage(db, { from: listed }, order, query)
  // Each document is unpacked once, not for every condition, and each is judged once, not for the count and the page.
  const before = sql`with matching as materialized (
    select product_id, version
    from (select product_id, version, document || '{}' as document from ${listed} offset 0) unpacked
    where ${compileWhere(where, products)})`
  const from = sql`product_documents join matching using (product_id, version) where account_id = ${accountId}`
  return withinPatience(db, (trx) => readDocumentPage(trx, { before, from, counted: sql`matching` }, order, query))
}

/** Null when the account has no such product, or it is not visible. */
export async function findProduct(db: Database, accountId: string, productId: string): Promise<DocumentText | null> {
  const { rows } = await sql<DocumentText>`
    select document::text as document, revision from product_documents
    where account_id = ${accountId} and product_id = ${productId} and listed`.execute(db)
  return rows[0] ?? null
}

export const VERSION_SORT_FIELDS = { version: 'version', displayName: 'text', state: 'text' } as const

/** Summaries of the published versions, newest first unless sorted; null when there is none. */
export async function listProductVersions(
  db: Database,
  accountId: string,
  productId: string,
  query: PageOrder<keyof typeof VERSION_SORT_FIELDS>,
): Promise<DocumentPage | null> {
  const from = sql`(
    select version, version_key, jsonb_build_object(
      'version', version, 'displayName', document -> 'displayName', 'state', document -> 'state') as document
    from product_documents where account_id = ${accountId} and product_id = ${productId}) versions`
  const order = documentOrder(sql`document`, VERSION_SORT_FIELDS, query)
  const newestFirst = sql`version_key desc, version collate "C" desc`
  const page = await readDocumentPage(db, { from }, order === null ? newestFirst : sql`${order}, ${newestFirst}`, query)
  return page.count === 0 ? null : page
}

export async function findProductVersion(
  db: Database,
  accountId: string,
  productId: string,
  version: string,
): Promise<DocumentText | null> {
  const { rows } = await sql<DocumentText>`
    select document::text as document, revision from product_documents
    where account_id = ${accountId} and product_id = ${productId} and version = ${version}`.execute(db)
  return rows[0] ?? null
}

type ProductPart = 'plans' | 'attributes'

/** The plans or attributes of a visible product, in its own order unless sorted; null when it is not visible. */
export async function listProductPart<Field extends 'id' | 'name' | 'value'>(
  db: Database,
  accountId: string,
  productId: string,
  part: ProductPart,
  { sortFieldName, sortDirection, limit, offset }: PageOrder<Field>,
): Promise<DocumentPage | null> {
  const key = sortFieldName === undefined ? sql`position` : orderedBy(sql`(item ->> ${sql.lit(sortFieldName)})`, 'text')
  const { rows } = await sql<{ count: number; items: string | null }>`
    select jsonb_array_length(document -> ${sql.lit(part)}) as count, (
      select string_agg(item::text, ',') from (
        select item from jsonb_array_elements(document -> ${sql.lit(part)}) with ordinality as items(item, position)
        order by ${key} ${sql.raw(sortDirection)}, position limit ${limit} offset ${offset}) page) as items
    from product_documents
    where account_id = ${accountId} and product_id = ${productId} and listed`.execute(db)
  const [row] = rows
  return row === undefined ? null : { count: row.count, items: row.items ?? '' }
}

/** One plan as JSON text; null when the product is not visible or has no such plan. */
export async function findPlan(
  db: Database,
  accountId: string,
  productId: string,
  planId: string,
): Promise<DocumentText | null> {
  const { rows } = await sql<DocumentText>`
    select plan::text as document, md5(plan::text) as revision
    from product_documents, jsonb_array_elements(document -> 'plans') plan
    where account_id = ${accountId} and product_id = ${productId} and listed and plan ->> 'id' = ${planId}`.execute(db)
  return rows[0] ?? null
}

/** All Event APIs of a plan: those of its product; null when there is no such plan. */
export async function listPlanEventApis(
  db: Database,
  accountId: string,
  productId: string,
  planId: string,
): Promise<DocumentPage | null> {
  const { rows } = await sql<{ count: number; items: string | null }>`
    select jsonb_array_length(document -> 'apis') as count, (
      select string_agg(item::text, ',' order by position)
      from jsonb_array_elements(document -> 'apis') with ordinality as items(item, position)) as items
    from product_documents
    where account_id = ${accountId} and product_id = ${productId} and listed
      and exists (select from jsonb_array_elements(document -> 'plans') plan where plan ->> 'id' = ${planId})`.execute(
    db,
  )
  const [row] = rows
  return row === undefined ? null : { count: row.count, items: row.items ?? '' }
}

/** What an AsyncAPI document of an Event API is made of. */
export interface EventApiSource {
  /** As imported, self-contained. */
  readonly document: JsonObject
  readonly viewpoint: Viewpoint
  readonly productName: string
  readonly productVersion: string
  readonly applicationDomainId: string | null
  readonly policy: ClassOfServicePolicy
  readonly gateways: readonly GatewaySource[]
}

/** A usable broker of the product, as `gateway_documents` shows it. */
export interface GatewaySource {
  readonly id: string
  readonly name: string
  readonly environmentName: string
  readonly eventMeshName: string
  readonly messagingServiceConnections: readonly {
    readonly url: string
    readonly protocol: string
    readonly protocolVersion: string
    readonly bindings: { readonly msgVpn: string }
  }[]
}

export interface EventApiPlace {
  readonly accountId: string
  readonly productId: string
  readonly planId: string
  readonly eventApiId: string
}

/**
 * The source of an Event API's document on a plan of a product version, visible or not; of the version that is shown
 * when none is named. Null when one of them is not there. An Event API that stands in a product in several versions is
 * taken in the first of them.
 */
export async function findEventApiSource(
  db: Database,
  { accountId, productId, planId, eventApiId }: EventApiPlace,
  version: string | null = null,
): Promise<EventApiSource | null> {
  const { rows } = await sql<EventApiSource>`
    select a.document -> 'json' as document, a.viewpoint, p.name as "productName", v.version as "productVersion",
      p.application_domain_id as "applicationDomainId", l.class_of_service_policy as policy, (
        select coalesce(jsonb_agg(g.document order by g.id collate "C"), '[]')
        from product_version_brokers b
        join gateway_documents g on g.account_id = b.account_id and g.id = b.broker_id
        where b.account_id = v.account_id and b.product_id = v.product_id and b.version = v.version) as gateways
    from product_versions v
    join products p on p.account_id = v.account_id and p.id = v.product_id
    join plans l on l.account_id = v.account_id and l.product_id = v.product_id and l.version = v.version and l.id = ${planId}
    join product_version_event_apis x
      on x.account_id = v.account_id and x.product_id = v.product_id and x.version = v.version and x.event_api_id = ${eventApiId}
    join event_apis a on a.account_id = x.account_id and a.id = x.event_api_id and a.version = x.event_api_version
    where v.account_id = ${accountId} and v.product_id = ${productId}
      and v.version = coalesce(${version}::text, (
        select version from product_documents d
        where d.account_id = ${accountId} and d.product_id = ${productId} and d.listed))
    order by x.position limit 1`.execute(db)
  return rows[0] ?? null
}
