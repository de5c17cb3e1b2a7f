import { sql } from 'kysely'
import { brokerId, eventApiId, productId, registrationId } from '../domain/ids.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { Database } from './database.ts'
import { versionedId } from './import-changes.ts'
import { managementAddress } from './import-content.ts'
import type {
  CatalogueState,
  StoredAccessRequest,
  StoredBroker,
  StoredCredential,
  StoredEventApi,
  StoredProduct,
  StoredProductVersion,
  StoredRegistration,
} from './import-state.ts'

/** One statement per table, whatever the size. Documents and ledger rows stay in the database. */
export async function readCatalogueState(db: Database, accountId: string): Promise<CatalogueState> {
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
    registrations: byId(await readRegistrations(db, accountId)),
    secretVersions: await readSecretVersions(db, accountId),
  }
}

const byId = <Row extends { readonly id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> =>
  new Map(rows.map((row) => [row.id, row]))

async function readBrokers(db: Database, accountId: string): Promise<readonly StoredBroker[]> {
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

async function readEventApis(db: Database, accountId: string): Promise<ReadonlyMap<string, StoredEventApi>> {
  const rows = await db
    .selectFrom('event_apis')
    .select(['id', 'version', 'name', 'display_name', 'description', 'application_domain_id', 'viewpoint'])
    .select(['channels', 'custom_attributes', 'revision'])
    .where('account_id', '=', accountId)
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

async function readProducts(db: Database, accountId: string): Promise<readonly StoredProduct[]> {
  const products = await db.selectFrom('products').selectAll().where('account_id', '=', accountId).execute()
  const versions = await readProductVersions(db, accountId)
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
): Promise<ReadonlyMap<string, readonly StoredProductVersion[]>> {
  const versions = await db.selectFrom('product_versions').selectAll().where('account_id', '=', accountId).execute()
  const eventApis = await db
    .selectFrom('product_version_event_apis')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('position')
    .execute()
  const brokers = await db
    .selectFrom('product_version_brokers')
    .selectAll()
    .where('account_id', '=', accountId)
    .execute()
  const plans = await db
    .selectFrom('plans')
    .selectAll()
    .where('account_id', '=', accountId)
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

async function readRegistrations(db: Database, accountId: string): Promise<readonly StoredRegistration[]> {
  const rows = await db
    .selectFrom('registrations')
    .select(['id', 'name', 'source', 'source_owner', 'application_domain_id', 'filters', 'attributes'])
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .execute()
  const requests = await readAccessRequests(db, accountId)
  const credentials = await readCredentials(db, accountId)
  return rows.map((row) => ({
    id: registrationId(row.id),
    name: row.name,
    source: row.source,
    sourceOwner: row.source_owner,
    applicationDomainId: row.application_domain_id,
    filters: row.filters,
    attributes: row.attributes,
    accessRequests: byId(requests.get(row.id) ?? []),
    // In ascending order of preference, so that the last of a name stays.
    credentials: new Map((credentials.get(row.id) ?? []).map((credential) => [credential.name, credential])),
  }))
}

async function readAccessRequests(
  db: Database,
  accountId: string,
): Promise<ReadonlyMap<string, readonly (StoredAccessRequest & { readonly registrationId: string })[]>> {
  const rows = await db.selectFrom('access_requests').selectAll().where('account_id', '=', accountId).execute()
  const stored = rows.map((row) => ({
    registrationId: row.registration_id,
    id: row.id,
    productId: row.product_id,
    productVersion: row.product_version,
    planId: row.plan_id,
    filters: row.filters,
    state: row.state,
    approvedAtMs: timeMs(row.approved_at),
    expiresAtMs: timeMs(row.expires_at),
    expiredAtMs: timeMs(row.expired_at),
  }))
  return grouped(stored, (request) => request.registrationId)
}

/** Live ones and those that expired, which a file may still hold; not what was replaced or removed. */
async function readCredentials(
  db: Database,
  accountId: string,
): Promise<ReadonlyMap<string, readonly (StoredCredential & { readonly registrationId: string })[]>> {
  const rows = await db
    .selectFrom('credentials')
    .selectAll()
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('retired_at', 'is', null), eb('retired_at', '>=', eb.ref('expires_at'))]))
    .orderBy(sql`retired_at nulls last`)
    .execute()
  const stored = rows.map((row) => ({
    registrationId: row.registration_id,
    id: row.id,
    name: row.name,
    consumerKey: row.consumer_key,
    sealedSecret: row.secret,
    secretVersion: row.secret_version,
    expiresAtMs: timeMs(row.expires_at),
    isRetired: row.retired_at !== null,
  }))
  return grouped(stored, (credential) => credential.registrationId)
}

async function readSecretVersions(db: Database, accountId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('credentials')
    .select((eb) => ['consumer_key', eb.fn.max('secret_version').as('version')])
    .where('account_id', '=', accountId)
    .groupBy('consumer_key')
    .execute()
  return new Map(rows.map((row) => [row.consumer_key, row.version]))
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

const timeMs = (date: Date | null): number | null => date?.getTime() ?? null

function grouped<Row>(rows: readonly Row[], keyOf: (row: Row) => string): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}
