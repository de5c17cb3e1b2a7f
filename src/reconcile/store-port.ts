import type { BrokerObject, ObjectRef } from '../domain/broker-object.ts'
import type { Protocol } from '../domain/catalogue.ts'
import type { Fate } from '../domain/errors.ts'
import type { AccountId, BrokerId, ConsumerKey, RegistrationId, RunId } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import type { NegativeControl, Verdict } from '../domain/verdict.ts'
import type { LedgerChanges } from './ledger.ts'
import type { Drift } from './plan.ts'
import type { RegistrationFacts } from './plan-registration.ts'

export interface Pair {
  readonly accountId: AccountId
  readonly registrationId: RegistrationId
  readonly brokerId: BrokerId
}

/** The right to write for one pair, until `untilMs` unless renewed. The token orders the holders. */
export interface Lease {
  readonly pair: Pair
  readonly holder: string
  readonly token: number
}

/** What the ledger learns from the broker's answers. */
export interface Confirmation {
  readonly object: ObjectRef
  readonly applied: Pick<BrokerObject, 'attributes' | 'members'> | null
  readonly credentialVersion: number | null
  /** Also clears a request to write the password again. */
  readonly passwordWritten: boolean
  /** It was written because a login with it was refused. */
  readonly passwordReapplied: boolean
}

export type DriftAction = 'repaired' | 'held' | 'reported' | 'failed'
export interface DriftRecord {
  readonly drift: Drift
  readonly action: DriftAction
}

/** Why a run is made. A `revocation` ends credentials, before anything else. */
export type RunTrigger = 'revocation' | 'on-demand' | 'poll' | 'sweep' | 'operator'

export type PairState = 'in-sync' | 'held' | 'conflict' | 'refused' | 'error' | 'lagging'

export interface FinishedRun {
  readonly runId: RunId
  readonly trigger: RunTrigger
  readonly startedAtMs: number
  readonly finishedAtMs: number
  /** What the run was about; null when it did not get to know. A pair that is past it lags, whatever the run says. */
  readonly generation: number | null
  readonly state: PairState
  readonly reason: string | null
  readonly error: { readonly code: string; readonly fate: Fate; readonly message: string } | null
  /** Set when the broker has all that this generation wants. */
  readonly reachedGeneration: number | null
  /** When to look again although nothing changed; null: not before the next change or sweep. */
  readonly dueAtMs: number | null
  readonly stepsRun: number
  readonly stepsHeld: number
  /** The first of these steps, for a person. */
  readonly detail: RunDetail
  readonly confirmations: readonly Confirmation[]
  readonly ledgerChanges: LedgerChanges
  readonly drift: readonly DriftRecord[]
  readonly logins: readonly LoginRecord[]
}

/** A line for each step, bounded; the same words as in a plan. Holds no secret. */
export interface RunDetail {
  readonly ran: readonly string[]
  readonly held: readonly string[]
}

/** One probe of a credential, as it is kept: the last of each protocol. */
export interface LoginRecord {
  readonly consumerKey: ConsumerKey
  readonly protocol: Protocol
  readonly credentialVersion: number
  readonly verdict: Verdict
  readonly checkedAtMs: number
}

/** What a deliberately wrong password came to: only `refused` makes an accepted login a proof. */
export interface LoginControl {
  readonly protocol: Protocol
  readonly outcome: NegativeControl
  /** What the broker said, or why nothing was proved; no secret. */
  readonly detail: string
  readonly checkedAtMs: number
}

export interface StoredSecret {
  readonly version: number
  readonly secret: Secret
}

/** What the reconcile shell needs of the store. Every method may batch with its neighbours; none holds a transaction. */
export interface ReconcileStore {
  /** Null when another holder has the pair, or the store has no such pair. */
  acquire(pair: Pair, holder: string, ttlMs: number): Promise<Lease | null>
  /** Null when the registration or the broker is gone from the store. */
  facts(pair: Pair): Promise<RegistrationFacts | null>
  /** Asked before each write: the lease is still ours (and is renewed) and the generation is still this one. */
  mayWrite(lease: Lease, generation: number, ttlMs: number): Promise<boolean>
  /**
   * The intent to create, after the object was seen absent and before it is sent; or an adoption. Writes nothing when
   * the lease was lost: `mayWrite` says so next. Answers which objects were another registration's until now: a
   * credential moved. Throws SUPERSEDED while a run of that registration is under way.
   */
  intend(lease: Lease, entries: readonly Intent[]): Promise<readonly ObjectRef[]>
  /** What the last probes of the registration's live credentials on the broker said. */
  logins(pair: Pair): Promise<readonly LoginRecord[]>
  secret(pair: Pair, consumerKey: ConsumerKey): Promise<StoredSecret | null>
  /**
   * Writes the whole outcome and gives the lease back. False when the lease was lost: nothing is written then. Access
   * requests follow: LIVE when all their brokers have the generation; in ERROR, with the reason, when a run ended in a
   * conflict, a refusal or an error that stops, or in three errors in a row before the generation was ever reached.
   */
  finish(lease: Lease, run: FinishedRun): Promise<boolean>
  /**
   * A run that had lost its lease sent writes for these objects, which may have come after those of the next holder: the
   * registration's generation is raised, and passwords of client usernames among them are due. A run that was about an
   * earlier generation leaves them due.
   */
  distrust(pair: Pair, objects: readonly ObjectRef[]): Promise<void>
}

export interface Intent {
  readonly object: ObjectRef
  readonly shared: boolean
  readonly origin: 'created' | 'adopted'
}
