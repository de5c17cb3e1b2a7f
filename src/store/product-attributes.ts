import { sql } from 'kysely'
import { productId } from '../domain/ids.ts'
import { notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import { refuseFollowed } from './followed-catalogues.ts'
import { productContent, revisionOf } from './import-content.ts'
import { recordChanger } from './import-write-products.ts'
import { refused } from './registrations-change.ts'
import type { NameValue } from './schema.ts'

// Attributes belong to the product, not to a version: they stay when a new version is released. Only those of a visible
// product can be read and changed here; all that is not visible is as if it were not there.

export const MAX_ATTRIBUTES = 256

export interface AttributePlace {
  readonly accountId: string
  readonly productId: string
  readonly name: string
}

export interface AttributeChange extends AttributePlace {
  /** A user id. */
  readonly changedBy: string
}

/** Called with what is stored, the product locked; throws to refuse the change. */
type Check = (stored: NameValue) => void

/** Throws NOT_FOUND. */
export async function findProductAttribute(db: Database, place: AttributePlace): Promise<NameValue> {
  const { rows } = await sql<{ attribute: NameValue | null }>`
    select (
      select attribute from jsonb_array_elements(document -> 'attributes') attribute
      where attribute ->> 'name' = ${place.name}) as attribute
    from product_documents
    where account_id = ${place.accountId} and product_id = ${place.productId} and listed`.execute(db)
  const [row] = rows
  if (row === undefined) throw notFound('Event API Product', place.productId)
  if (row.attribute === null) throw notFound('attribute', place.name)
  return row.attribute
}

/** Throws NOT_FOUND, CONFLICT when the catalogue is another service's, InvalidInputError when there is one of that name, or there are too many. */
export function createProductAttribute(db: Database, place: AttributeChange, value: string): Promise<NameValue> {
  const added = { name: place.name, value }
  return changeAttributes(db, place, (attributes) => {
    if (attributes.some(({ name }) => name === place.name)) {
      throw refused('name', 'is not unique: the Event API Product has an attribute of this name')
    }
    if (attributes.length >= MAX_ATTRIBUTES) {
      throw refused('request', `the Event API Product has ${MAX_ATTRIBUTES} attributes, which is the most it can have`)
    }
    return { attributes: [...attributes, added], result: added }
  })
}

/** Throws NOT_FOUND, or what `check` throws. */
export function updateProductAttribute(
  db: Database,
  place: AttributeChange,
  value: string | undefined,
  check: Check,
): Promise<NameValue> {
  return changeAttributes(db, place, (attributes) => {
    const stored = attributes.find(({ name }) => name === place.name)
    if (stored === undefined) throw notFound('attribute', place.name)
    check(stored)
    const result = { name: place.name, value: value ?? stored.value }
    return { attributes: attributes.map((each) => (each === stored ? result : each)), result }
  })
}

/** Throws NOT_FOUND, or what `check` throws. */
export async function deleteProductAttribute(db: Database, place: AttributeChange, check: Check): Promise<void> {
  await changeAttributes(db, place, (attributes) => {
    const stored = attributes.find(({ name }) => name === place.name)
    if (stored === undefined) throw notFound('attribute', place.name)
    check(stored)
    return { attributes: attributes.filter((each) => each !== stored), result: undefined }
  })
}

interface Change<Result> {
  readonly attributes: readonly NameValue[]
  readonly result: Result
}

/** No broker knows attributes, so no generation is raised. */
function changeAttributes<Result>(
  db: Database,
  place: AttributeChange,
  change: (attributes: readonly NameValue[]) => Change<Result>,
): Promise<Result> {
  const { accountId, productId: id } = place
  return db.transaction().execute(async (trx) => {
    const stored = await trx
      .selectFrom('products')
      .select(['name', 'description', 'application_domain_id', 'shared', 'attributes'])
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .where(sql<boolean>`exists (select from product_documents d
        where d.account_id = products.account_id and d.product_id = products.id and d.listed)`)
      .forUpdate()
      .executeTakeFirst()
    if (stored === undefined) throw notFound('Event API Product', id)
    await refuseFollowed(trx, accountId)
    const { attributes, result } = change(stored.attributes)
    const content = productContent({
      id: productId(id),
      name: stored.name,
      description: stored.description,
      applicationDomainId: stored.application_domain_id,
      shared: stored.shared,
      attributes,
    })
    await trx
      .updateTable('products')
      .set({ attributes: JSON.stringify(attributes), revision: revisionOf(content), updated_at: sql`now()` })
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .execute()
    await recordChanger(trx, accountId, { products: [{ id }], productVersions: [] }, place.changedBy)
    return result
  })
}
