import type { Problem } from '../domain/errors.ts'
import type { PortalBroker, PortalFile } from '../domain/portal-file.ts'
import { explainBroker } from '../domain/visibility.ts'
import { type VersionFinder, versionFinder } from './import-access-request.ts'
import { ownedId, versionedId } from './import-changes.ts'
import { hasUnstorableText, managementAddress } from './import-content.ts'
import type { DiffOptions } from './import-diff.ts'
import type { RegistrationsDiff } from './import-diff-registrations.ts'
import type { AccessRequestWrite, ImportRemovals, ImportWrites } from './import-plan.ts'
import type { CatalogueState, StoredBroker } from './import-state.ts'

export interface ProblemInput {
  readonly current: CatalogueState
  readonly file: PortalFile
  readonly options: Pick<DiffOptions, 'takenAddresses' | 'authoritative'>
  readonly writes: ImportWrites
  readonly removed: ImportRemovals
  readonly registrations: RegistrationsDiff
}

/** What the file alone cannot show: where it and the store do not go together. */
export function importProblems(input: ProblemInput): readonly Problem[] {
  const problems = [
    ...textProblems(input.file),
    ...messageVpnProblems(input),
    ...movedBrokerProblems(input),
    ...removedBrokerProblems(input),
    ...accessRequestProblems(input),
    ...lostPlanProblems(input),
    ...consumerKeyProblems(input),
  ]
  return problems.map((problem) => ({ file: input.file.file, ...problem }))
}

const SECTIONS = [
  'environments',
  'eventMeshes',
  'brokers',
  'applicationDomains',
  'eventApis',
  'products',
  'registrations',
] as const

function textProblems(file: PortalFile): readonly Problem[] {
  return SECTIONS.flatMap((section) =>
    file[section].flatMap((item, index) =>
      hasUnstorableText(item)
        ? [{ path: `${section}[${index}]`, message: 'holds a NUL character or half of a surrogate pair' }]
        : [],
    ),
  )
}

function messageVpnProblems({ current, file, options, removed }: ProblemInput): readonly Problem[] {
  const inFile = new Set<string>(file.brokers.map(({ id }) => id))
  const staying = [...current.brokers.values()].filter(({ id }) => !inFile.has(id) && !removed.brokers.includes(id))
  const owners = new Map<string, string>()
  for (const { id, managementAddress: address } of staying) if (address !== null) owners.set(address, id)
  const problems: Problem[] = []
  for (const [index, { id, management }] of file.brokers.entries()) {
    const address = managementAddress(management)
    if (address === null || management === null) continue
    const path = `brokers[${index}].management`
    const owner = owners.get(address)
    const name = `the message VPN \`${management.msgVpnName}\` at ${management.url}`
    if (owner !== undefined) {
      problems.push({ path, message: `broker \`${id}\`: ${name} belongs to broker \`${owner}\` already` })
    } else if (options.takenAddresses.has(address)) {
      problems.push({ path, message: takenMessage(id, name) })
    }
    owners.set(address, id)
  }
  return problems
}

/** Says nothing of the account that has it. */
const takenMessage = (id: string, name: string): string =>
  `broker \`${id}\`: ${name} is in use already and cannot be managed from here`

const countOf = (objects: number): string => `${objects} object${objects === 1 ? '' : 's'}`

/** The ledger says what is on the old message VPN; on another one it would claim objects that are not ours. */
function movedBrokerProblems({ current, file }: ProblemInput): readonly Problem[] {
  return file.brokers.flatMap((given, index) => {
    const stored = current.brokers.get(given.id)
    const from = stored?.management?.msgVpnName
    const to = given.management?.msgVpnName
    if (stored === undefined || stored.ownedObjects === 0 || from === undefined || to === undefined) return []
    if (from === to) return []
    const objects = `${countOf(stored.ownedObjects)} on its message VPN \`${from}\``
    const message = `broker \`${given.id}\` still has ${objects}; declare \`${to}\` as a new broker instead`
    return [{ path: `brokers[${index}].management.msgVpn`, message }]
  })
}

function removedBrokerProblems({ current, removed }: ProblemInput): readonly Problem[] {
  return removed.brokers.flatMap((id) => {
    const owned = current.brokers.get(id)?.ownedObjects ?? 0
    if (owned === 0) return []
    return [{ path: 'brokers', message: ownedObjectsMessage(id, owned) }]
  })
}

const ownedObjectsMessage = (id: string, count: number): string =>
  `broker \`${id}\` cannot be removed with ${countOf(count)} of registrations on it: keep it in the ` +
  'file, remove it from the product versions, import, and prune it when the objects are withdrawn'

function accessRequestProblems(input: ProblemInput): readonly Problem[] {
  const findVersion = versionFinder(input.current, input.file)
  const unusable = input.options.authoritative === true ? null : unusableBrokers(input)
  const resolved = new Map(input.registrations.resolved.map((each) => [ownedId(each.registrationId, each.id), each]))
  return input.file.registrations.flatMap((registration, index) =>
    registration.accessRequests.flatMap((given, position) => {
      const request = resolved.get(ownedId(registration.id, given.id))
      if (request === undefined) return []
      const isNew = !input.current.registrations.get(registration.id)?.accessRequests.has(given.id)
      const message = requestProblem(request, { findVersion, unusable, isNew })
      return message === null ? [] : [{ path: `registrations[${index}].accessRequests[${position}]`, message }]
    }),
  )
}

