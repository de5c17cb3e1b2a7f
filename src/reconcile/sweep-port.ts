import type { AccountId, BrokerId } from '../domain/ids.ts'
import type { RegistrationFacts } from './plan-registration.ts'
import type { Pair } from './store-port.ts'

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
}
