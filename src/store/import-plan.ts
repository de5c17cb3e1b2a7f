import type { Problem } from '../domain/errors.ts'
import type {
  PortalApplicationDomain,
  PortalBroker,
  PortalEnvironment,
  PortalEventApi,
  PortalEventMesh,
  PortalProduct,
  PortalProductVersion,
  PortalRegistration,
} from '../domain/portal-file.ts'
import type { Secret } from '../domain/secret.ts'
import type { ImportChange } from './import-changes.ts'
import type { StoredAccessRequest } from './import-state.ts'

/** What an import does: for a person (`changes`, `problems`) and for the store (the rest). Plain data. */
export interface ImportPlan {
  readonly changes: readonly ImportChange[]
  /** With any of them nothing is written. */
  readonly problems: readonly Problem[]
  readonly writes: ImportWrites
  readonly removals: ImportRemovals
  readonly touched: Touched
}

export interface ImportWrites {
  readonly environments: readonly PortalEnvironment[]
  readonly eventMeshes: readonly PortalEventMesh[]
  readonly applicationDomains: readonly PortalApplicationDomain[]
  readonly brokers: readonly BrokerWrite[]
  readonly eventApis: readonly PortalEventApi[]
  readonly products: readonly Omit<PortalProduct, 'versions'>[]
  readonly productVersions: readonly ProductVersionWrite[]
  readonly registrations: readonly RegistrationWrite[]
  readonly accessRequests: readonly AccessRequestWrite[]
  readonly newCredentials: readonly NewCredential[]
  readonly changedCredentials: readonly CredentialUpdate[]
}

export interface BrokerWrite {
  readonly broker: Omit<PortalBroker, 'managementPassword'>
  /** Null: the stored one stays, as long as there are management settings. */
  readonly password: Secret | null
  /** Of the password after the write. */
  readonly passwordVersion: number
  /** Frees the old address first, so that two brokers may swap theirs. */
  readonly addressChanges: boolean
}

export interface ProductVersionWrite {
  readonly productId: string
  readonly version: PortalProductVersion
}

export interface RegistrationWrite {
  readonly registration: Omit<PortalRegistration, 'accessRequests' | 'credentials'>
  readonly isNew: boolean
  /** By a portal file; one that is stays so until it is deleted. */
  readonly isDeclared: boolean
}

export interface AccessRequestWrite extends StoredAccessRequest {
  readonly registrationId: string
}

/** Null: generated. */
export interface NewCredential {
  readonly registrationId: string
  readonly name: string
  readonly consumerKey: string | null
  readonly secret: Secret | null
  /** Above every version that this consumer key had, which brokers may have confirmed. */
  readonly secretVersion: number
  readonly expiresAtMs: number | null
}

export interface CredentialUpdate {
  readonly id: string
  /** Null: the stored one stays. */
  readonly secret: Secret | null
  /** Of the secret after the write. */
  readonly version: number
  readonly expiresAtMs: number | null
  readonly consumerKey: string
}

/** By id; versions as `id` and `version`. */
export interface ImportRemovals {
  readonly environments: readonly string[]
  readonly eventMeshes: readonly string[]
  readonly applicationDomains: readonly string[]
  readonly brokers: readonly string[]
  readonly eventApis: readonly VersionKey[]
  readonly products: readonly string[]
  readonly productVersions: readonly VersionKey[]
  /** Versions that access requests name: they stay, in state DELETED, without Event APIs and brokers. */
  readonly deletedVersions: readonly VersionKey[]
  readonly registrations: readonly string[]
  readonly accessRequests: readonly { readonly registrationId: string; readonly id: string }[]
  /** Ids of credentials: replaced or no longer in the file. */
  readonly credentials: readonly string[]
}

export interface VersionKey {
  readonly id: string
  readonly version: string
}

/** What changed in a way that may alter what should be on a broker. */
export interface Touched {
  readonly registrations: readonly string[]
  readonly productVersions: readonly VersionKey[]
  readonly eventApis: readonly VersionKey[]
  readonly brokers: readonly string[]
}
