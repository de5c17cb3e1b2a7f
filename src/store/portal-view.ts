import { sql } from 'kysely'
import type { PortalApplicationDomain, PortalEnvironment, PortalEventMesh } from '../domain/portal-file.ts'
import type { Database } from './database.ts'
import { versionedId } from './import-changes.ts'
import { readBrokers, readEventApis, readProducts } from './import-read.ts'
import type { StoredBroker, StoredEventApi, StoredProduct } from './import-state.ts'
import type { StoredDocument } from './schema.ts'

// What the portal shows of one account, in the order of ids.

export interface ViewPage {
  readonly limit: number
  readonly offset: number
}

export interface Listed<Item> {
  readonly items: readonly Item[]
  readonly count: number
}

/** One object by its id, or a page of all. */
export type Selection = { readonly id: string } | ViewPage

const whereId = (selection: Selection) => ('id' in selection ? sql`and id = ${selection.id}` : sql``)
const pageOf = (selection: Selection) =>
  'id' in selection ? sql`` : sql`limit ${selection.limit} offset ${selection.offset}`

async function listed<Item>(
  db: Database,
  accountId: string,
  { table, columns }: { readonly table: string; readonly columns: string },
  selection: Selection,
): Promise<Listed<Item>> {
  const { rows } = await sql<Item>`
    select ${sql.raw(columns)} from ${sql.table(table)} where account_id = ${accountId} ${whereId(selection)}
    order by id ${pageOf(selection)}`.execute(db)
  return { items: rows, count: await countOf(db, accountId, table) }
}

async function countOf(db: Database, accountId: string, table: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where account_id = ${accountId}`.execute(db)
  return rows[0]?.count ?? 0
}

export const viewEnvironments = (db: Database, accountId: string, selection: Selection) =>
  listed<PortalEnvironment>(db, accountId, { table: 'environments', columns: 'id, name' }, selection)

export const viewEventMeshes = (db: Database, accountId: string, selection: Selection) =>
  listed<PortalEventMesh>(
    db,
    accountId,
    { table: 'event_meshes', columns: 'id, name, environment_id as "environmentId"' },
    selection,
  )

export const viewApplicationDomains = (db: Database, accountId: string, selection: Selection) =>
  listed<PortalApplicationDomain>(
    db,
    accountId,
    { table: 'application_domains', columns: 'id, name, description' },
    selection,
  )

const idsOf = (db: Database, accountId: string, table: string, selection: Selection) =>
  listed<{ readonly id: string }>(db, accountId, { table, columns: 'id' }, selection)

export async function viewBrokers(
  db: Database,
  accountId: string,
  selection: Selection,
): Promise<Listed<StoredBroker>> {
  const { items, count } = await idsOf(db, accountId, 'brokers', selection)
  const ids = items.map(({ id }) => id)
  return { items: inOrder(ids, await readBrokers(db, accountId, ids)), count }
}

export async function viewProducts(
  db: Database,
  accountId: string,
  selection: Selection,
): Promise<Listed<StoredProduct>> {
  const { items, count } = await idsOf(db, accountId, 'products', selection)
  const ids = items.map(({ id }) => id)
  return { items: inOrder(ids, await readProducts(db, accountId, ids)), count }
}

/** Each version is an item of its own; without the documents. */
export async function viewEventApis(db: Database, accountId: string, page: ViewPage): Promise<Listed<StoredEventApi>> {
  const { rows } = await sql<{ id: string; version: string }>`
    select id, version from event_apis where account_id = ${accountId}
    order by id, version limit ${page.limit} offset ${page.offset}`.execute(db)
  const found = await readEventApis(
    db,
    accountId,
    rows.map(({ id }) => id),
  )
  const items = rows.flatMap(({ id, version }) => found.get(versionedId(id, version)) ?? [])
  return { items, count: await countOf(db, accountId, 'event_apis') }
}

export async function viewEventApi(
  db: Database,
  accountId: string,
  id: string,
  version: string,
): Promise<StoredEventApi | null> {
  return (await readEventApis(db, accountId, [id])).get(versionedId(id, version)) ?? null
}

export async function readEventApiDocument(
  db: Database,
  accountId: string,
  id: string,
  version: string,
): Promise<StoredDocument | null> {
  const row = await db
    .selectFrom('event_apis')
    .select('document')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('version', '=', version)
    .executeTakeFirst()
  return row?.document ?? null
}

function inOrder<Item extends { readonly id: string }>(
  ids: readonly string[],
  items: readonly Item[],
): readonly Item[] {
  const found = new Map(items.map((item) => [item.id as string, item]))
  return ids.flatMap((id) => found.get(id) ?? [])
}