interface RequestChecks {
  readonly findVersion: VersionFinder
  /** Null: it does not matter. */
  readonly unusable: ReadonlyMap<string, string> | null
  readonly isNew: boolean
}

function requestProblem(request: AccessRequestWrite, checks: RequestChecks): string | null {
  const name = `access request \`${request.id}\` of registration \`${request.registrationId}\``
  const product = `version ${request.productVersion} of product \`${request.productId}\``
  const version = checks.findVersion(request.productId, request.productVersion)
  if (version === undefined) return `${name} is for ${product}, which does not exist`
  if (!version.plans.some(({ id }) => id === request.planId)) {
    return `${name} is for ${product}, which has no plan \`${request.planId}\`: name its version, or one of its plans`
  }
  if (!checks.isNew || request.state === 'REJECTED' || request.state === 'REVOKED') return null
  if (version.state !== 'RELEASED' && version.state !== 'DEPRECATED') {
    return `${name} is new, and ${product} is in state ${version.state}: only RELEASED and DEPRECATED ones take requests`
  }
  const { unusable } = checks
  if (unusable === null) return null
  const reasons = version.brokers.map((id) => unusable.get(id))
  if (reasons.some((reason) => reason === undefined)) return null
  const why = reasons.length === 0 ? 'it is associated with no broker' : reasons.join(' ')
  return `${name} is new, and ${product} has no usable broker: ${why}`
}

/** Why a broker is unusable; a usable one is not in the map. */
function unusableBrokers({ current, file }: ProblemInput): ReadonlyMap<string, string> {
  const brokers = new Map<string, PortalBroker | StoredBroker>(current.brokers)
  for (const broker of file.brokers) brokers.set(broker.id, broker)
  return new Map(
    [...brokers.values()].flatMap(({ id, eventMeshId, management, messaging }) => {
      const { rules } = explainBroker({
        id,
        // Meshes and environments are declared wherever they are named.
        eventMeshName: eventMeshId,
        environmentName: eventMeshId,
        managementIsComplete: management !== null,
        messaging,
      })
      const failed = rules.filter(({ holds }) => !holds).map(({ explanation }) => explanation)
      return failed.length === 0 ? [] : [[id, `Broker \`${id}\`: ${failed.join(' ')}`] as const]
    }),
  )
}

/** A plan that a request outside the file still names would silently withdraw it. */
function lostPlanProblems({ current, file, writes, removed, registrations }: ProblemInput): readonly Problem[] {
  const plans = new Map(
    writes.productVersions.map(({ productId, version }) => [
      versionedId(productId, version.version),
      new Set(version.plans.map(({ id }) => id)),
    ]),
  )
  if (plans.size === 0) return []
  const inFile = new Set(registrations.resolved.map((each) => ownedId(each.registrationId, each.id)))
  const goes = new Set([
    ...removed.registrations,
    ...removed.accessRequests.map((each) => ownedId(each.registrationId, each.id)),
  ])
  return [...current.registrations.values()].flatMap((registration) =>
    [...registration.accessRequests.values()].flatMap((request) => {
      const id = ownedId(registration.id, request.id)
      const left = plans.get(versionedId(request.productId, request.productVersion))
      if (left === undefined || left.has(request.planId) || inFile.has(id)) return []
      if (goes.has(id) || goes.has(registration.id)) return []
      if (request.state === 'REJECTED' || request.state === 'REVOKED' || request.expiredAtMs !== null) return []
      const index = file.products.findIndex((product) => product.id === request.productId)
      const product = `version ${request.productVersion} of product \`${request.productId}\``
      const message = `plan \`${request.planId}\` cannot leave ${product}: access request \`${id}\` has it`
      return [{ path: `products[${index}]`, message }]
    }),
  )
}

interface KeyOwner {
  readonly registrationId: string
  readonly name: string
}

function consumerKeyProblems({ current, file, writes, removed, registrations }: ProblemInput): readonly Problem[] {
  const retired = new Set([...registrations.replacedCredentials, ...removed.credentials])
  const goneRegistrations = new Set(removed.registrations)
  const revived = new Set(writes.changedCredentials.map(({ id }) => id))
  const owners = new Map<string, KeyOwner>()
  for (const { id: registrationId, credentials } of current.registrations.values()) {
    if (goneRegistrations.has(registrationId)) continue
    for (const { id, name, consumerKey, isRetired } of credentials.values()) {
      if (!retired.has(id) && (!isRetired || revived.has(id))) owners.set(consumerKey, { registrationId, name })
    }
  }
  const position = new Map(file.registrations.map(({ id }, index) => [id as string, index]))
  return writes.newCredentials.flatMap((credential) => {
    if (credential.consumerKey === null) return []
    const owner = owners.get(credential.consumerKey)
    owners.set(credential.consumerKey, credential)
    if (owner === undefined) return []
    const message =
      `credential \`${credential.name}\` of registration \`${credential.registrationId}\` has the consumer key ` +
      `\`${credential.consumerKey}\`, which credential \`${owner.name}\` of registration \`${owner.registrationId}\` has already`
    return [{ path: `registrations[${position.get(credential.registrationId)}].credentials`, message }]
  })
}
