import { sql } from 'kysely'
import { registrationId } from '../domain/ids.ts'
import type { Database } from './database.ts'
import { byId, grouped, isOneOf } from './import-rows.ts'
import type { StoredAccessRequest, StoredCredential, StoredRegistration } from './import-state.ts'

export interface CatalogueScope {
  /** Of registrations, only those with an access request for one of these products, without their credentials. */
  readonly requestsFor: readonly string[]
}

export async function readRegistrations(
  db: Database,
  accountId: string,
  scope: CatalogueScope | undefined,
): Promise<readonly StoredRegistration[]> {
  if (scope?.requestsFor.length === 0) return []
  const rows = await db
    .selectFrom('registrations')
    .select(['id', 'name', 'source', 'source_owner', 'application_domain_id', 'filters', 'attributes'])
    .select('declared')
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .where(
      scope === undefined
        ? sql<boolean>`true`
        : sql<boolean>`id in (select registration_id from access_requests
            where account_id = ${accountId} and product_id = any(${scope.requestsFor}))`,
    )
    .execute()
  const requests = await readAccessRequests(db, accountId, scope)
  const credentials = scope === undefined ? await readCredentials(db, accountId) : new Map<string, never>()
  return rows.map((row) => ({
    id: registrationId(row.id),
    name: row.name,
    source: row.source,
    sourceOwner: row.source_owner,
    applicationDomainId: row.application_domain_id,
    filters: row.filters,
    attributes: row.attributes,
    isDeclared: row.declared,
    accessRequests: byId(requests.get(row.id) ?? []),
    // In ascending order of preference, so that the last of a name stays.
    credentials: new Map((credentials.get(row.id) ?? []).map((credential) => [credential.name, credential])),
  }))
}

async function readAccessRequests(
  db: Database,
  accountId: string,
  scope: CatalogueScope | undefined,
): Promise<ReadonlyMap<string, readonly (StoredAccessRequest & { readonly registrationId: string })[]>> {
  const rows = await db
    .selectFrom('access_requests')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(isOneOf('product_id', scope?.requestsFor))
    .execute()
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

export async function readSecretVersions(db: Database, accountId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('credentials')
    .select((eb) => ['consumer_key', eb.fn.max('secret_version').as('version')])
    .where('account_id', '=', accountId)
    .groupBy('consumer_key')
    .execute()
  return new Map(rows.map((row) => [row.consumer_key, row.version]))
}

const timeMs = (date: Date | null): number | null => date?.getTime() ?? null
