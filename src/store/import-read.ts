import { brokerId, eventApiId, productId } from '../domain/ids.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { Database } from './database.ts'
import { versionedId } from './import-changes.ts'
import { managementAddress } from './import-content.ts'
import { type CatalogueScope, readRegistrations, readSecretVersions } from './import-read-registrations.ts'
import { byId, grouped, isOneOf } from './import-rows.ts'
import type {
  CatalogueState,
  StoredBroker,
  StoredEventApi,
  StoredProduct,
  StoredProductVersion,
} from './import-state.ts'

/** One statement per table, whatever the size. Documents and ledger rows stay in the database. */
export async function readCatalogueState(
  db: Database,
  accountId: string,
  scope?: CatalogueScope,
): Promise<CatalogueState> {
  const environments = await db
    .selectFrom('environments')
    .select(['id', 'name'])
    .where('account_id', '=', accountId)
    .execute()
  const eventMeshes = await db
    .selectFrom('event_meshes')
    .select(['id', 'name', 'environment_id as environmentId'])
    .where('account_id', '=', accountId)
    .execute()
  const applicationDomains = await db
    .selectFrom('application_domains')
    .select(['id', 'name', 'description'])
    .where('account_id', '=', accountId)
    .execute()
  return {
    accountId,
    environments: byId(environments),
    eventMeshes: byId(eventMeshes),
    applicationDomains: byId(applicationDomains),
    brokers: byId(await readBrokers(db, accountId)),
    eventApis: await readEventApis(db, accountId),
    products: byId(await readProducts(db, accountId)),
    registrations: byId(await readRegistrations(db, accountId, scope)),
    secretVersions: scope === undefined ? await readSecretVersions(db, accountId) : new Map(),
  }
}

/** Those of these ids, or all. */
export async function readBrokers(
  db: Database,
  accountId: string,
  ids?: readonly string[],
): Promise<readonly StoredBroker[]> {
  const rows = await db
    .selectFrom('brokers')
    .selectAll()
    .select((eb) =>
      eb
        .selectFrom('ledger')
        .select((ledger) => ledger.fn.countAll<number>().as('count'))
        .whereRef('ledger.account_id', '=', 'brokers.account_id')
        .whereRef('ledger.broker_id', '=', 'brokers.id')
        .where('ledger.registration_id', 'is not', null)
        .as('owned_objects'),
    )
    .where('account_id', '=', accountId)
    .where(isOneOf('id', ids))
    .execute()
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    kind: row.kind,
    eventMeshId: row.event_mesh_id,
    management: row.management,
    messaging: row.messaging,
    policy: row.policy,
    managementAddress: row.management_address,
    sealedPassword: row.management_password,
    passwordVersion: row.management_password_version,
    ownedObjects: row.owned_objects ?? 0,
  }))
}

/** By `versionedId`: every version of these ids, or all. */
export async function readEventApis(
  db: Database,
  accountId: string,
  ids?: readonly string[],
): Promise<ReadonlyMap<string, StoredEventApi>> {
  const rows = await db
    .selectFrom('event_apis')
    .select(['id', 'version', 'name', 'display_name', 'description', 'application_domain_id', 'viewpoint'])
    .select(['channels', 'custom_attributes', 'revision'])
    .where('account_id', '=', accountId)
    .where(isOneOf('id', ids))
    .execute()
  return new Map(
    rows.map((row) => [
      versionedId(row.id, row.version),
      {
        id: eventApiId(row.id),
        version: row.version,
        name: row.name,
        displayName: row.display_name,
        description: row.description,
        applicationDomainId: row.application_domain_id,
        viewpoint: row.viewpoint,
        channels: row.channels,
        customAttributes: row.custom_attributes,
        documentRevision: row.revision,
      },
    ]),
  )
}

/** Those of these ids, or all. */
export async function readProducts(
  db: Database,
  accountId: string,
  ids?: readonly string[],
): Promise<readonly StoredProduct[]> {
  const products = await db
    .selectFrom('products')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(isOneOf('id', ids))
    .execute()
  const versions = await readProductVersions(db, accountId, ids)
  return products.map((row) => ({
    id: productId(row.id),
    name: row.name,
    description: row.description,
    applicationDomainId: row.application_domain_id,
    shared: row.shared,
    attributes: row.attributes,
    versions: new Map((versions.get(row.id) ?? []).map((version) => [version.version, version])),
  }))
}

async function readProductVersions(
  db: Database,
  accountId: string,
  ids: readonly string[] | undefined,
): Promise<ReadonlyMap<string, readonly StoredProductVersion[]>> {
  const ofProducts = isOneOf('product_id', ids)
  const versions = await db
    .selectFrom('product_versions')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(ofProducts)
    .execute()
  const eventApis = await db
    .selectFrom('product_version_event_apis')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(ofProducts)
    .orderBy('position')
    .execute()
  const brokers = await db
    .selectFrom('product_version_brokers')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(ofProducts)
    .execute()
  const plans = await db
    .selectFrom('plans')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(ofProducts)
    .orderBy('position')
    .execute()
  const keyOf = (row: { product_id: string; version: string }): string => versionedId(row.product_id, row.version)
  const eventApisOf = grouped(eventApis, keyOf)
  const brokersOf = grouped(brokers, keyOf)
  const plansOf = grouped(plans, keyOf)
  const stored = versions.map((row) => ({
    productId: row.product_id,
    version: row.version,
    displayName: row.display_name,
    description: row.description,
    state: row.state,
    approvalType: row.approval_type,
    public: row.publicly_available,
    eventApis: (eventApisOf.get(keyOf(row)) ?? []).map((each) => ({
      id: eventApiId(each.event_api_id),
      version: each.event_api_version,
    })),
    plans: (plansOf.get(keyOf(row)) ?? []).map((plan) => ({
      id: plan.id,
      name: plan.name,
      classOfServicePolicy: plan.class_of_service_policy,
    })),
    brokers: (brokersOf.get(keyOf(row)) ?? []).map((each) => brokerId(each.broker_id)),
    customAttributes: row.custom_attributes,
  }))
  return grouped(stored, (version) => version.productId)
}

/** Addresses in the file that another account has already. */
export async function readTakenAddresses(
  db: Database,
  accountId: string,
  file: Pick<PortalFile, 'brokers'>,
): Promise<ReadonlySet<string>> {
  const addresses = file.brokers.map(({ management }) => managementAddress(management)).filter((each) => each !== null)
  if (addresses.length === 0) return new Set()
  const rows = await db
    .selectFrom('brokers')
    .select('management_address')
    .where('account_id', '<>', accountId)
    .where('management_address', 'in', addresses)
    .execute()
  return new Set(rows.flatMap((row) => row.management_address ?? []))
}
