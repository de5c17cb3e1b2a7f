import type { Protocol } from '../domain/catalogue.ts'
import type { AccountId, BrokerId, ConsumerKey } from '../domain/ids.ts'
import type { RegistrationFacts } from './plan-registration.ts'
import type { LoginRecord, Pair } from './store-port.ts'

export interface BrokerKey {
  readonly accountId: AccountId
  readonly brokerId: BrokerId
}

/** What a sweep needs of the store, in chunks of a bounded size. */
export interface SweepStore {
  /** Pairs that reached their generation and have objects there: what the broker should hold now. */
  settled(broker: BrokerKey, signal?: AbortSignal): AsyncIterable<readonly RegistrationFacts[]>
  /** Pairs that lag, wait, are due again, or met an error or a conflict: a sweep tries each of them again. */
  unsettled(broker: BrokerKey, signal?: AbortSignal): AsyncIterable<readonly Pair[]>
  /**
   * Credentials of settled pairs whose password the broker confirmed and whose turn to be proved has come. Turns are
   * spread over the period by the consumer key, so that each comes once in it and all do not come at once; what was
   * never proved in its version comes first, then the longest ago.
   */
  dueLogins(broker: BrokerKey, request: DueLoginsRequest): Promise<readonly DueLogin[]>
  /** Keeps verdicts of probes that no run made. */
  recordLogins(logins: readonly { readonly pair: Pair; readonly login: LoginRecord }[]): Promise<void>
}

export interface DueLoginsRequest {
  readonly nowMs: number
  readonly periodMs: number
  readonly limit: number
}

export interface DueLogin {
  readonly pair: Pair
  readonly consumerKey: ConsumerKey
  readonly version: number
  /** When each protocol was last probed with this version. */
  readonly checkedAtMs: Readonly<Partial<Record<Protocol, number>>>
}
