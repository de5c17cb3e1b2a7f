import type { PortalCredential, PortalFile, PortalRegistration } from '../domain/portal-file.ts'
import { resolveAccessRequest, versionFinder } from './import-access-request.ts'
import { type AttributeChange, type ImportChange, ownedId } from './import-changes.ts'
import {
  accessRequestContent,
  attributeChanges,
  isoTime,
  newAttributes,
  registrationContent,
} from './import-content.ts'
import type { DifferingSecrets, DiffOptions } from './import-diff.ts'
import type {
  AccessRequestWrite,
  CredentialUpdate,
  ImportWrites,
  NewCredential,
  RegistrationWrite,
} from './import-plan.ts'
import {
  type CatalogueState,
  isCounted,
  type StoredAccessRequest,
  type StoredCredential,
  type StoredRegistration,
} from './import-state.ts'

export interface RegistrationsDiff {
  readonly writes: Pick<ImportWrites, 'registrations' | 'accessRequests' | 'newCredentials' | 'changedCredentials'>
  readonly changes: readonly ImportChange[]
  /** Ids of credentials whose consumer key the file replaces. */
  readonly replacedCredentials: readonly string[]
  /** All access requests of the file as they are afterwards, changed or not. */
  readonly resolved: readonly AccessRequestWrite[]
  /** Registrations whose desired state may differ. */
  readonly touched: ReadonlySet<string>
}

/** Filled while the registrations are walked. */
interface Collected {
  readonly registrations: RegistrationWrite[]
  readonly accessRequests: AccessRequestWrite[]
  readonly newCredentials: NewCredential[]
  readonly changedCredentials: CredentialUpdate[]
  readonly replacedCredentials: string[]
  readonly resolved: AccessRequestWrite[]
  readonly changes: ImportChange[]
  readonly touched: Set<string>
}

export function diffRegistrations(
  current: CatalogueState,
  file: PortalFile,
  options: Pick<DiffOptions, 'nowMs' | 'differingSecrets' | 'authoritative'>,
): RegistrationsDiff {
  const into: Collected = {
    registrations: [],
    accessRequests: [],
    newCredentials: [],
    changedCredentials: [],
    replacedCredentials: [],
    resolved: [],
    changes: [],
    touched: new Set(),
  }
  const findVersion = versionFinder(current, file)
  for (const given of file.registrations) {
    const stored = current.registrations.get(given.id)
    diffRegistration(given, stored, { into, isDeclared: options.authoritative !== true })
    for (const request of given.accessRequests) {
      const resolved = resolveAccessRequest(request, given.id, stored?.accessRequests.get(request.id), {
        findVersion,
        nowMs: options.nowMs,
        statesAreExact: options.authoritative === true,
      })
      diffAccessRequest(resolved, stored?.accessRequests.get(request.id), into)
    }
    for (const credential of given.credentials) {
      diffCredential(credential, given.id, stored?.credentials.get(credential.name), {
        into,
        differing: options.differingSecrets,
        secretVersions: current.secretVersions,
      })
    }
  }
  const { registrations, accessRequests, newCredentials, changedCredentials, ...rest } = into
  return { writes: { registrations, accessRequests, newCredentials, changedCredentials }, ...rest }
}

/** One that the API made is the file's from now on: a file that leaves it out again may remove it. */
const DECLARED: AttributeChange = { name: 'declared', before: false, after: true }

function diffRegistration(
  given: PortalRegistration,
  stored: StoredRegistration | undefined,
  { into, isDeclared }: { readonly into: Collected; readonly isDeclared: boolean },
): void {
  const content = registrationContent(given)
  const attributes =
    stored === undefined
      ? newAttributes(content)
      : [
          ...attributeChanges(registrationContent(stored), content),
          ...(isDeclared && !stored.isDeclared ? [DECLARED] : []),
        ]
  if (stored !== undefined && attributes.length === 0) return
  const { accessRequests: _requests, credentials: _credentials, ...registration } = given
  into.registrations.push({ registration, isNew: stored === undefined, isDeclared })
  into.changes.push({
    type: stored === undefined ? 'create' : 'update',
    kind: 'registration',
    id: given.id,
    attributes,
  })
  if (stored === undefined || attributes.some(({ name }) => name === 'filters')) into.touched.add(given.id)
}

