import { type RawBuilder, sql } from 'kysely'
import type { Database } from './database.ts'
import { orderedBy, type WhereFields } from './where.ts'

/** One page of documents, as JSON text that goes out as it is. */
export interface DocumentPage {
  /** On all pages. */
  readonly count: number
  /** JSON texts with commas between them: the inside of an array. */
  readonly items: string
}

/** Which page of a list, in which order. */
export interface PageOrder<Field extends string> {
  readonly sortFieldName?: Field | undefined
  readonly sortDirection: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

/** One document as JSON text, with a digest of it. */
export interface DocumentText {
  readonly document: string
  readonly revision: string
}

/** `order by` of a field of a document; missing values last, whichever the direction. */
export function documentOrder<Field extends string>(
  document: RawBuilder<unknown>,
  fields: Readonly<Record<Field, WhereFields[string]>>,
  { sortFieldName, sortDirection }: Pick<PageOrder<Field>, 'sortFieldName' | 'sortDirection'>,
): RawBuilder<unknown> | null {
  if (sortFieldName === undefined) return null
  const type = fields[sortFieldName]
  if (typeof type !== 'string') throw new TypeError(`${sortFieldName} cannot be sorted by`)
  const value = orderedBy(sql<string>`(${document} ->> ${sql.lit(sortFieldName)})`, type)
  return sql`${value} ${sql.raw(sortDirection)} nulls last`
}

/** What a page is read from. */
export interface DocumentSource {
  /** `with … ` before the query, when the source has any. */
  readonly before?: RawBuilder<unknown>
  /** What follows `select document from`. */
  readonly from: RawBuilder<unknown>
  /** What follows `select count(*) from`, where that is cheaper. */
  readonly counted?: RawBuilder<unknown>
}

/** Counts and reads in one query. `order` ends with what is unique, so that pages neither overlap nor miss a document. */
export async function readDocumentPage(
  db: Database,
  { before = sql``, from, counted = from }: DocumentSource,
  order: RawBuilder<unknown>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<DocumentPage> {
  const { rows } = await sql<{ count: number; items: string | null }>`
    ${before} select (select count(*) from ${counted}) as count,
      (select string_agg(document::text, ',')
        from (select document from ${from} order by ${order} limit ${limit} offset ${offset}) page) as items`.execute(
    db,
  )
  const [row] = rows
  return { count: row?.count ?? 0, items: row?.items ?? '' }
}
