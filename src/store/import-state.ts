import type { BrokerPolicy, ManagementSettings, MessagingSettings, ProductState } from '../domain/catalogue.ts'
import type {
  PortalApplicationDomain,
  PortalEnvironment,
  PortalEventApi,
  PortalEventMesh,
  PortalProduct,
  PortalProductVersion,
  PortalRegistration,
} from '../domain/portal-file.ts'
import type { AccessRequestState, Filters } from '../domain/registration.ts'

/** All of one account that a portal file can change. Maps are by id; soft-deleted registrations are not in it. */
export interface CatalogueState {
  readonly accountId: string
  readonly environments: ReadonlyMap<string, PortalEnvironment>
  readonly eventMeshes: ReadonlyMap<string, PortalEventMesh>
  readonly applicationDomains: ReadonlyMap<string, PortalApplicationDomain>
  readonly brokers: ReadonlyMap<string, StoredBroker>
  /** By `versionedId`. */
  readonly eventApis: ReadonlyMap<string, StoredEventApi>
  readonly products: ReadonlyMap<string, StoredProduct>
  readonly registrations: ReadonlyMap<string, StoredRegistration>
  /** The newest secret version of a consumer key that is or was in use. */
  readonly secretVersions: ReadonlyMap<string, number>
}

export interface StoredBroker {
  readonly id: string
  readonly name: string
  readonly kind: 'solace'
  readonly eventMeshId: string | null
  readonly management: ManagementSettings | null
  readonly messaging: MessagingSettings | null
  readonly policy: BrokerPolicy
  readonly managementAddress: string | null
  readonly sealedPassword: string | null
  /** 0 before the first one. */
  readonly passwordVersion: number
  /** Objects of registrations that the ledger has on this broker. */
  readonly ownedObjects: number
}

export interface StoredEventApi extends Omit<PortalEventApi, 'document'> {
  readonly documentRevision: string
}

export interface StoredProduct extends Omit<PortalProduct, 'versions'> {
  readonly versions: ReadonlyMap<string, StoredProductVersion>
}

export interface StoredProductVersion extends Omit<PortalProductVersion, 'state'> {
  readonly state: ProductState
}

export interface StoredRegistration extends Omit<PortalRegistration, 'accessRequests' | 'credentials'> {
  readonly accessRequests: ReadonlyMap<string, StoredAccessRequest>
  /** A portal file holds it, or held it. */
  readonly isDeclared: boolean
  /** By name: the live one, else the newest that has expired. */
  readonly credentials: ReadonlyMap<string, StoredCredential>
}

/** An access request with nothing left open. */
export interface ResolvedAccessRequest {
  readonly productId: string
  readonly productVersion: string
  readonly planId: string
  readonly filters: Filters
  readonly state: AccessRequestState
  readonly expiresAtMs: number | null
}

export interface StoredAccessRequest extends ResolvedAccessRequest {
  readonly id: string
  readonly approvedAtMs: number | null
  readonly expiredAtMs: number | null
}

export interface StoredCredential {
  readonly id: string
  readonly name: string
  readonly consumerKey: string
  readonly sealedSecret: string
  readonly secretVersion: number
  readonly expiresAtMs: number | null
  readonly isRetired: boolean
}

/** Whether the access request wants something on a broker, its product version permitting. */
export const isCounted = (
  request: Omit<StoredAccessRequest, keyof ResolvedAccessRequest | 'id'> & {
    readonly state: AccessRequestState
  },
): boolean =>
  request.expiredAtMs === null &&
  (request.state === 'APPROVED' ||
    request.state === 'LIVE' ||
    (request.state === 'ERROR' && request.approvedAtMs !== null))