function diffAccessRequest(
  resolved: AccessRequestWrite,
  stored: StoredAccessRequest | undefined,
  into: Collected,
): void {
  into.resolved.push(resolved)
  const content = accessRequestContent(resolved)
  const attributes =
    stored === undefined ? newAttributes(content) : attributeChanges(accessRequestContent(stored), content)
  if (stored !== undefined && attributes.length === 0) return
  into.accessRequests.push(resolved)
  into.changes.push({
    type: stored === undefined ? 'create' : 'update',
    kind: 'accessRequest',
    id: ownedId(resolved.registrationId, resolved.id),
    attributes,
  })
  if (isCounted(resolved) || (stored !== undefined && isCounted(stored))) into.touched.add(resolved.registrationId)
}

interface CredentialRules {
  readonly into: Collected
  readonly differing: DifferingSecrets
  readonly secretVersions: ReadonlyMap<string, number>
}

function diffCredential(
  given: PortalCredential,
  registrationId: string,
  stored: StoredCredential | undefined,
  { into, differing, secretVersions }: CredentialRules,
): void {
  const id = ownedId(registrationId, given.name)
  if (stored === undefined || isReplaced(given, stored, secretVersions)) {
    const version = given.consumerKey === null ? 0 : (secretVersions.get(given.consumerKey) ?? 0)
    into.newCredentials.push({
      registrationId,
      name: given.name,
      consumerKey: given.consumerKey,
      secret: given.consumerSecret,
      secretVersion: version + 1,
      expiresAtMs: given.expiresAtMs,
    })
    if (stored !== undefined && !stored.isRetired) into.replacedCredentials.push(stored.id)
    const attributes = [
      { name: 'consumerKey', before: stored?.consumerKey, after: given.consumerKey ?? '(generated)' },
      { name: 'consumerSecret' },
      ...expiryChange(stored?.expiresAtMs ?? null, given.expiresAtMs),
    ]
    into.changes.push({ type: stored === undefined ? 'create' : 'update', kind: 'credential', id, attributes })
    into.touched.add(registrationId)
    return
  }
  const secret = differing.credentials.has(stored.id) ? given.consumerSecret : null
  const attributes: readonly AttributeChange[] = [
    ...(secret === null ? [] : [{ name: 'consumerSecret' }]),
    ...expiryChange(stored.expiresAtMs, given.expiresAtMs),
  ]
  if (attributes.length === 0) return
  into.changedCredentials.push({
    id: stored.id,
    secret,
    version: secret === null ? stored.secretVersion : newestVersion(stored, secretVersions) + 1,
    expiresAtMs: given.expiresAtMs,
    consumerKey: stored.consumerKey,
  })
  into.changes.push({ type: 'update', kind: 'credential', id, attributes })
  into.touched.add(registrationId)
}

const newestVersion = (stored: StoredCredential, secretVersions: ReadonlyMap<string, number>): number =>
  Math.max(stored.secretVersion, secretVersions.get(stored.consumerKey) ?? 0)

/** A key that others used since it expired starts anew: what brokers confirmed of it is not this credential's. */
function isReplaced(
  given: PortalCredential,
  stored: StoredCredential,
  secretVersions: ReadonlyMap<string, number>,
): boolean {
  if (given.consumerKey !== null && given.consumerKey !== stored.consumerKey) return true
  const usedSince = (secretVersions.get(stored.consumerKey) ?? 0) > stored.secretVersion
  return stored.isRetired && usedSince && given.expiresAtMs !== stored.expiresAtMs
}

function expiryChange(beforeMs: number | null, afterMs: number | null): readonly AttributeChange[] {
  return beforeMs === afterMs ? [] : [{ name: 'expiresAt', before: isoTime(beforeMs), after: isoTime(afterMs) }]
}
