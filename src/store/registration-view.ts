import type { AccountId } from '../domain/ids.ts'
import { notFound } from '../domain/refusals.ts'
import {
  type AccessRequestView,
  accessRequestView,
  grantedRequest,
  readRequests,
  readVersionsOf,
  type StoredRequest,
} from './access-requests-view.ts'
import { type CredentialReader, type CredentialView, readCredentials } from './credentials-view.ts'
import type { Database } from './database.ts'
import { type FilterView, filterViews } from './filters-view.ts'
import { type GatewayView, gatewaysOf, type Owner } from './registration-view-permissions.ts'
import type { EventApiView, VersionViews } from './registration-view-versions.ts'
import { type RegistrationPlace, registrationRevision, type StoredRegistration } from './registrations-change.ts'
import type { NameValue } from './schema.ts'
import { readWebhooks, type WebhookView } from './webhooks-view.ts'

/** A registration with all that hangs on it, secrets open. */
export interface RegistrationView {
  readonly registrationId: string
  readonly source: string
  readonly name: string
  readonly sourceOwner: string | null
  readonly applicationDomainId: string | null
  readonly attributes: readonly NameValue[]
  readonly filters: readonly FilterView[]
  readonly accessRequests: readonly AccessRequestView[]
  readonly apis: readonly EventApiView[]
  readonly credentials: readonly CredentialView[]
  readonly webhooks: readonly WebhookView[]
  readonly gatewayMessagingServices: readonly GatewayView[]
  readonly revision: string
}

export interface RegistrationReader extends CredentialReader {
  /** Bound of the topics that are shown of one gateway and direction. */
  readonly maxTopics: number
}

/** Throws NOT_FOUND. */
export async function readRegistration(
  reader: RegistrationReader,
  place: RegistrationPlace,
): Promise<RegistrationView> {
  const [view] = await readRegistrations(reader, place.accountId, [place.registrationId])
  if (view === undefined) throw notFound('application registration', place.registrationId)
  return view
}

/** In the order of the ids, those that are there; a fixed number of statements. */
export async function readRegistrations(
  reader: RegistrationReader,
  accountId: AccountId,
  ids: readonly string[],
): Promise<readonly RegistrationView[]> {
  const { db } = reader
  const rows = await readRows(db, accountId, ids)
  const requests = await readRequests(db, accountId, ids)
  const versions = await readVersionsOf(db, accountId, requests)
  const credentials = await readCredentials(reader, accountId, ids)
  const webhooks = await readWebhooks(reader, accountId, ids)
  return ids.flatMap((id) => {
    const row = rows.get(id)
    if (row === undefined) return []
    const owner = { accountId, registrationId: id, filters: row.filters, maxTopics: reader.maxTopics }
    const ofRegistration = requests.filter(({ registrationId }) => registrationId === id)
    return [
      {
        ...viewOf(owner, row, ofRegistration, versions),
        credentials: credentials.get(id) ?? [],
        webhooks: webhooks.get(id) ?? [],
      },
    ]
  })
}

async function readRows(
  db: Database,
  accountId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredRegistration>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('registrations')
    .select(['id', 'name', 'source', 'source_owner as sourceOwner', 'application_domain_id as applicationDomainId'])
    .select(['filters', 'attributes'])
    .where('account_id', '=', accountId)
    .where('id', 'in', ids)
    .where('deleted_at', 'is', null)
    .execute()
  return new Map(rows.map(({ id, ...row }) => [id, row]))
}

function viewOf(
  owner: Owner,
  row: StoredRegistration,
  requests: readonly StoredRequest[],
  versions: VersionViews,
): Omit<RegistrationView, 'credentials' | 'webhooks'> {
  const granted = requests.flatMap((request) => grantedRequest(request, versions) ?? [])
  return {
    registrationId: owner.registrationId,
    source: row.source,
    name: row.name,
    sourceOwner: row.sourceOwner,
    applicationDomainId: row.applicationDomainId,
    attributes: row.attributes,
    filters: filterViews(row.filters),
    accessRequests: requests.map((request) => accessRequestView(owner, request, versions)),
    apis: eventApisOf(requests, versions),
    gatewayMessagingServices: gatewaysOf(owner, granted),
    revision: registrationRevision(row),
  }
}

/** Event APIs of what was asked for and not refused or withdrawn, each version once. */
export function eventApisOf(requests: readonly StoredRequest[], versions: VersionViews): readonly EventApiView[] {
  const open = requests.filter(
    ({ state, expiredAtMs }) => state !== 'REJECTED' && state !== 'REVOKED' && expiredAtMs === null,
  )
  const found = open.flatMap(
    ({ productId, productVersion }) => versions({ productId, version: productVersion })?.eventApis ?? [],
  )
  return [...new Set(found)]
}
