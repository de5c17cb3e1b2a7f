import { KeymeshError } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import { IMPORT_KINDS, type ImportChange, type ImportKind, ownedId, versionedId } from './import-changes.ts'
import type { AccessRequestWrite, ImportRemovals, Touched, VersionKey } from './import-plan.ts'
import { type CatalogueState, isCounted } from './import-state.ts'

/** What is taken away, and what that touches. */
export interface Removed {
  readonly changes: readonly ImportChange[]
  readonly removals: ImportRemovals
  readonly touched: Touched
}

export const noRemovals: Removed = {
  changes: [],
  removals: {
    environments: [],
    eventMeshes: [],
    applicationDomains: [],
    brokers: [],
    eventApis: [],
    products: [],
    productVersions: [],
    deletedVersions: [],
    registrations: [],
    accessRequests: [],
    credentials: [],
  },
  touched: { registrations: [], productVersions: [], eventApis: [], brokers: [] },
}

/** What the store holds and the file does not. `requests` are those of the file as they are afterwards. */
export function removals(current: CatalogueState, file: PortalFile, requests: readonly AccessRequestWrite[]): Removed {
  const environments = unseen(current.environments, ids(file.environments))
  const eventMeshes = unseen(current.eventMeshes, ids(file.eventMeshes))
  const applicationDomains = unseen(current.applicationDomains, ids(file.applicationDomains))
  const brokers = unseen(current.brokers, ids(file.brokers))
  const inFile = new Set(file.eventApis.map(({ id, version }) => versionedId(id, version)))
  const eventApis = [...current.eventApis.values()]
    .filter(({ id, version }) => !inFile.has(versionedId(id, version)))
    .map(({ id, version }) => ({ id, version }))
  const versions = removedVersions(current, file, requests)
  const registrations = removedRegistrations(current, file)
  const changes = [
    ...registrations.changes,
    ...versions.changes,
    ...eventApis.map(({ id, version }) => removal('eventApi', versionedId(id, version))),
    ...brokers.map((id) => removal('broker', id)),
    ...applicationDomains.map((id) => removal('applicationDomain', id)),
    ...eventMeshes.map((id) => removal('eventMesh', id)),
    ...environments.map((id) => removal('environment', id)),
  ]
  return {
    changes,
    removals: {
      environments,
      eventMeshes,
      applicationDomains,
      brokers,
      eventApis,
      products: versions.products,
      productVersions: versions.removed,
      deletedVersions: versions.deleted,
      ...registrations.removals,
    },
    touched: { registrations: registrations.touched, productVersions: versions.deleted, eventApis: [], brokers: [] },
  }
}

const removal = (kind: ImportKind, id: string): ImportChange => ({ type: 'delete', kind, id, attributes: [] })
const ids = (items: readonly { readonly id: string }[]): ReadonlySet<string> => new Set(items.map(({ id }) => id))
const unseen = (current: ReadonlyMap<string, unknown>, seen: ReadonlySet<string>): readonly string[] =>
  [...current.keys()].filter((id) => !seen.has(id))

/** A version that an access request keeps stays as DELETED, and its product with it. */
function removedVersions(current: CatalogueState, file: PortalFile, requests: readonly AccessRequestWrite[]) {
  const named = new Set(requests.map((request) => versionedId(request.productId, request.productVersion)))
  const inFile = new Map(
    file.products.map((product) => [product.id as string, new Set(product.versions.map(({ version }) => version))]),
  )
  const changes: ImportChange[] = []
  const products: string[] = []
  const removed: VersionKey[] = []
  const deleted: VersionKey[] = []
  for (const product of current.products.values()) {
    const seen = inFile.get(product.id)
    const missing = [...product.versions.values()].filter(({ version }) => seen?.has(version) !== true)
    const stays = missing.filter(({ version }) => named.has(versionedId(product.id, version)))
    if (seen === undefined && stays.length === 0) {
      products.push(product.id)
      changes.push(removal('product', product.id))
      continue
    }
    for (const { version, state } of missing) {
      const key = { id: product.id, version }
      const isNamed = named.has(versionedId(product.id, version))
      if (isNamed && state === 'DELETED') continue
      const attributes = isNamed ? [{ name: 'state', before: state, after: 'DELETED' }] : []
      ;(isNamed ? deleted : removed).push(key)
      changes.push({ type: 'delete', kind: 'productVersion', id: versionedId(product.id, version), attributes })
    }
  }
  return { changes, products, removed, deleted }
}

