import type { ObjectKind } from '../domain/broker-object.ts'
import type { Protocol } from '../domain/catalogue.ts'
import type { Plan } from '../reconcile/plan.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { SweepProgress, SweepResult } from '../reconcile/sweep.ts'
import type { VerifyFinding } from '../reconcile/verify-broker.ts'
import type { DriftView } from '../store/drift-view.ts'
import type { NamedBrokerExplanation, ProductExplanation } from '../store/explain-product.ts'
import type { RegistrationExplanation } from '../store/explain-registration.ts'
import type { RemoteCatalogueStatus } from '../store/followed-catalogues.ts'
import type { PauseView } from '../store/pause.ts'
import type { BrokerStatusView } from '../store/status-view.ts'
import type { ImportEvent, ImportRequest } from './portal-import.ts'

/**
 * What the operators of an account ask for. It has two adapters, held to one contract: the store and the engine of this
 * process, and the API of a service that runs elsewhere. Whatever is answered is plain JSON data and holds no secret.
 *
 * A name that the account does not know is an InvalidInputError whose problem has the path `brokerId`, `registrationId`
 * or `consumerKey`. What takes long answers event by event, and ends when the signal aborts or the reader leaves.
 */
export interface Operations {
  /** How each broker stands; nothing for one that is not known. */
  status(brokerId?: string): Promise<readonly BrokerStatusView[]>
  /** Null when the account follows no other service. */
  followedCatalogue(): Promise<RemoteCatalogueStatus | null>
  /** What a run would do now; registrations with nothing to do are left out. Throws at the first broker that fails. */
  plans(request: RunRequest, signal: AbortSignal): AsyncIterable<Plan>
  /** Makes brokers match now. A broker that fails is told of beside the others. */
  reconcile(request: RunRequest, signal: AbortSignal): AsyncIterable<RunEvent>
  /** Writes stored passwords again. */
  reapply(request: ReapplyRequest, signal: AbortSignal): AsyncIterable<RunEvent>
  /** Accepts the withdrawals that were refused on a broker for being too many; nothing is told when there is none. */
  confirmWithdrawals(brokerId: string, signal: AbortSignal): AsyncIterable<RunEvent>
  /** Logs in with every confirmed credential. Throws LOGINS_OFF where nothing is proved by logins. */
  verify(request: VerifyRequest, signal: AbortSignal): AsyncIterable<VerifyEvent>
  /** Newest first. */
  drift(request: DriftRequest): Promise<readonly DriftView[]>
  /** At most a thousand. */
  pauses(): Promise<readonly PauseView[]>
  pause(target: PauseTarget): Promise<void>
  /** Answers how many registrations lag on a broker there, counted up to MAX_LAGGING. */
  resume(target: PauseTarget): Promise<number>
  /** Null when there is none; the same below. */
  explainProduct(id: string): Promise<ProductExplanation | null>
  explainBroker(id: string): Promise<NamedBrokerExplanation | null>
  explainRegistration(id: string): Promise<RegistrationExplanation | null>
  /** Objects that look like ours and are not in the ledger, of one broker or all. */
  orphans(brokerId: string | undefined, signal: AbortSignal): AsyncIterable<Orphan>
  /** Deletes those of a broker that are chosen, then tells which were deleted and which are left. */
  deleteOrphans(request: OrphanDeletion, signal: AbortSignal): AsyncIterable<Orphan>
  adopt(adoption: AdoptRequest): Promise<void>
  /** Throws InvalidInputError with every problem, or MASS_DELETE_GUARD; nothing is written then. */
  importPortal(request: ImportRequest, signal: AbortSignal): AsyncIterable<ImportEvent>
}

export const MAX_LAGGING = 1000
export const MAX_PAUSES = 1000

export interface RunRequest {
  readonly brokerId?: string
  readonly registrationId?: string
  /** Also actions that drop live clients. */
  readonly allowDisruptive?: boolean
}

/** At least one of registration and consumer key. */
export interface ReapplyRequest {
  readonly brokerId?: string
  readonly registrationId?: string
  readonly consumerKey?: string
}

export interface VerifyRequest {
  readonly brokerId?: string
  readonly registrationId?: string
  readonly protocol?: Protocol
}

export interface DriftRequest {
  readonly brokerId?: string
  readonly registrationId?: string
  readonly openOnly: boolean
  readonly limit: number
}

export type PauseTarget =
  | { readonly scope: 'account'; readonly id: null }
  | { readonly scope: 'broker' | 'registration'; readonly id: string }

export interface OrphanDeletion {
  readonly brokerId: string
  /** Null: every one. */
  readonly only: { readonly kind: string; readonly name: string } | null
}

export interface AdoptRequest {
  readonly brokerId: string
  readonly kind: ObjectKind
  readonly name: string
}

export interface Orphan {
  readonly brokerId: string
  readonly kind: ObjectKind
  readonly name: string
  readonly deleted: boolean
}

export interface Failed {
  readonly code: string
  readonly error: string
}

/** What a run comes to, broker by broker or registration by registration. */
export type RunEvent =
  | { readonly type: 'progress'; readonly brokerId: string; readonly progress: SweepProgress }
  | { readonly type: 'broker'; readonly brokerId: string; readonly result: SweepResult }
  | ({ readonly type: 'broker-failed'; readonly brokerId: string } & Failed)
  | { readonly type: 'registration'; readonly pair: Pair; readonly outcome: PairOutcome }
  | ({ readonly type: 'registration-failed'; readonly pair: Pair } & Failed)

export type PairOutcome =
  /** Another worker has it. */
  | { readonly status: 'busy' }
  | { readonly status: 'done' | 'gone'; readonly writes: number; readonly plan: Plan | null }

export type VerifyEvent =
  /** Comes first, once for each broker that is asked. */
  | { readonly type: 'broker'; readonly brokerId: string }
  | { readonly type: 'finding'; readonly brokerId: string; readonly finding: VerifyFinding }
  | ({ readonly type: 'broker-failed'; readonly brokerId: string } & Failed)
