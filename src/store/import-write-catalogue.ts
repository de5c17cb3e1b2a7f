import { sql } from 'kysely'
import type {
  PortalApplicationDomain,
  PortalEnvironment,
  PortalEventApi,
  PortalEventMesh,
} from '../domain/portal-file.ts'
import type { Database } from './database.ts'
import { brokerContent, documentRevision, managementAddress, revisionOf } from './import-content.ts'
import type { BrokerWrite } from './import-plan.ts'
import { inChunks } from './in-chunks.ts'
import { brokerPasswordPlace, type Sealer } from './sealer-port.ts'

// Every function takes a transaction, writes whole rows and leaves all others alone.

export function writeEnvironments(
  db: Database,
  accountId: string,
  environments: readonly PortalEnvironment[],
): Promise<void> {
  return inChunks(environments, (chunk) =>
    db
      .insertInto('environments')
      .values(chunk.map(({ id, name }) => ({ account_id: accountId, id, name })))
      .onConflict((on) => on.columns(['account_id', 'id']).doUpdateSet((eb) => ({ name: eb.ref('excluded.name') })))
      .execute(),
  )
}

export function writeEventMeshes(db: Database, accountId: string, meshes: readonly PortalEventMesh[]): Promise<void> {
  return inChunks(meshes, (chunk) =>
    db
      .insertInto('event_meshes')
      .values(
        chunk.map(({ id, name, environmentId }) => ({
          account_id: accountId,
          id,
          name,
          environment_id: environmentId,
        })),
      )
      .onConflict((on) =>
        on.columns(['account_id', 'id']).doUpdateSet((eb) => ({
          name: eb.ref('excluded.name'),
          environment_id: eb.ref('excluded.environment_id'),
        })),
      )
      .execute(),
  )
}

export function writeApplicationDomains(
  db: Database,
  accountId: string,
  domains: readonly PortalApplicationDomain[],
): Promise<void> {
  return inChunks(domains, (chunk) =>
    db
      .insertInto('application_domains')
      .values(chunk.map(({ id, name, description }) => ({ account_id: accountId, id, name, description })))
      .onConflict((on) =>
        on.columns(['account_id', 'id']).doUpdateSet((eb) => ({
          name: eb.ref('excluded.name'),
          description: eb.ref('excluded.description'),
        })),
      )
      .execute(),
  )
}

/** The message VPNs that change hands within one import are given up before any is taken. */
export async function releaseAddresses(db: Database, accountId: string, brokers: readonly string[]): Promise<void> {
  if (brokers.length === 0) return
  await db
    .updateTable('brokers')
    .set({ management_address: null })
    .where('account_id', '=', accountId)
    .where('id', 'in', brokers)
    .execute()
}

export async function writeBrokers(
  db: Database,
  sealer: Sealer,
  accountId: string,
  writes: readonly BrokerWrite[],
): Promise<void> {
  const rows = []
  for (const { broker, password, passwordVersion } of writes) {
    const place = brokerPasswordPlace(accountId, broker.id, passwordVersion)
    rows.push({
      account_id: accountId,
      id: broker.id,
      event_mesh_id: broker.eventMeshId,
      name: broker.name,
      kind: broker.kind,
      management: jsonOrNull(broker.management),
      management_address: managementAddress(broker.management),
      management_password: password === null ? null : await sealer.seal(password, place),
      management_password_version: passwordVersion,
      messaging: jsonOrNull(broker.messaging),
      policy: JSON.stringify(broker.policy),
      revision: revisionOf(brokerContent(broker)),
    })
  }
  await inChunks(rows, (chunk) =>
    db
      .insertInto('brokers')
      .values(chunk)
      .onConflict((on) =>
        on.columns(['account_id', 'id']).doUpdateSet((eb) => ({
          event_mesh_id: eb.ref('excluded.event_mesh_id'),
          name: eb.ref('excluded.name'),
          kind: eb.ref('excluded.kind'),
          management: eb.ref('excluded.management'),
          management_address: eb.ref('excluded.management_address'),
          // Settings and password come and go together.
          management_password: sql`case when excluded.management is not null
            then coalesce(excluded.management_password, brokers.management_password) end`,
          management_password_version: eb.ref('excluded.management_password_version'),
          messaging: eb.ref('excluded.messaging'),
          policy: eb.ref('excluded.policy'),
          revision: eb.ref('excluded.revision'),
          updated_at: sql`now()`,
        })),
      )
      .execute(),
  )
}

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

/** Documents are large: a few per statement. */
const EVENT_APIS_PER_STATEMENT = 20

export function writeEventApis(db: Database, accountId: string, eventApis: readonly PortalEventApi[]): Promise<void> {
  const write = (chunk: readonly PortalEventApi[]) =>
    db
      .insertInto('event_apis')
      .values(chunk.map((eventApi) => eventApiRow(accountId, eventApi)))
      .onConflict((on) =>
        on.columns(['account_id', 'id', 'version']).doUpdateSet((eb) => ({
          name: eb.ref('excluded.name'),
          display_name: eb.ref('excluded.display_name'),
          description: eb.ref('excluded.description'),
          application_domain_id: eb.ref('excluded.application_domain_id'),
          viewpoint: eb.ref('excluded.viewpoint'),
          document: eb.ref('excluded.document'),
          channels: eb.ref('excluded.channels'),
          custom_attributes: eb.ref('excluded.custom_attributes'),
          revision: eb.ref('excluded.revision'),
          updated_at: sql`now()`,
        })),
      )
      .execute()
  return inChunks(eventApis, write, EVENT_APIS_PER_STATEMENT)
}

const eventApiRow = (accountId: string, eventApi: PortalEventApi) => ({
  account_id: accountId,
  id: eventApi.id,
  version: eventApi.version,
  name: eventApi.name,
  display_name: eventApi.displayName,
  description: eventApi.description,
  application_domain_id: eventApi.applicationDomainId,
  viewpoint: eventApi.viewpoint,
  document: JSON.stringify({
    asyncApiVersion: eventApi.document.asyncApiVersion,
    title: eventApi.document.title,
    json: eventApi.document.json,
  }),
  channels: JSON.stringify(eventApi.channels),
  custom_attributes: JSON.stringify(eventApi.customAttributes),
  revision: documentRevision(eventApi),
})
