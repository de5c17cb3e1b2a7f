import type { AccessOutcome } from './msg-vpn-access.ts'

/** Reason codes of MQTT 5, 2.4. */
export const REASONS = {
  success: 0x00,
  disconnectWithWill: 0x04,
  noMatchingSubscribers: 0x10,
  noSubscriptionExisted: 0x11,
  malformedPacket: 0x81,
  protocolError: 0x82,
  clientIdNotValid: 0x85,
  notAuthorized: 0x87,
  badAuthenticationMethod: 0x8c,
  keepAliveTimeout: 0x8d,
  sessionTakenOver: 0x8e,
  topicFilterInvalid: 0x8f,
  topicNameInvalid: 0x90,
  packetIdNotFound: 0x92,
  topicAliasInvalid: 0x94,
  packetTooLarge: 0x95,
  quotaExceeded: 0x97,
  administrativeAction: 0x98,
  retainNotSupported: 0x9a,
  sharedSubscriptionsNotSupported: 0x9e,
  subscriptionIdsNotSupported: 0xa1,
} as const

/** What a CONNACK says, in either version: a return code of MQTT 3.1.1, 3.2.2.3, or a reason code of MQTT 5. */
export interface ConnectRefusal {
  readonly returnCode: number
  readonly reasonCode: number
}

const BAD_CREDENTIALS: ConnectRefusal = { returnCode: 4, reasonCode: 0x86 }
const NOT_AUTHORIZED: ConnectRefusal = { returnCode: 5, reasonCode: REASONS.notAuthorized }

export const IDENTIFIER_REJECTED: ConnectRefusal = { returnCode: 2, reasonCode: REASONS.clientIdNotValid }

export const CONNECT_REFUSALS: Readonly<Record<Exclude<AccessOutcome, 'accepted'>, ConnectRefusal>> = {
  'unknown-username': BAD_CREDENTIALS,
  'wrong-password': BAD_CREDENTIALS,
  shutdown: NOT_AUTHORIZED,
  'connect-denied': NOT_AUTHORIZED,
  'basic-authentication-shutdown': NOT_AUTHORIZED,
  'msg-vpn-shutdown': { returnCode: 3, reasonCode: 0x88 },
  // MQTT 3.1.1 has no word for it but `server unavailable`.
  'too-many-connections': { returnCode: 3, reasonCode: REASONS.quotaExceeded },
}
