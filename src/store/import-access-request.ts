import type { PortalAccessRequest, PortalFile, PortalProductVersion } from '../domain/portal-file.ts'
import type { AccessRequestState } from '../domain/registration.ts'
import type { AccessRequestWrite } from './import-plan.ts'
import { type CatalogueState, isCounted, type StoredAccessRequest, type StoredProductVersion } from './import-state.ts'

export type VersionFinder = (
  productId: string,
  version: string,
) => PortalProductVersion | StoredProductVersion | undefined

/** A product version as the file has it, else as the store does. */
export function versionFinder(current: CatalogueState, file: PortalFile): VersionFinder {
  const products = new Map(
    file.products.map((product) => [
      product.id as string,
      new Map(product.versions.map((each) => [each.version, each])),
    ]),
  )
  return (productId, version) =>
    products.get(productId)?.get(version) ?? current.products.get(productId)?.versions.get(version)
}

interface RequestRules {
  readonly findVersion: VersionFinder
  readonly nowMs: number
  /** PENDING_APPROVAL takes an approval back. */
  readonly statesAreExact?: boolean
}

/** What the request is afterwards. */
export function resolveAccessRequest(
  given: PortalAccessRequest,
  registrationId: string,
  stored: StoredAccessRequest | undefined,
  { findVersion, nowMs, statesAreExact = false }: RequestRules,
): AccessRequestWrite {
  const keepsVersion = given.productVersionIsDefault && stored?.productId === given.productId
  const productVersion = keepsVersion ? stored.productVersion : given.productVersion
  const approvalType = findVersion(given.productId, productVersion)?.approvalType ?? 'manual'
  const isAskedAnew = statesAreExact && given.state === 'PENDING_APPROVAL'
  const state = isAskedAnew ? given.state : requestState(given.state, stored, approvalType)
  const expiryKept = stored !== undefined && stored.expiresAtMs === given.expiresAtMs
  return {
    registrationId,
    id: given.id,
    productId: given.productId,
    productVersion,
    planId: given.planId,
    filters: given.filters,
    state,
    expiresAtMs: given.expiresAtMs,
    approvedAtMs: isApproved(state) ? (stored?.approvedAtMs ?? nowMs) : approvedBefore(state, stored),
    expiredAtMs: expiryKept ? stored.expiredAtMs : null,
  }
}

const isApproved = (state: AccessRequestState): boolean => state === 'APPROVED' || state === 'LIVE'
const approvedBefore = (state: AccessRequestState, stored: StoredAccessRequest | undefined): number | null =>
  state === 'ERROR' ? (stored?.approvedAtMs ?? null) : null

/**
 * | the file says      | new              | existing                                        |
 * | nothing            | by approval type | stays                                           |
 * | APPROVED           | APPROVED         | APPROVED unless approved already (LIVE, ERROR)  |
 * | PENDING_APPROVAL   | PENDING_APPROVAL | only after REJECTED or REVOKED, else stays      |
 * | REJECTED, REVOKED  | the same         | the same                                        |
 */
export function requestState(
  given: PortalAccessRequest['state'],
  stored: Pick<StoredAccessRequest, 'state' | 'approvedAtMs'> | undefined,
  approvalType: 'automatic' | 'manual',
): AccessRequestState {
  if (stored === undefined) return given ?? (approvalType === 'automatic' ? 'APPROVED' : 'PENDING_APPROVAL')
  switch (given) {
    case null:
      return stored.state
    case 'APPROVED':
      return isCounted({ ...stored, expiredAtMs: null }) ? stored.state : 'APPROVED'
    case 'PENDING_APPROVAL':
      return stored.state === 'REJECTED' || stored.state === 'REVOKED' ? 'PENDING_APPROVAL' : stored.state
    case 'REJECTED':
    case 'REVOKED':
      return given
    default: {
      const unreachable: never = given
      return unreachable
    }
  }
}
