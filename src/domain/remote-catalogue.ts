import type { MessagingSettings } from './catalogue.ts'
import type {
  JsonObject,
  PortalApplicationDomain,
  PortalEventApi,
  PortalProduct,
  PortalRegistration,
} from './portal-file.ts'
import type { Secret } from './secret.ts'

/** How the calls of another service's APIM API are authenticated. */
export type RemoteAccess =
  | { readonly kind: 'token'; readonly token: Secret }
  | {
      readonly kind: 'sign-in'
      /** Base address of the identity service. */
      readonly url: string
      readonly username: string
      readonly password: Secret
      /** For a user of several accounts. */
      readonly account: string | null
    }

/**
 * The catalogue and the registrations of another service as one pass read them. What was listed and could not be
 * understood is in `unread`, so that it does not look as if it were gone.
 */
export interface RemoteCatalogue {
  /** In the versions that are shown or that a request asks for. `brokers` are the ids that the remote names. */
  readonly products: readonly PortalProduct[]
  /** Those whose document was read in this pass; the others are as they were. */
  readonly eventApis: readonly PortalEventApi[]
  readonly applicationDomains: readonly PortalApplicationDomain[]
  readonly registrations: readonly PortalRegistration[]
  readonly brokers: readonly RemoteBroker[]
  readonly unread: readonly UnreadObject[]
  readonly documents: readonly ReadDocument[]
  /** For a person; secrets are in none of them. */
  readonly warnings: readonly string[]
}

/** A messaging service that the remote names. */
export interface RemoteBroker {
  readonly id: string
  readonly name: string
  /** Null when the remote does not say where clients connect. */
  readonly messaging: MessagingSettings | null
}

export type UnreadObject =
  | { readonly kind: 'product' | 'registration'; readonly id: string }
  | { readonly kind: 'productVersion'; readonly id: string; readonly version: string }
  | { readonly kind: 'accessRequest'; readonly registrationId: string; readonly id: string }
  | { readonly kind: 'credential'; readonly registrationId: string; readonly consumerKey: string }

/** What is remembered of an Event API's document, so that it is read again only when it may be another. */
export interface DocumentRecord {
  /** Of what the lists say of the Event API. */
  readonly listedDigest: string
  /** Of the document itself. */
  readonly documentDigest: string
  readonly readAtMs: number
  /** Why the document cannot be used; null when it can. */
  readonly problem: string | null
}

export interface ReadDocument extends DocumentRecord {
  readonly id: string
  readonly version: string
}

/** What is stored already, by which a pass knows what to ask for. */
export interface KnownCatalogue {
  /** Ids of products that are not deleted. */
  readonly products: ReadonlySet<string>
  readonly registrations: ReadonlySet<string>
  /** By `eventApiKey`, of Event APIs that are stored or whose document cannot be used. */
  readonly documents: ReadonlyMap<string, DocumentRecord>
}

/** No id holds an `@`. */
export const eventApiKey = (id: string, version: string): string => `${id}@${version}`

/** An AsyncAPI document, read and checked: what the catalogue takes from it. */
export interface UnderstoodDocument {
  readonly asyncApiVersion: string
  readonly title: string
  readonly viewpoint: PortalEventApi['viewpoint']
  readonly channels: PortalEventApi['channels']
  readonly json: JsonObject
}
