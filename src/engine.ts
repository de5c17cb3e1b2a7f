import { setMaxListeners } from 'node:events'
import type { BrokerCircuits } from './broker-circuits.ts'
import type { BrokerConnections } from './broker-connections.ts'
import type { Lane } from './brokers/solace/request-limiter.ts'
import type { ObjectKind, ObjectRef } from './domain/broker-object.ts'
import type { PolicyMode } from './domain/catalogue.ts'
import { codeOf, errorLine, KeymeshError } from './domain/errors.ts'
import type { RunId } from './domain/ids.ts'
import { findOrphans } from './reconcile/lookalikes.ts'
import type { Plan } from './reconcile/plan.ts'
import type { PlanSettings } from './reconcile/plan-registration.ts'
import type { BrokerPort } from './reconcile/ports.ts'
import { planNow, type ReconcileOutcome, reconcileRegistration, recordFailure } from './reconcile/reconcile.ts'
import type { Pair, ReconcileStore, RunTrigger } from './reconcile/store-port.ts'
import { findSuspects, type SweepProgress, type SweepResult, sweepBroker } from './reconcile/sweep.ts'
import type { BrokerKey, SweepMemory, SweepStore } from './reconcile/sweep-port.ts'
import type { Verifier } from './reconcile/verify.ts'
import { type VerifyBrokerRequest, type VerifyFinding, verifyBroker } from './reconcile/verify-broker.ts'
import { batched } from './store/batched.ts'
import {
  type Reachability,
  recordReachability,
  recordSweepEnd,
  recordSweepProgress,
  recordSweepStart,
} from './store/broker-status.ts'
import type { Database } from './store/database.ts'
import { notInLedger } from './store/orphans.ts'
import { refusePausedBroker, refusePausedPair } from './store/pause.ts'
import { readPolicy } from './store/policies.ts'
import type { UrgentRuns } from './urgent-runs.ts'

export interface EngineDependencies {
  readonly db: Database
  readonly connections: Pick<BrokerConnections, 'port'>
  readonly circuits: BrokerCircuits
  readonly urgent: UrgentRuns
  readonly reconcileStore: ReconcileStore
  readonly sweepStore: SweepStore
  readonly sweepMemory: SweepMemory
  /** The most listings of members in one sweep. */
  readonly maxListings: number
  readonly now: () => number
  readonly newRunId: () => RunId
  readonly instance: string
  readonly leaseMs: number
  readonly concurrency: number
  readonly settings: Omit<PlanSettings, 'allowDisruptive'>
  /** Logs in with what was written; null: nothing is proved. */
  readonly verifier: Verifier | null
  /** Each credential is proved by a login once in this time. */
  readonly proveEveryMs: number
  /** Told of each run; hands on what it comes to. */
  readonly observe?: ObserveRun
}

export interface ObservedRun {
  readonly kind: 'reconcile' | 'sweep'
  readonly broker: BrokerKey
  readonly trigger: RunTrigger
}

export type ObserveRun = <Result>(run: ObservedRun, work: () => Promise<Result>) => Promise<Result>

export interface RunOptions {
  readonly trigger: RunTrigger
  /** An operator accepts that live clients drop. */
  readonly allowDisruptive?: boolean
  readonly signal?: AbortSignal
}

export interface SweepOptions extends RunOptions {
  readonly onProgress?: (progress: SweepProgress) => void
}

/** What jobs, commands and the API ask for: one pair, one broker, or a plan of either. */
export class Engine {
  readonly #dependencies: EngineDependencies
  /** Many runs meet the same sick broker at once: what they write about it goes out together. */
  readonly #recordReachability: (news: Reachability) => Promise<unknown>

