import type { ObjectKind, ObjectRef } from '../domain/broker-object.ts'
import type { Protocol } from '../domain/catalogue.ts'
import type { AccountId, BrokerId, ConsumerKey, RegistrationId } from '../domain/ids.ts'
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
  /**
   * Live credentials whose password the broker confirmed, settled or not, in the order of their keys; of all
   * registrations unless one is given.
   */
  confirmedLogins(
    broker: BrokerKey,
    registrationId: RegistrationId | null,
    signal?: AbortSignal,
  ): AsyncIterable<readonly ConfirmedLogin[]>
  /** Keeps verdicts of probes that no run made. A refused password that was not yet written again makes its pair due. */
  recordLogins(logins: readonly { readonly pair: Pair; readonly login: LoginRecord }[]): Promise<void>
}

/** What is kept of a sweep while it reads, so that a crash costs little and a large broker gets its turns. */
export interface SweepMemory {
  /** Kinds that a sweep which was cut off lately had read to their end. */
  readKinds(broker: BrokerKey, nowMs: number): Promise<readonly ObjectKind[]>
  /** A kind was read to its end. Its suspects are looked at, whatever becomes of this sweep. */
  kindRead(broker: BrokerKey, kind: ObjectKind, suspects: readonly RegistrationId[], nowMs: number): Promise<void>
  /** Everything was read; the next sweep begins anew, its listings at `nextListing`. */
  allRead(broker: BrokerKey, nextListing: number): Promise<void>
  /** Objects that look like ours and were not expected: those that the ledger does not know go on record. */
  lookalikes(broker: BrokerKey, refs: readonly ObjectRef[]): Promise<void>
  /** Where listings begin, and how many the broker's objects of ours would take. */
  listings(broker: BrokerKey): Promise<{ readonly from: number; readonly count: number }>
}

export interface DueLoginsRequest {
  readonly nowMs: number
  readonly periodMs: number
  readonly limit: number
}

export interface ConfirmedLogin {
  readonly pair: Pair
  readonly consumerKey: ConsumerKey
  readonly version: number
}

export interface DueLogin extends ConfirmedLogin {
  /** When each protocol was last probed with this version. */
  readonly checkedAtMs: Readonly<Partial<Record<Protocol, number>>>
}
