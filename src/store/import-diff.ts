import type { PortalBroker, PortalEventApi, PortalFile, PortalProduct } from '../domain/portal-file.ts'
import { type AttributeChange, type ImportChange, type ImportKind, versionedId } from './import-changes.ts'
import {
  applicationDomainContent,
  attributeChanges,
  brokerContent,
  type Content,
  documentRevision,
  environmentContent,
  eventApiContent,
  eventMeshContent,
  managementAddress,
  newAttributes,
  productContent,
  productVersionContent,
} from './import-content.ts'
import { diffRegistrations } from './import-diff-registrations.ts'
import type {
  AccessRequestWrite,
  BrokerWrite,
  ImportPlan,
  ImportWrites,
  ProductVersionWrite,
  Touched,
} from './import-plan.ts'
import { importProblems } from './import-problems.ts'
import { noRemovals, type Removed, removals } from './import-prune.ts'
import type { CatalogueState, StoredBroker, StoredEventApi } from './import-state.ts'

export interface DiffOptions {
  /** Removes what the file does not hold. */
  readonly prune: boolean
  /** Removes this instead. */
  readonly removed?: Removed
  /** What a prune may remove; everything when absent. */
  readonly removable?: CatalogueState
  /**
   * The file is how things are, not what a person wants of them: states of access requests and attributes are taken as
   * they stand, and what is asked for need not be usable here.
   */
  readonly authoritative?: boolean
  /** Attributes that a product does not name go: it was read before it was changed. */
  readonly wholeAttributes?: boolean
  readonly nowMs: number
  /** Broker and credential ids whose stored secret is not the one in the file. */
  readonly differingSecrets: DifferingSecrets
  /** Normalised management addresses that other accounts have. */
  readonly takenAddresses: ReadonlySet<string>
}

export interface DifferingSecrets {
  readonly brokers: ReadonlySet<string>
  readonly credentials: ReadonlySet<string>
}

/** Pure: what an import of the file changes in the store, and what speaks against it. */
export function diffPortalFile(current: CatalogueState, file: PortalFile, options: DiffOptions): ImportPlan {
  const environments = diffSection('environment', file.environments, current.environments, {
    idOf: ({ id }) => id,
    given: environmentContent,
    stored: environmentContent,
  })
  const eventMeshes = diffSection('eventMesh', file.eventMeshes, current.eventMeshes, {
    idOf: ({ id }) => id,
    given: eventMeshContent,
    stored: eventMeshContent,
  })
  const applicationDomains = diffSection('applicationDomain', file.applicationDomains, current.applicationDomains, {
    idOf: ({ id }) => id,
    given: applicationDomainContent,
    stored: applicationDomainContent,
  })
  const brokers = diffSection('broker', file.brokers, current.brokers, {
    idOf: ({ id }) => id,
    given: brokerContent,
    stored: brokerContent,
    extra: (given, stored) => passwordChange(given, stored, options.differingSecrets),
  })
  const eventApis = diffSection('eventApi', file.eventApis, current.eventApis, {
    idOf: ({ id, version }) => versionedId(id, version),
    given: eventApiContent,
    stored: eventApiContent,
    extra: documentChange,
  })
  const givenProducts =
    options.authoritative === true || options.wholeAttributes === true
      ? file.products
      : file.products.map((product) => withKeptAttributes(product, current.products.get(product.id)))
  const products = diffSection('product', givenProducts, current.products, {
    idOf: ({ id }) => id,
    given: productContent,
    stored: productContent,
  })
  const productVersions = diffProductVersions(current, file)
  const registrations = diffRegistrations(current, file, options)
  const removable = options.removable ?? current
  const requests = [...registrations.resolved, ...keptRequests(current, file, removable)]
  const removed = options.removed ?? (options.prune ? removals(removable, file, requests) : noRemovals)

  const writes: ImportWrites = {
    environments: environments.writes,
    eventMeshes: eventMeshes.writes,
    applicationDomains: applicationDomains.writes,
    brokers: brokers.writes.map((broker) => brokerWrite(broker, current.brokers.get(broker.id), options)),
    eventApis: eventApis.writes,
    products: products.writes,
    productVersions: productVersions.writes,
    ...registrations.writes,
  }
  const changes = [
    ...environments.changes,
    ...eventMeshes.changes,
    ...applicationDomains.changes,
    ...brokers.changes,
    ...eventApis.changes,
    ...products.changes,
    ...productVersions.changes,
    ...registrations.changes,
  ]
  return {
    changes: [...changes, ...removed.changes],
    problems: importProblems({ current, file, options, writes, removed: removed.removals, registrations }),
    writes,
    removals: {
      ...removed.removals,
      credentials: [...registrations.replacedCredentials, ...removed.removals.credentials],
    },
    touched: touchedBy(changes, removed.touched, writes, registrations.touched),
  }
}

/** Of registrations that are not in the file and stay. */
function keptRequests(
  current: CatalogueState,
  file: PortalFile,
  removable: CatalogueState,
): readonly AccessRequestWrite[] {
  const given = new Set<string>(file.registrations.map(({ id }) => id))
  return [...current.registrations.values()]
    .filter(({ id }) => !given.has(id) && !removable.registrations.has(id))
    .flatMap(({ id: registrationId, accessRequests }) =>
      [...accessRequests.values()].map((request) => ({ ...request, registrationId })),
    )
}