  constructor(dependencies: EngineDependencies) {
    this.#dependencies = dependencies
    const { db } = dependencies
    this.#recordReachability = batched(async (news) => {
      await recordReachability(db, news)
      return news
    })
  }

  /** Throws PAUSED when the pair, its broker or its account is, BROKER_RESTING while a sick broker rests. */
  reconcilePair(pair: Pair, options: RunOptions): Promise<ReconcileOutcome> {
    const run = () =>
      this.#observe('reconcile', pair, options, () =>
        this.#circuit(pair, options, () => this.#reconcilePair(pair, options)),
      )
    return isAwaited(options) ? this.#dependencies.urgent.during(run) : run()
  }

  async #reconcilePair(pair: Pair, options: RunOptions): Promise<ReconcileOutcome> {
    // It begins before it has a lease, which a paused pair does not give.
    if (options.trigger === 'revocation') await refusePausedPair(this.#dependencies.db, pair)
    const broker = await this.#reachable(pair, options.signal).catch(async (error: unknown) => {
      await this.#recordUnreached(pair, options, error)
      throw error
    })
    const outcome = await reconcileRegistration(this.#reconcileDependencies(broker, options), { pair, ...options })
    // A paused pair gives no lease; only then is it asked for.
    if (outcome.status === 'busy') await refusePausedPair(this.#dependencies.db, pair)
    return outcome
  }

  /** Throws PAUSED when the broker or its account is, BROKER_RESTING while a sick broker rests. */
  sweep(key: BrokerKey, options: SweepOptions): Promise<SweepResult> {
    return this.#observe('sweep', key, options, () => this.#sweep(key, options))
  }

  async #sweep(key: BrokerKey, options: SweepOptions): Promise<SweepResult> {
    const { db, now, newRunId, circuits } = this.#dependencies
    await refusePausedBroker(db, key)
    if (!isForced(options)) await circuits.refuseResting(key)
    const runId = newRunId()
    await recordSweepStart(db, { broker: key, runId, trigger: options.trigger, atMs: now() })
    let recordedAtMs = now()
    const onProgress = (progress: SweepProgress): void => {
      options.onProgress?.(progress)
      if (now() - recordedAtMs < PROGRESS_EVERY_MS) return
      recordedAtMs = now()
      // Progress is a courtesy: when it cannot be written, the sweep's own statements will say so.
      recordSweepProgress(db, key, progress).catch(() => undefined)
    }
    // A sweep writes good news in any case: another process may have written bad news meanwhile.
    this.#recordedAtMs.delete(nameOf(key))
    try {
      // A first answer ends a broker's rest: other work does not wait for the end of the sweep.
      const broker = await this.#circuit(key, options, () => this.#reachable(key, options.signal, 'background'))
      const dependencies = { ...this.#reconcileDependencies(broker, options), ...this.#sweepDependencies() }
      const { signal, trigger } = options
      const result = await this.#circuit(key, options, () =>
        sweepBroker(dependencies, { broker: key, trigger, onProgress, ...(signal && { signal }) }),
      )
      await recordSweepEnd(db, { broker: key, runId, atMs: now(), result, error: null })
      return result
    } catch (error) {
      const failure = { code: codeOf(error), message: errorLine(error) }
      await recordSweepEnd(db, { broker: key, runId, atMs: now(), result: null, error: failure })
      throw error
    }
  }

  /** The plan of one pair, as a run would execute it now. Null when the store does not know the pair. */
  async planPair(pair: Pair, options: Omit<RunOptions, 'trigger'> = {}): Promise<Plan | null> {
    const { reconcileStore, now, settings } = this.#dependencies
    const broker = await this.#reachable(pair, options.signal)
    const facts = await reconcileStore.facts(pair)
    if (facts === null) return null
    const allowDisruptive = options.allowDisruptive ?? false
    const planned = await planNow({ broker, now, settings: { ...settings, allowDisruptive } }, facts, options.signal)
    return planned.plan
  }

  /** Objects of the broker that look like ours and are not in the ledger. */
  async orphans(key: BrokerKey, signal?: AbortSignal): Promise<readonly ObjectRef[]> {
    const broker = await this.#reachable(key, signal)
    return findOrphans(broker, (refs) => notInLedger(this.#dependencies.db, key, refs), signal)
  }

  /**
   * Deletes these of them, client usernames before the ACL profiles that they use. Answers those that were deleted.
   * Throws DELETION_NOT_ALLOWED where the broker's policy lets nothing be deleted.
   */
  async deleteOrphans(
    key: BrokerKey,
    wanted: (orphan: ObjectRef) => boolean,
    signal?: AbortSignal,
  ): Promise<readonly ObjectRef[]> {
    const { db } = this.#dependencies
    await refusePausedBroker(db, key)
    const policy = await readPolicy(db, key.accountId, key.brokerId)
    if (policy !== null && policy.mode !== 'full') throw deletionNotAllowed(key, policy.mode)
    const broker = await this.#reachable(key, signal)
    const chosen = (await this.orphans(key, signal)).filter(wanted)
    const inOrder = [...chosen].sort((a, b) => DELETION_ORDER.indexOf(a.kind) - DELETION_ORDER.indexOf(b.kind))
    for (const orphan of inOrder) {
      signal?.throwIfAborted()
      await broker.delete(orphan, signal)
    }
    return inOrder
  }

  /** The plans of all registrations of a broker that have one, as a sweep would find them. */
  async *planBroker(key: BrokerKey, options: Omit<RunOptions, 'trigger'> = {}): AsyncIterable<Plan> {
    const broker = await this.#reachable(key, options.signal, 'background')
    const dependencies = { broker, settings: this.#dependencies.settings, ...this.#sweepDependencies() }
    const { suspects } = await findSuspects(dependencies, { broker: key, ...options })
    for await (const registrationId of suspects) {
      const plan = await this.planPair({ ...key, registrationId }, options)
      if (plan !== null) yield plan
    }
  }

  /**
   * Logs in now with every credential whose password the broker has confirmed; a paused broker is read, too. Throws
   * LOGINS_OFF when this installation proves nothing by logins.
   */
  async *verify(key: BrokerKey, options: Omit<VerifyBrokerRequest, 'broker'> = {}): AsyncIterable<VerifyFinding> {
    const { verifier, reconcileStore: store, sweepStore } = this.#dependencies
    if (verifier === null) throw loginsOff()
    const broker = { accountId: key.accountId, brokerId: key.brokerId }
    await this.#reachable(broker, options.signal)
    yield* verifyBroker({ verifier, store, sweepStore }, { broker, ...options })
  }

  /** Reads the broker's facts and records whether it answered. */
  async #reachable(key: BrokerKey, signal?: AbortSignal, lane: Lane = 'foreground'): Promise<BrokerPort> {
    const { connections, now } = this.#dependencies
    // Every request that is under way listens to the run's signal.
    if (signal !== undefined) setMaxListeners(0, signal)
    const broker = { accountId: key.accountId, brokerId: key.brokerId }
    try {
      const port = await connections.port(broker, lane)
      const facts = await port.facts(signal)
      await this.#record(key, { sempVersion: facts.sempVersion, error: null })
      return port
    } catch (error) {
      // A broker that is gone from the store has no status to keep.
      if (codeOf(error) === 'BROKER_UNUSABLE') throw error
      this.#recordedAtMs.delete(nameOf(key))
      const failure = { code: codeOf(error), message: errorLine(error) }
      await this.#recordReachability({ broker, atMs: now(), sempVersion: null, error: failure })
      throw error
    }
  }

  async #recordUnreached(pair: Pair, { trigger, signal }: RunOptions, error: unknown): Promise<void> {
    const { reconcileStore: store, now, newRunId, instance: holder, leaseMs } = this.#dependencies
    // Who is told to stop has found out nothing. When the failure cannot be recorded, it is still the one that tells.
    if (signal?.aborted !== true) {
      await recordFailure({ store, now, newRunId, holder, leaseMs }, { pair, trigger }, error).catch(() => undefined)
    }
  }

  #observe<Result>(
    kind: ObservedRun['kind'],
    { accountId, brokerId }: BrokerKey,
    { trigger }: RunOptions,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const { observe } = this.#dependencies
    return observe === undefined ? work() : observe({ kind, broker: { accountId, brokerId }, trigger }, work)
  }

  #circuit<Result>({ accountId, brokerId }: BrokerKey, options: RunOptions, work: () => Promise<Result>) {
    return this.#dependencies.circuits.run({ accountId, brokerId }, work, { force: isForced(options) })
  }

  readonly #recordedAtMs = new Map<string, number>()

  /** Good news is written at most every few seconds; bad news and the change back are written at once. */
  async #record(key: BrokerKey, news: { readonly sempVersion: string; readonly error: null }): Promise<void> {
    const { now } = this.#dependencies
    const name = nameOf(key)
    if (now() - (this.#recordedAtMs.get(name) ?? Number.NEGATIVE_INFINITY) < REACHABLE_EVERY_MS) return
    this.#recordedAtMs.set(name, now())
    await this.#recordReachability({
      broker: { accountId: key.accountId, brokerId: key.brokerId },
      atMs: now(),
      ...news,
    })
  }

  #reconcileDependencies(broker: BrokerPort, options: RunOptions) {
    const { reconcileStore, now, newRunId, instance, leaseMs, settings, verifier } = this.#dependencies
    const planSettings = { ...settings, allowDisruptive: options.allowDisruptive ?? false }
    const shell = { broker, store: reconcileStore, now, newRunId, holder: instance, leaseMs, settings: planSettings }
    return verifier === null ? shell : { ...shell, verifier }
  }

  #sweepDependencies() {
    const { sweepStore, sweepMemory: memory, concurrency, proveEveryMs, maxListings } = this.#dependencies
    return { sweepStore, memory, concurrency, proveEveryMs, maxListings }
  }
}

