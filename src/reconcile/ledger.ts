import { type BrokerObject, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { RegistrationId } from '../domain/ids.ts'

/** One row of the ledger: a broker object that Keymesh created, adopted, or is about to create. */
export interface LedgerEntry {
  readonly object: ObjectRef
  /** Null for objects that all registrations of a message VPN share. */
  readonly registrationId: RegistrationId | null
  readonly origin: 'created' | 'adopted'
  /** The state that the broker last confirmed; null while only the intent to create is recorded. */
  readonly applied: Pick<BrokerObject, 'attributes' | 'members'> | null
  readonly confirmedCredentialVersion: number | null
  /** An operator asked for the password to be written again. */
  readonly passwordDue: boolean
  /** The broker refused a login with the confirmed password of this version; absent: it did not. */
  readonly refusedLogin?: RefusedLogin
  readonly withdrawnAtMs: number | null
}

export interface RefusedLogin {
  readonly credentialVersion: number
  /** The password was written again for it; once is all that a machine tries. */
  readonly reapplied: boolean
}

export type Ledger = ReadonlyMap<string, LedgerEntry>

/** In the order of the keys, so that the order in which the store answers never shows. */
export const ledgerOf = (entries: readonly LedgerEntry[]): Ledger =>
  new Map(entries.map((entry) => [objectKey(entry.object), entry] as const).sort(([a], [b]) => (a < b ? -1 : 1)))

/** What a run writes into the ledger, in this order: forget, withdraw, confirm. */
export interface LedgerChanges {
  /** Gone from the broker and from the desired state. */
  readonly forget: readonly ObjectRef[]
  /** No longer wanted since `nowMs`; starts the grace period. */
  readonly withdraw: readonly ObjectRef[]
  /** Wanted again before the grace period ended. */
  readonly restore: readonly ObjectRef[]
}