/** What integrations added by the API stays; a file sets the attributes that it names and removes none. */
function withKeptAttributes(
  given: PortalProduct,
  stored: Pick<PortalProduct, 'attributes'> | undefined,
): PortalProduct {
  const kept = (stored?.attributes ?? []).map(
    (attribute) => given.attributes.find(({ name }) => name === attribute.name) ?? attribute,
  )
  const added = given.attributes.filter(({ name }) => !kept.some((attribute) => attribute.name === name))
  return { ...given, attributes: [...kept, ...added] }
}

export interface SectionDiff<Given> {
  readonly writes: readonly Given[]
  readonly changes: readonly ImportChange[]
}

interface SectionRules<Given, Stored> {
  readonly idOf: (given: Given) => string
  readonly given: (given: Given) => Content
  readonly stored: (stored: Stored) => Content
  /** Changes that no content shows: secrets and documents. */
  readonly extra?: (given: Given, stored: Stored | undefined) => readonly AttributeChange[]
}

export function diffSection<Given, Stored>(
  kind: ImportKind,
  given: readonly Given[],
  current: ReadonlyMap<string, Stored>,
  rules: SectionRules<Given, Stored>,
): SectionDiff<Given> {
  const writes: Given[] = []
  const changes: ImportChange[] = []
  for (const item of given) {
    const id = rules.idOf(item)
    const stored = current.get(id)
    const extra = rules.extra?.(item, stored) ?? []
    if (stored === undefined) {
      changes.push({ type: 'create', kind, id, attributes: [...newAttributes(rules.given(item)), ...extra] })
    } else {
      const attributes = [...attributeChanges(rules.stored(stored), rules.given(item)), ...extra]
      if (attributes.length === 0) continue
      changes.push({ type: 'update', kind, id, attributes })
    }
    writes.push(item)
  }
  return { writes, changes }
}

const MANAGEMENT_PASSWORD: readonly AttributeChange[] = [{ name: 'managementPassword' }]

function passwordChange(
  given: PortalBroker,
  stored: StoredBroker | undefined,
  differing: DifferingSecrets,
): readonly AttributeChange[] {
  return isPasswordChanged(given, stored, differing) ? MANAGEMENT_PASSWORD : []
}

function isPasswordChanged(given: PortalBroker, stored: StoredBroker | undefined, differing: DifferingSecrets) {
  if (given.managementPassword === null) return (stored?.sealedPassword ?? null) !== null
  return (stored?.sealedPassword ?? null) === null || differing.brokers.has(given.id)
}

function brokerWrite(given: PortalBroker, stored: StoredBroker | undefined, options: DiffOptions): BrokerWrite {
  const { managementPassword, ...broker } = given
  const changed = isPasswordChanged(given, stored, options.differingSecrets)
  const version = stored?.passwordVersion ?? 0
  return {
    broker,
    password: changed ? managementPassword : null,
    passwordVersion: changed && managementPassword !== null ? version + 1 : version,
    addressChanges: stored !== undefined && stored.managementAddress !== managementAddress(given.management),
  }
}

function documentChange(given: PortalEventApi, stored: StoredEventApi | undefined): readonly AttributeChange[] {
  return stored?.documentRevision === documentRevision(given) ? [] : [{ name: 'document' }]
}

function diffProductVersions(current: CatalogueState, file: PortalFile): SectionDiff<ProductVersionWrite> {
  const given = file.products.flatMap((product) =>
    product.versions.map((version) => ({ productId: product.id, version })),
  )
  const stored = new Map(
    [...current.products.values()].flatMap((product) =>
      [...product.versions.values()].map((version) => [versionedId(product.id, version.version), version] as const),
    ),
  )
  return diffSection('productVersion', given, stored, {
    idOf: ({ productId, version }) => versionedId(productId, version.version),
    given: ({ version }) => productVersionContent(version),
    stored: productVersionContent,
  })
}

/** The attributes that reach a broker; names and descriptions do not. */
const REACHES_BROKERS: Readonly<Partial<Record<ImportKind, ReadonlySet<string>>>> = {
  broker: new Set(['management', 'managementPassword', 'messaging', 'policy']),
  eventApi: new Set(['channels']),
  productVersion: new Set(['state', 'eventApis', 'plans', 'brokers']),
}

function touchedBy(
  changes: readonly ImportChange[],
  removed: Touched,
  writes: ImportWrites,
  registrations: ReadonlySet<string>,
): Touched {
  const reaching = new Set(
    changes
      .filter(({ kind, attributes }) => attributes.some(({ name }) => REACHES_BROKERS[kind]?.has(name)))
      .map(({ kind, id }) => `${kind} ${id}`),
  )
  const eventApis = writes.eventApis.filter(({ id, version }) => reaching.has(`eventApi ${versionedId(id, version)}`))
  const versions = writes.productVersions
    .map(({ productId, version }) => ({ id: productId, version: version.version }))
    .filter(({ id, version }) => reaching.has(`productVersion ${versionedId(id, version)}`))
  const brokers = writes.brokers.map(({ broker }) => broker.id).filter((id) => reaching.has(`broker ${id}`))
  return {
    registrations: [...new Set([...registrations, ...removed.registrations])],
    productVersions: [...versions, ...removed.productVersions],
    eventApis: eventApis.map(({ id, version }) => ({ id, version })),
    brokers,
  }
}
