import { sql } from 'kysely'
import type { PortalProduct } from '../domain/portal-file.ts'
import type { Database } from './database.ts'
import { productContent, productVersionContent, revisionOf } from './import-content.ts'
import type { ProductVersionWrite, VersionKey } from './import-plan.ts'
import { inChunks } from './in-chunks.ts'

export function writeProducts(
  db: Database,
  accountId: string,
  products: readonly Omit<PortalProduct, 'versions'>[],
): Promise<void> {
  return inChunks(products, (chunk) =>
    db
      .insertInto('products')
      .values(
        chunk.map((product) => ({
          account_id: accountId,
          id: product.id,
          name: product.name,
          description: product.description,
          application_domain_id: product.applicationDomainId,
          shared: product.shared,
          attributes: JSON.stringify(product.attributes),
          revision: revisionOf(productContent(product)),
        })),
      )
      .onConflict((on) =>
        on.columns(['account_id', 'id']).doUpdateSet((eb) => ({
          name: eb.ref('excluded.name'),
          description: eb.ref('excluded.description'),
          application_domain_id: eb.ref('excluded.application_domain_id'),
          shared: eb.ref('excluded.shared'),
          attributes: eb.ref('excluded.attributes'),
          revision: eb.ref('excluded.revision'),
          updated_at: sql`now()`,
        })),
      )
      .execute(),
  )
}

/** Versions with their plans, Event APIs and brokers, which are replaced as a whole. */
export async function writeProductVersions(
  db: Database,
  accountId: string,
  writes: readonly ProductVersionWrite[],
): Promise<void> {
  await inChunks(writes, (chunk) =>
    db
      .insertInto('product_versions')
      .values(chunk.map((write) => versionRow(accountId, write)))
      .onConflict((on) =>
        on.columns(['account_id', 'product_id', 'version']).doUpdateSet((eb) => ({
          display_name: eb.ref('excluded.display_name'),
          description: eb.ref('excluded.description'),
          state: eb.ref('excluded.state'),
          approval_type: eb.ref('excluded.approval_type'),
          publicly_available: eb.ref('excluded.publicly_available'),
          custom_attributes: eb.ref('excluded.custom_attributes'),
          revision: eb.ref('excluded.revision'),
          updated_at: sql`now()`,
        })),
      )
      .execute(),
  )
  const keys = writes.map(({ productId, version }) => ({ id: productId, version: version.version }))
  await deleteAssociations(db, accountId, keys)
  await deletePlans(db, accountId, keys)
  const children = writes.map((write) => childRows(accountId, write))
  await inChunks(
    children.flatMap(({ eventApis }) => eventApis),
    (chunk) => db.insertInto('product_version_event_apis').values(chunk).execute(),
  )
  await inChunks(
    children.flatMap(({ brokers }) => brokers),
    (chunk) => db.insertInto('product_version_brokers').values(chunk).execute(),
  )
  await inChunks(
    children.flatMap(({ plans }) => plans),
    (chunk) => db.insertInto('plans').values(chunk).execute(),
  )
}

const versionRow = (accountId: string, { productId, version }: ProductVersionWrite) => ({
  account_id: accountId,
  product_id: productId,
  version: version.version,
  display_name: version.displayName,
  description: version.description,
  state: version.state,
  approval_type: version.approvalType,
  publicly_available: version.public,
  custom_attributes: JSON.stringify(version.customAttributes),
  revision: revisionOf(productVersionContent(version)),
})

function childRows(accountId: string, { productId, version }: ProductVersionWrite) {
  const key = { account_id: accountId, product_id: productId, version: version.version }
  return {
    eventApis: version.eventApis.map((eventApi, position) => ({
      ...key,
      event_api_id: eventApi.id,
      event_api_version: eventApi.version,
      position,
    })),
    brokers: version.brokers.map((broker) => ({ ...key, broker_id: broker })),
    plans: version.plans.map((plan, position) => ({
      ...key,
      id: plan.id,
      name: plan.name,
      class_of_service_policy: JSON.stringify(plan.classOfServicePolicy),
      position,
    })),
  }
}

/** Who changes things when it is no user: a portal file, or the catalogue of another service. */
export const NO_USER = 'keymesh'

interface Changed {
  readonly products: readonly { readonly id: string }[]
  readonly productVersions: readonly ProductVersionWrite[]
}

/** What changed of a product shows on each of its versions; a version that is new was made by the same. */
export async function recordChanger(
  db: Database,
  accountId: string,
  { products, productVersions }: Changed,
  changedBy: string,
): Promise<void> {
  const keys = productVersions.map(({ productId, version }) => ({ id: productId, version: version.version }))
  if (keys.length > 0) {
    await sql`
      update product_versions set changed_by = ${changedBy},
        created_by = case when created_at = updated_at then ${changedBy} else created_by end
      where account_id = ${accountId} and ${isOneOf(keys)}
        and (changed_by <> ${changedBy} or created_at = updated_at and created_by <> ${changedBy})`.execute(db)
  }
  if (products.length === 0) return
  await sql`
    update product_versions set changed_by = ${changedBy}
    where account_id = ${accountId} and product_id = any(${products.map(({ id }) => id)})
      and changed_by <> ${changedBy}`.execute(db)
}

/** The rows of these versions, for a `where` on any table that has both columns. */
const isOneOf = (keys: readonly VersionKey[]) =>
  sql<boolean>`(product_id, version) in (select k.id, k.version
    from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k(id text, version text))`

export async function deleteAssociations(db: Database, accountId: string, keys: readonly VersionKey[]): Promise<void> {
  if (keys.length === 0) return
  for (const table of ['product_version_event_apis', 'product_version_brokers'] as const) {
    await db.deleteFrom(table).where('account_id', '=', accountId).where(isOneOf(keys)).execute()
  }
}

async function deletePlans(db: Database, accountId: string, keys: readonly VersionKey[]): Promise<void> {
  if (keys.length === 0) return
  await db.deleteFrom('plans').where('account_id', '=', accountId).where(isOneOf(keys)).execute()
}

/** Kept for the access requests that name them, without what they were associated with. */
export async function markVersionsDeleted(db: Database, accountId: string, keys: readonly VersionKey[]): Promise<void> {
  if (keys.length === 0) return
  await deleteAssociations(db, accountId, keys)
  await db
    .updateTable('product_versions')
    .set({ state: 'DELETED', updated_at: sql`now()` })
    .where('account_id', '=', accountId)
    .where(isOneOf(keys))
    .execute()
}

export async function deleteProductVersions(
  db: Database,
  accountId: string,
  keys: readonly VersionKey[],
): Promise<void> {
  if (keys.length === 0) return
  await db.deleteFrom('product_versions').where('account_id', '=', accountId).where(isOneOf(keys)).execute()
}
