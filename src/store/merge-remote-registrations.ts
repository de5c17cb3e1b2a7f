import { accessRequestId, consumerKey, productId } from '../domain/ids.ts'
import type {
  PortalAccessRequest,
  PortalCredential,
  PortalProduct,
  PortalProductVersion,
  PortalRegistration,
} from '../domain/portal-file.ts'
import { versionedId } from './import-changes.ts'
import type {
  CatalogueState,
  StoredAccessRequest,
  StoredCredential,
  StoredProductVersion,
  StoredRegistration,
} from './import-state.ts'
import { credentialName, type Merging, registrationName, requestName } from './merge-remote-names.ts'

export function mergeRegistrations(
  merging: Merging,
  given: readonly PortalRegistration[],
  products: readonly PortalProduct[],
): readonly PortalRegistration[] {
  const { current, unread, warn } = merging
  const holders = keyHolders(merging, given)
  const findVersion = versionsOf(current, products)
  const registrations: PortalRegistration[] = []
  const seen = new Set<string>()
  for (const registration of given) {
    // One part of it could not even be named: all of it stays.
    if (unread.has(registrationName(registration.id))) continue
    seen.add(registration.id)
    const stored = current.registrations.get(registration.id)
    const credentials = registration.credentials.filter(({ consumerKey: key }) => {
      const isHolder = key === null || holders.get(key) === registration.id
      if (!isHolder) warn(`${credentialName(registration.id, key)} is another registration's too; it was left out.`)
      return isHolder
    })
    registrations.push({
      ...registration,
      accessRequests: mergeRequests(merging, registration, findVersion),
      credentials: withKeptCredentials(merging, registration.id, stored, credentials),
    })
  }
  for (const stored of current.registrations.values()) {
    if (!seen.has(stored.id) && unread.has(registrationName(stored.id))) registrations.push(keptRegistration(stored))
  }
  return registrations
}

/** A client username is one client's: who has it here keeps it while the remote agrees, else who comes first gets it. */
function keyHolders({ current, unread }: Merging, given: readonly PortalRegistration[]): ReadonlyMap<string, string> {
  const claims = new Map<string, Set<string>>()
  for (const { id, credentials } of given) {
    for (const { consumerKey: key } of credentials) {
      if (key !== null) claims.set(key, (claims.get(key) ?? new Set()).add(id))
    }
  }
  const holders = new Map<string, string>()
  for (const { id, credentials } of current.registrations.values()) {
    for (const { consumerKey: key, isRetired } of credentials.values()) {
      const isKept = unread.has(registrationName(id)) || unread.has(credentialName(id, key))
      if (!isRetired && (isKept || claims.get(key)?.has(id) === true)) holders.set(key, id)
    }
  }
  for (const [key, [first]] of claims) if (!holders.has(key) && first !== undefined) holders.set(key, first)
  return holders
}

type FindVersion = (product: string, version: string) => PortalProductVersion | StoredProductVersion | undefined

function versionsOf(current: CatalogueState, products: readonly PortalProduct[]): FindVersion {
  const merged = new Map(
    products.flatMap(({ id, versions }) => versions.map((version) => [versionedId(id, version.version), version])),
  )
  return (id, version) => merged.get(versionedId(id, version)) ?? current.products.get(id)?.versions.get(version)
}

function mergeRequests(
  { current, unread, warn }: Merging,
  { id: registration, accessRequests }: PortalRegistration,
  findVersion: FindVersion,
): readonly PortalAccessRequest[] {
  const stored = current.registrations.get(registration)?.accessRequests ?? new Map<string, StoredAccessRequest>()
  const requests = new Map<string, PortalAccessRequest>()
  for (const request of accessRequests) {
    const known = stored.get(request.id)
    const problem = requestProblem(request, known, findVersion)
    if (problem === null) {
      requests.set(request.id, request)
      continue
    }
    const isOver = request.state === 'REJECTED' || request.state === 'REVOKED'
    if (known !== undefined)
      requests.set(request.id, isOver ? { ...keptRequest(known), state: request.state } : keptRequest(known))
    if (!isOver)
      warn(`${requestName(registration, request.id)} ${problem}; ${known ? 'it stays as stored' : 'it was left out'}.`)
  }
  for (const known of stored.values()) {
    if (!requests.has(known.id) && unread.has(requestName(registration, known.id))) {
      requests.set(known.id, keptRequest(known))
    }
  }
  return [...requests.values()]
}

/** Why it cannot be stored as it is. */
function requestProblem(
  { productId: product, productVersion, planId, state }: PortalAccessRequest,
  known: StoredAccessRequest | undefined,
  findVersion: FindVersion,
): string | null {
  const version = findVersion(product, productVersion)
  const name = `version ${productVersion} of product ${product}`
  if (version === undefined) return `is for ${name}, which cannot be read`
  if (!version.plans.some(({ id }) => id === planId)) return `is on the plan ${planId} of ${name}, which cannot be read`
  if (known !== undefined || state === 'REJECTED' || state === 'REVOKED') return null
  return version.state === 'RELEASED' || version.state === 'DEPRECATED'
    ? null
    : `is for ${name}, which is ${version.state}`
}

const keptRequest = (stored: StoredAccessRequest): PortalAccessRequest => ({
  id: accessRequestId(stored.id),
  productId: productId(stored.productId),
  productVersion: stored.productVersion,
  productVersionIsDefault: false,
  planId: stored.planId,
  filters: stored.filters,
  state: null,
  expiresAtMs: stored.expiresAtMs,
})

/** Its stored secret stays. */
const keptCredential = ({ name, consumerKey: key, expiresAtMs }: StoredCredential): PortalCredential => ({
  name,
  consumerKey: consumerKey(key),
  consumerSecret: null,
  expiresAtMs,
})

/** Those that are kept have their names; a credential that comes with one of these gets another. */
function withKeptCredentials(
  { unread }: Merging,
  registration: string,
  stored: StoredRegistration | undefined,
  given: readonly PortalCredential[],
): readonly PortalCredential[] {
  const keys = new Set<string | null>(given.map(({ consumerKey: key }) => key))
  const kept = [...(stored?.credentials.values() ?? [])]
    .filter(({ isRetired }) => !isRetired)
    .filter(({ consumerKey: key }) => !keys.has(key) && unread.has(credentialName(registration, key)))
    .map(keptCredential)
  const names = new Set(kept.map(({ name }) => name))
  return [
    ...kept,
    ...given.map((credential) =>
      names.has(credential.name)
        ? { ...credential, name: `${credential.name} (${credential.consumerKey})` }
        : credential,
    ),
  ]
}

const keptRegistration = ({ accessRequests, credentials, ...rest }: StoredRegistration): PortalRegistration => ({
  ...rest,
  accessRequests: [...accessRequests.values()].map(keptRequest),
  credentials: [...credentials.values()].map(keptCredential),
})
