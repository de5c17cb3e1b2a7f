import {
  type BrokerPolicy,
  type Channel,
  type ClassOfServicePolicy,
  DEFAULT_BROKER_POLICY,
} from '../../src/domain/catalogue.ts'
import { accessRequestId, accountId, brokerId, consumerKey, eventApiId, registrationId } from '../../src/domain/ids.ts'
import type { CountedAccessRequest, LiveCredential, RegistrationOnBroker } from '../../src/domain/registration.ts'
import type { PlanSettings } from '../../src/reconcile/plan-registration.ts'
import type { Pair } from '../../src/reconcile/store-port.ts'

/** A Tuesday, 10:00 UTC. */
export const NOW_MS = Date.UTC(2026, 2, 3, 10, 0, 0)
export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

export const SETTINGS: PlanSettings = { graceMs: DAY_MS, maxTopics: 1000, maxDeletes: 50, allowDisruptive: false }

export const PAIR: Pair = {
  accountId: accountId('acme'),
  brokerId: brokerId('broker1'),
  registrationId: registrationId('parcel-app'),
}

export const pairOf = (registration: string, broker = 'broker1', account = 'acme'): Pair => ({
  accountId: accountId(account),
  brokerId: brokerId(broker),
  registrationId: registrationId(registration),
})

export const policyOf = (policy: Partial<BrokerPolicy> = {}): BrokerPolicy => ({ ...DEFAULT_BROKER_POLICY, ...policy })

export function channel(name: string, direction: 'publish' | 'subscribe' | 'both'): Channel {
  const clientMayPublish = direction !== 'subscribe'
  const clientMaySubscribe = direction !== 'publish'
  return { name, clientMayPublish, clientMaySubscribe, parameterEnums: {} }
}

export const DIRECT: ClassOfServicePolicy = {
  messageDeliveryMode: 'direct',
  accessType: 'exclusive',
  queueType: 'combined',
  maximumTimeToLive: 0,
  maxMsgSpoolUsage: 10,
}
export const GUARANTEED: ClassOfServicePolicy = { ...DIRECT, messageDeliveryMode: 'guaranteed' }

export const eventApi = (id: string, ...channels: readonly Channel[]) => ({ id: eventApiId(id), channels })

export function accessRequest(id: string, request: Partial<CountedAccessRequest> = {}): CountedAccessRequest {
  return {
    id: accessRequestId(id),
    filters: {},
    classOfServicePolicy: DIRECT,
    queueNonce: `nonce-of-${id}`,
    eventApis: [eventApi('parcels', channel('parcel/{id}/scanned', 'both'))],
    ...request,
  }
}

export const credential = (key: string, version = 1, issuedAtMs = NOW_MS): LiveCredential => ({
  consumerKey: consumerKey(key),
  version,
  issuedAtMs,
})

/** One direct access request and one credential, unless told otherwise. */
export function registrationOf(
  pair: Pair = PAIR,
  registration: Partial<RegistrationOnBroker> = {},
): RegistrationOnBroker {
  return {
    accountId: pair.accountId,
    registrationId: pair.registrationId,
    generation: 1,
    filters: {},
    accessRequests: [accessRequest('request-1')],
    credentials: [credential(`key-of-${pair.registrationId}`)],
    ...registration,
  }
}
