import { sql } from 'kysely'
import { compareVersions } from '../domain/semantic-version.ts'
import { explainVisibility, type VisibilityExplanation } from '../domain/visibility.ts'
import type { Database } from './database.ts'
import { type NamedBrokerExplanation, namedExplanation, readBrokerFacts } from './explain-product.ts'
import { readEventApis, readProducts } from './import-read.ts'
import type { StoredEventApi, StoredProduct, StoredProductVersion } from './import-state.ts'

// What the console shows of the catalogue: all of it, visible or not, with the reason.

export interface CatalogueVersion extends StoredProductVersion, VisibilityExplanation {
  /** The associated brokers and whether each is usable. */
  readonly brokerUses: readonly NamedBrokerExplanation[]
}

export interface CatalogueProduct extends Omit<StoredProduct, 'versions'> {
  /** Newest first. */
  readonly versions: readonly CatalogueVersion[]
}

export interface CatalogueFilter {
  readonly accountId: string
  /** Part of the id or name. */
  readonly search?: string
  /** Whether a version of it is visible. */
  readonly visible?: boolean
}

export interface CataloguePage {
  /** The last id of the page before. */
  readonly after: string | null
  readonly limit: number
}

const byteOrdered = sql.raw('collate "C"')
const listed = sql`exists (select from product_documents d
  where d.account_id = p.account_id and d.product_id = p.id and d.listed)`

const matches = ({ accountId, search, visible }: CatalogueFilter) => sql`p.account_id = ${accountId}
  and ${contains(search, sql`p.id`, sql`p.name`)}
  and (${visible ?? null}::boolean is null or ${listed} = ${visible ?? null})`

/** In the order of their ids. */
export async function listCatalogueProducts(
  db: Database,
  filter: CatalogueFilter,
  { after, limit }: CataloguePage,
): Promise<readonly CatalogueProduct[]> {
  const { rows } = await sql<{ id: string }>`
    select p.id from products p
    where ${matches(filter)} and (${after}::text is null or p.id ${byteOrdered} > ${after})
    order by p.id ${byteOrdered} limit ${limit}`.execute(db)
  return readCatalogueProducts(
    db,
    filter.accountId,
    rows.map(({ id }) => id),
  )
}

export interface CatalogueCounts {
  readonly visible: number
  readonly hidden: number
}

/** Of all products, whatever the filter says of visibility. */
export async function countCatalogueProducts(db: Database, filter: CatalogueFilter): Promise<CatalogueCounts> {
  const { visible: _visible, ...others } = filter
  const { rows } = await sql<CatalogueCounts>`
    select count(*) filter (where shown) as visible, count(*) filter (where not shown) as hidden
    from (select ${listed} as shown from products p where ${matches(others)}) products`.execute(db)
  return rows[0] ?? { visible: 0, hidden: 0 }
}

/** Null when the account has no such product. */
export async function findCatalogueProduct(
  db: Database,
  accountId: string,
  id: string,
): Promise<CatalogueProduct | null> {
  const [product] = await readCatalogueProducts(db, accountId, [id])
  return product ?? null
}

async function readCatalogueProducts(
  db: Database,
  accountId: string,
  ids: readonly string[],
): Promise<readonly CatalogueProduct[]> {
  if (ids.length === 0) return []
  const products = new Map((await readProducts(db, accountId, ids)).map((product) => [String(product.id), product]))
  const versions = [...products.values()].flatMap((product) => [...product.versions.values()])
  const facts = await readBrokerFacts(db, accountId, [...new Set(versions.flatMap(({ brokers }) => brokers))])
  return ids.flatMap((id) => {
    const product = products.get(id)
    if (product === undefined) return []
    const explained = [...product.versions.values()].map((version): CatalogueVersion => {
      const brokers = version.brokers.toSorted().flatMap((each) => facts.get(each) ?? [])
      const planNames = version.plans.map(({ name }) => name)
      return {
        ...version,
        ...explainVisibility({ ...version, shared: product.shared, planNames, brokers }),
        brokerUses: brokers.map(namedExplanation),
      }
    })
    return [{ ...product, versions: explained.toSorted((a, b) => compareVersions(b.version, a.version)) }]
  })
}

export interface ProductUse {
  readonly version: string
  readonly state: string
  readonly count: number
}

/** How many access requests there are for each version of a product, by state. */
export async function countProductUses(
  db: Database,
  accountId: string,
  productId: string,
): Promise<readonly ProductUse[]> {
  const { rows } = await sql<ProductUse>`
    select product_version as version, state, count(*) as count from access_requests
    where account_id = ${accountId} and product_id = ${productId}
    group by 1, 2 order by 1, 2`.execute(db)
  return rows
}

export interface ListedEventApi {
  readonly id: string
  readonly version: string
  readonly name: string
  readonly displayName: string
  readonly channels: number
  /** Product versions that hold it. */
  readonly products: number
}

/** Each version is an item of its own, in the order of ids. */
export async function listCatalogueEventApis(
  db: Database,
  { accountId, search }: Pick<CatalogueFilter, 'accountId' | 'search'>,
  { after, limit }: { readonly after: Pick<ListedEventApi, 'id' | 'version'> | null; readonly limit: number },
): Promise<readonly ListedEventApi[]> {
  const { rows } = await sql<ListedEventApi>`
    select a.id, a.version, a.name, a.display_name as "displayName", jsonb_array_length(a.channels) as channels,
      (select count(*) from product_version_event_apis x
        where x.account_id = a.account_id and x.event_api_id = a.id and x.event_api_version = a.version) as products
    from event_apis a
    where a.account_id = ${accountId} and ${contains(search, sql`a.id`, sql`a.name`)}
      and (${after?.id ?? null}::text is null
        or (a.id ${byteOrdered}, a.version ${byteOrdered}) > (${after?.id ?? null}, ${after?.version ?? null}))
    order by a.id ${byteOrdered}, a.version ${byteOrdered} limit ${limit}`.execute(db)
  return rows
}

export interface CatalogueEventApi extends StoredEventApi {
  readonly products: readonly { readonly id: string; readonly version: string; readonly state: string }[]
}

/** Every version of an Event API, newest first, with the product versions that hold it; empty when there is none. */
export async function findCatalogueEventApi(
  db: Database,
  accountId: string,
  id: string,
): Promise<readonly CatalogueEventApi[]> {
  const versions = [...(await readEventApis(db, accountId, [id])).values()]
  if (versions.length === 0) return []
  const { rows } = await sql<{ eventApiVersion: string; id: string; version: string; state: string }>`
    select x.event_api_version as "eventApiVersion", v.product_id as id, v.version, v.state
    from product_version_event_apis x
    join product_versions v on v.account_id = x.account_id and v.product_id = x.product_id and v.version = x.version
    where x.account_id = ${accountId} and x.event_api_id = ${id}
    order by v.product_id ${byteOrdered}, v.version ${byteOrdered}`.execute(db)
  return versions
    .map((api) => ({
      ...api,
      products: rows
        .filter(({ eventApiVersion }) => eventApiVersion === api.version)
        .map(({ eventApiVersion: _version, ...product }) => product),
    }))
    .toSorted((a, b) => compareVersions(b.version, a.version))
}

/** True without a search text; its characters stand for themselves. */
function contains(search: string | undefined, ...columns: readonly ReturnType<typeof sql>[]) {
  if (search === undefined || search === '') return sql<boolean>`true`
  const pattern = `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
  return sql<boolean>`(${sql.join(
    columns.map((column) => sql`${column} ilike ${pattern}`),
    sql` or `,
  )})`
}
