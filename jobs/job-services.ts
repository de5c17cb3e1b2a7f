import type { AccountId, RegistrationId } from '../src/domain/ids.ts'
import type { EndpointKey, VerifyWhat } from '../src/queue/enqueue.ts'
import type { BrokerKey } from '../src/queue/queue-names.ts'
import type { Pair, RunTrigger } from '../src/reconcile/store-port.ts'

/** What the jobs call. Each is safe to run again. */
export interface JobServices {
  /** Pairs that have not reached their generation, or are due again, oldest first. */
  laggingPairs(limit: number): Promise<readonly Pair[]>
  /** Those on which a credential that ended may still work. */
  revokedPairs(limit: number): Promise<readonly Pair[]>
  pairsOfRegistration(accountId: AccountId, registrationId: RegistrationId): Promise<readonly Pair[]>
  reconcilePair(pair: Pair, trigger: RunTrigger, signal: AbortSignal): Promise<'done' | 'busy' | 'gone'>
  sweepBroker(broker: BrokerKey, trigger: RunTrigger, signal: AbortSignal, onProgress: OnProgress): Promise<void>
  /** Logs in with credentials, and keeps what it came to. */
  verifyBroker(broker: BrokerKey, what: VerifyWhat, signal: AbortSignal, onProgress: OnProgress): Promise<void>
  usableBrokers(): Promise<readonly UsableBroker[]>
  /** One pass over another service's catalogue, where there is one; whether registrations are to be reconciled for it. */
  followRemoteCatalogue(signal: AbortSignal): Promise<boolean>
  /** Also tells of what expires soon. How many were retired. */
  retireExpired(): Promise<number>
  /** How many were removed. */
  pruneRecords(): Promise<number>
  /** Notification endpoints with something to send now, at most `limit`. */
  dueEndpoints(limit: number): Promise<readonly EndpointKey[]>
  /** How many attempts were made. */
  deliverNotifications(endpoint: EndpointKey, signal: AbortSignal): Promise<number>
}

/** `total` is null while it is not known. */
export type OnProgress = (done: number, total: number | null) => void

export interface UsableBroker extends BrokerKey {
  readonly paused: boolean
}
