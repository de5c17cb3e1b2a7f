import type { Channel, ClassOfServicePolicy } from './catalogue.ts'
import type { AccessRequestId, AccountId, ConsumerKey, EventApiId, RegistrationId } from './ids.ts'

/** Filter values by parameter name: what a client narrows a `{parameter}` to. */
export type Filters = Readonly<Record<string, readonly string[]>>

export type AccessRequestState = 'PENDING_APPROVAL' | 'REJECTED' | 'REVOKED' | 'APPROVED' | 'ERROR' | 'LIVE'

/** A credential that should work now. Its secret stays in the store; `version` grows with every new secret. */
export interface LiveCredential {
  readonly consumerKey: ConsumerKey
  readonly version: number
  readonly issuedAtMs: number
}

/** An access request that counts (DESIGN section 5), with what its product version and plan promise. */
export interface CountedAccessRequest {
  readonly id: AccessRequestId
  readonly filters: Filters
  readonly classOfServicePolicy: ClassOfServicePolicy
  /** Random, stored with the request; part of its queue names where every client may consume. */
  readonly queueNonce: string
  readonly eventApis: readonly { readonly id: EventApiId; readonly channels: readonly Channel[] }[]
}

/** All the store knows of one registration that matters on one broker: the input of `desiredState`. */
export interface RegistrationOnBroker {
  readonly accountId: AccountId
  readonly registrationId: RegistrationId
  readonly generation: number
  readonly filters: Filters
  /** Only those whose product is associated with the broker. */
  readonly accessRequests: readonly CountedAccessRequest[]
  readonly credentials: readonly LiveCredential[]
}
