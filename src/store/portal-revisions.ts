import type { PortalApplicationDomain, PortalEnvironment, PortalEventMesh } from '../domain/portal-file.ts'
import {
  applicationDomainContent,
  brokerContent,
  environmentContent,
  eventApiContent,
  eventMeshContent,
  productContent,
  productVersionContent,
  revisionOf,
} from './import-content.ts'
import type { StoredBroker, StoredEventApi, StoredProduct, StoredProductVersion } from './import-state.ts'

// What an ETag is made of: what an import compares, so that a change by either is seen by both.

export const environmentRevision = (stored: PortalEnvironment): string => revisionOf(environmentContent(stored))
export const eventMeshRevision = (stored: PortalEventMesh): string => revisionOf(eventMeshContent(stored))
export const applicationDomainRevision = (stored: PortalApplicationDomain): string =>
  revisionOf(applicationDomainContent(stored))
/** A new password counts, by its version. */
export const brokerRevision = (stored: StoredBroker): string =>
  revisionOf({ ...brokerContent(stored), passwordVersion: stored.passwordVersion })
export const eventApiRevision = (stored: StoredEventApi): string =>
  revisionOf({ ...eventApiContent(stored), document: stored.documentRevision })
/** Without its versions. */
export const productRevision = (stored: StoredProduct): string => revisionOf(productContent(stored))
export const productVersionRevision = (stored: StoredProductVersion): string =>
  revisionOf(productVersionContent(stored))
