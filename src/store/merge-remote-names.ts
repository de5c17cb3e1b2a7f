import type { UnreadObject } from '../domain/remote-catalogue.ts'
import type { CatalogueState } from './import-state.ts'

/** What all parts of a merge share. */
export interface Merging {
  readonly current: CatalogueState
  /** Names of what was listed and could not be read: what is stored of it stays. */
  readonly unread: Set<string>
  readonly warn: (warning: string) => void
}

// Names for messages, by which things are told apart too.

export const productName = (id: string): string => `Product ${id}`
export const versionName = (id: string, version: string): string => `Version ${version} of product ${id}`
export const registrationName = (id: string): string => `Registration ${id}`
export const requestName = (registration: string, id: string): string =>
  `Access request ${id} of registration ${registration}`
export const credentialName = (registration: string, key: string): string =>
  `Credential ${key} of registration ${registration}`

export function unreadNames(objects: readonly UnreadObject[]): Set<string> {
  return new Set(objects.map(unreadName))
}

function unreadName(object: UnreadObject): string {
  switch (object.kind) {
    case 'product':
      return productName(object.id)
    case 'productVersion':
      return versionName(object.id, object.version)
    case 'registration':
      return registrationName(object.id)
    case 'accessRequest':
      return requestName(object.registrationId, object.id)
    case 'credential':
      return credentialName(object.registrationId, object.consumerKey)
    default: {
      const unreachable: never = object
      return unreachable
    }
  }
}
