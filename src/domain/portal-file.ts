import type { Broker, EventApi, Plan, ProductState, Viewpoint } from './catalogue.ts'
import type { Problem } from './errors.ts'
import type { AccessRequestId, BrokerId, ConsumerKey, EventApiId, ProductId, RegistrationId } from './ids.ts'
import type { AccessRequestState, Filters } from './registration.ts'
import type { Secret } from './secret.ts'

/**
 * A portal file, read and checked as a whole: names are valid, ids unique, references resolved, AsyncAPI documents read.
 * Lists keep the order of the file.
 */
export interface PortalFile {
  /** The path that was read. */
  readonly file: string
  readonly environments: readonly PortalEnvironment[]
  readonly eventMeshes: readonly PortalEventMesh[]
  readonly brokers: readonly PortalBroker[]
  readonly applicationDomains: readonly PortalApplicationDomain[]
  /** One per id and version. */
  readonly eventApis: readonly PortalEventApi[]
  readonly products: readonly PortalProduct[]
  readonly registrations: readonly PortalRegistration[]
  /** What does not stop the import and a person should know. */
  readonly warnings: readonly Problem[]
  /** The 1-based line of a path such as `brokers[0].management.msgVpn`; absent when no file was read. */
  readonly lineOf?: (path: string) => number
}

/** What every entry of a file is added to. */
export const emptyPortalFile = (file: string): PortalFile => ({
  file,
  environments: [],
  eventMeshes: [],
  brokers: [],
  applicationDomains: [],
  eventApis: [],
  products: [],
  registrations: [],
  warnings: [],
})

export interface PortalEnvironment {
  readonly id: string
  readonly name: string
}

export interface PortalEventMesh {
  readonly id: string
  readonly name: string
  readonly environmentId: string
}

/**
 * A broker of the account that the file is imported into. Incomplete management or messaging settings are allowed and
 * make the broker unusable: `management` is null unless URL, message VPN, username and password are all there, and
 * `messaging` is null without a host (its protocols may be empty).
 */
export interface PortalBroker extends Omit<Broker, 'accountId'> {
  /** Null exactly when `management` is null. */
  readonly managementPassword: Secret | null
}

export interface PortalApplicationDomain {
  readonly id: string
  readonly name: string
  readonly description: string
}

export interface CustomAttribute {
  readonly name: string
  readonly value: string
}

export interface PortalEventApi extends EventApi {
  readonly applicationDomainId: string | null
  readonly customAttributes: readonly CustomAttribute[]
  readonly viewpoint: Viewpoint
  readonly document: ImportedDocument
}

/** An AsyncAPI document as it is stored and served. */
export interface ImportedDocument {
  /** The path that was read. */
  readonly file: string
  /** `2.0.0` to `2.6.0`. */
  readonly asyncApiVersion: string
  /** `info.title` */
  readonly title: string
  /** Self-contained JSON: references to other files are bundled, references inside the document are kept. */
  readonly json: JsonObject
}

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [key: string]: JsonValue
}

export interface PortalProduct {
  readonly id: ProductId
  readonly name: string
  readonly description: string
  readonly applicationDomainId: string | null
  readonly shared: boolean
  /** Managed by integrations, kept from one version to the next. */
  readonly attributes: readonly CustomAttribute[]
  /** At least one; versions are semantic versions and unique. */
  readonly versions: readonly PortalProductVersion[]
}

export interface PortalProductVersion {
  readonly version: string
  readonly displayName: string
  readonly description: string
  readonly state: Exclude<ProductState, 'DELETED'>
  readonly approvalType: 'automatic' | 'manual'
  /** Publicly available. */
  readonly public: boolean
  /** An Event API that the file names without a version is resolved to its newest version in the file. */
  readonly eventApis: readonly { readonly id: EventApiId; readonly version: string }[]
  /** May be empty: the version is then not visible. */
  readonly plans: readonly Plan[]
  /** May be empty: the version is then not visible. */
  readonly brokers: readonly BrokerId[]
  readonly customAttributes: readonly CustomAttribute[]
}

export interface PortalRegistration {
  readonly id: RegistrationId
  readonly name: string
  /** The system that manages the registration, such as a developer portal. */
  readonly source: string
  readonly sourceOwner: string | null
  readonly applicationDomainId: string | null
  readonly filters: Filters
  readonly attributes: readonly CustomAttribute[]
  readonly accessRequests: readonly PortalAccessRequest[]
  readonly credentials: readonly PortalCredential[]
}

export interface PortalAccessRequest {
  /** Unique in the registration. */
  readonly id: AccessRequestId
  readonly productId: ProductId
  readonly productVersion: string
  /** True when the file names no version: the newest RELEASED one is meant, for a request that does not exist yet. */
  readonly productVersionIsDefault: boolean
  readonly planId: string
  readonly filters: Filters
  /** Null: the approval type of the product version decides, for a request that does not exist yet. */
  readonly state: Extract<AccessRequestState, 'PENDING_APPROVAL' | 'APPROVED' | 'REJECTED' | 'REVOKED'> | null
  readonly expiresAtMs: number | null
}

export interface PortalCredential {
  /** Unique in the registration. */
  readonly name: string
  /** Unique in the file. Null: generated for a credential that does not exist yet. */
  readonly consumerKey: ConsumerKey | null
  /** Only with a consumer key. Null: generated for a credential that does not exist yet. */
  readonly consumerSecret: Secret | null
  readonly expiresAtMs: number | null
}

/** A portal file, and all that is needed to read it again on another host. */
export interface ReadPortal {
  readonly file: PortalFile
  readonly source: PortalSource
}

export interface PortalSource {
  readonly path: string
  /** Of the portal file and each file that it names, by the path that was asked for. */
  readonly texts: ReadonlyMap<string, string>
  /** Paths without links, by the path that was asked for. */
  readonly realPaths: ReadonlyMap<string, string>
  /** Values of the environment variables that the file names. */
  readonly secrets: ReadonlyMap<string, Secret>
}