const loginsOff = (): KeymeshError =>
  new KeymeshError({
    code: 'LOGINS_OFF',
    fate: 'stop',
    message: 'Credentials are not proved by logging in: KEYMESH_LOGINS is false.',
    hint: 'Set KEYMESH_LOGINS to true; `messaging.logins.off` of a broker switches single protocols off.',
  })

const deletionNotAllowed = ({ brokerId }: BrokerKey, mode: PolicyMode): KeymeshError =>
  new KeymeshError({
    code: 'DELETION_NOT_ALLOWED',
    fate: 'stop',
    message: `Nothing is deleted on broker ${brokerId}: its policy has the mode ${mode}.`,
    hint: 'Set `policy.mode` of the broker to full, or delete the objects by other means.',
  })

/** A person who asks is not made to wait for a broker that rests, nor is one who ends a credential. */
const isForced = ({ trigger }: RunOptions): boolean => trigger === 'operator' || trigger === 'revocation'

const isAwaited = (options: RunOptions): boolean => options.trigger === 'on-demand' || isForced(options)

const nameOf = ({ accountId, brokerId }: BrokerKey): string => JSON.stringify([accountId, brokerId])
const DELETION_ORDER: readonly ObjectKind[] = ['queue', 'clientUsername', 'aclProfile', 'clientProfile']
const PROGRESS_EVERY_MS = 2000
const REACHABLE_EVERY_MS = 5000