function removedRegistrations(current: CatalogueState, file: PortalFile) {
  const given = new Map(file.registrations.map((registration) => [registration.id as string, registration]))
  const changes: ImportChange[] = []
  const registrations: string[] = []
  const accessRequests: { registrationId: string; id: string }[] = []
  const credentials: string[] = []
  const touched = new Set<string>()
  for (const stored of current.registrations.values()) {
    const registration = given.get(stored.id)
    if (registration === undefined) {
      registrations.push(stored.id)
      changes.push(removal('registration', stored.id))
      touched.add(stored.id)
      continue
    }
    const requests = ids(registration.accessRequests)
    for (const request of stored.accessRequests.values()) {
      if (requests.has(request.id)) continue
      accessRequests.push({ registrationId: stored.id, id: request.id })
      changes.push(removal('accessRequest', ownedId(stored.id, request.id)))
      if (isCounted(request)) touched.add(stored.id)
    }
    const names = new Set(registration.credentials.map(({ name }) => name))
    for (const credential of stored.credentials.values()) {
      if (names.has(credential.name) || credential.isRetired) continue
      credentials.push(credential.id)
      changes.push(removal('credential', ownedId(stored.id, credential.name)))
      touched.add(stored.id)
    }
  }
  return { changes, removals: { registrations, accessRequests, credentials }, touched: [...touched] }
}

const GUARDED_COUNT = 10
const GUARDED_SHARE = 0.3

/** What counts as suspiciously much, and what a person is told then. */
export interface PruneGuard {
  /** Of these, more than 10 that are more than 30% of the kind. */
  readonly guarded: readonly ImportKind[]
  /** Of these, all. */
  readonly neverAll: readonly ImportKind[]
  /** Of these, all of several, while none comes instead. */
  readonly neverNone: readonly ImportKind[]
  /** Anything at all. */
  readonly nothing: boolean
  readonly hint: (deletions: number) => string
}

const FILE_GUARD: PruneGuard = {
  guarded: IMPORT_KINDS,
  neverAll: ['registration', 'broker', 'product'],
  neverNone: [],
  nothing: false,
  hint: (deletions) => `Check the file and \`--dry-run\`; \`--yes-prune ${deletions}\` removes them.`,
}

/** Stops an import that removes suspiciously much. `confirmed` is the number of deletions that a person agreed to. */
export function guardPrune(
  current: CatalogueState,
  changes: readonly ImportChange[],
  confirmed: number | undefined,
  guard: PruneGuard = FILE_GUARD,
): void {
  const deletions = changes.filter(({ type }) => type === 'delete')
  if (deletions.length === 0 || confirmed === deletions.length) return
  const refused = [...countByKind(current)].flatMap(([kind, total]) => {
    const count = deletions.filter((change) => change.kind === kind).length
    const many = guard.guarded.includes(kind) && count > GUARDED_COUNT && count > total * GUARDED_SHARE
    const all = guard.neverAll.includes(kind) && count === total && total > 0
    const isReplaced = changes.some((change) => change.kind === kind && change.type === 'create')
    const none = guard.neverNone.includes(kind) && count === total && total > 1 && !isReplaced
    return many || all || none || (guard.nothing && count > 0) ? [`${count} of ${total} ${kind} objects`] : []
  })
  if (refused.length === 0 && confirmed === undefined) return
  const message =
    confirmed === undefined
      ? `The prune would remove ${refused.join(', ')}; nothing was written.`
      : `The prune would make ${deletions.length} deletions, not the ${confirmed} that were agreed to; nothing was written.`
  throw new KeymeshError({ code: 'MASS_DELETE_GUARD', fate: 'stop', message, hint: guard.hint(deletions.length) })
}

function countByKind(current: CatalogueState): ReadonlyMap<ImportKind, number> {
  const registrations = [...current.registrations.values()]
  const versions = [...current.products.values()].flatMap(({ versions }) => [...versions.values()])
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  return new Map<ImportKind, number>([
    ['environment', current.environments.size],
    ['eventMesh', current.eventMeshes.size],
    ['applicationDomain', current.applicationDomains.size],
    ['broker', current.brokers.size],
    ['eventApi', current.eventApis.size],
    ['product', current.products.size],
    ['productVersion', versions.length],
    ['registration', registrations.length],
    ['accessRequest', sum(registrations.map(({ accessRequests }) => accessRequests.size))],
    ['credential', sum(registrations.map(({ credentials }) => credentials.size))],
  ])
}
