import { sql } from 'kysely'
import { filtered } from './bounded-filter.ts'
import type { Database } from './database.ts'
import {
  type DocumentPage,
  type DocumentText,
  documentOrder,
  type PageOrder,
  readDocumentPage,
} from './document-page.ts'
import { GATEWAY_FIELDS, GATEWAY_SORT_FIELDS, type GatewaySortField } from './product-fields.ts'
import { compileWhere, type WhereResource } from './where.ts'

const gateways: WhereResource = { name: 'a gateway', document: sql`document`, fields: GATEWAY_FIELDS }

/** Brokers that products can use. Throws InvalidInputError when `where` is no expression over gateways. */
export function listGateways(
  db: Database,
  accountId: string,
  query: PageOrder<GatewaySortField> & { readonly where?: string | undefined },
): Promise<DocumentPage> {
  const condition = query.where === undefined ? sql`` : sql` and ${compileWhere(query.where, gateways)}`
  const source = sql`gateway_documents where account_id = ${accountId}${condition}`
  const order = documentOrder(gateways.document, GATEWAY_SORT_FIELDS, query)
  const direction = query.sortFieldName === undefined ? sql` ${sql.raw(query.sortDirection)}` : sql``
  const byId = sql`id collate "C"${direction}`
  const read = (from: Database) =>
    readDocumentPage(from, { from: source }, order === null ? byId : sql`${order}, ${byId}`, query)
  return filtered(db, query, read)
}

/** Null when the account has no such broker, or products cannot use it. */
export async function findGateway(db: Database, accountId: string, id: string): Promise<DocumentText | null> {
  const { rows } = await sql<DocumentText>`
    select document::text as document, md5(document::text) as revision
    from gateway_documents where account_id = ${accountId} and id = ${id}`.execute(db)
  return rows[0] ?? null
}
