import type { AccountId } from '../domain/ids.ts'
import { brokerId as toBrokerId } from '../domain/ids.ts'
import type { Engine } from '../engine.ts'
import type { Plan } from '../reconcile/plan.ts'
import { isEmpty } from '../reconcile/render.ts'
import type { Pair } from '../reconcile/store-port.ts'
import { type AuditActor, audit } from '../store/audit.ts'
import type { Database } from '../store/database.ts'
import { type DriftView, readDrift } from '../store/drift-view.ts'
import { explainBrokerUse, explainProduct } from '../store/explain-product.ts'
import { explainRegistration } from '../store/explain-registration.ts'
import { readRemoteStatus } from '../store/followed-catalogues.ts'
import { importPortalFile } from '../store/import-portal-file.ts'
import { brokerExists, registrationExists } from '../store/operations-lookup.ts'
import { confirmWithdrawals, lagsOf, recordAdoption, requestPasswords } from '../store/pairs.ts'
import { type PauseView, pause, readPauses, resume, setBrokerPaused } from '../store/pause.ts'
import type { RandomSource } from '../store/random-source.ts'
import type { Sealer } from '../store/sealer-port.ts'
import { readStatus } from '../store/status-view.ts'
import {
  type AdoptRequest,
  type DriftRequest,
  MAX_LAGGING,
  MAX_PAUSES,
  type Operations,
  type Orphan,
  type OrphanDeletion,
  type PauseTarget,
  type ReapplyRequest,
  type RunEvent,
  type RunRequest,
  type VerifyEvent,
  type VerifyRequest,
} from './operations.ts'
import type { ImportEvent, ImportRequest } from './portal-import.ts'
import { pairEvents, sweepEvents, verifyEvents } from './run-events.ts'
import { selectBrokers, selectPairs } from './select.ts'
import { unknownInput, unknownTarget } from './unknown-input.ts'

export interface StoreOperationsDependencies {
  readonly db: Database
  readonly accountId: AccountId
  readonly engine: OperatedEngine
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly sealer: Sealer
  readonly random: RandomSource
  /** Who pauses and adopts. */
  readonly who: AuditActor
}

export type OperatedEngine = Pick<
  Engine,
  'reconcilePair' | 'sweep' | 'planPair' | 'planBroker' | 'verify' | 'orphans' | 'deleteOrphans'
>

/** On the store and the engine of this process. */
export class StoreOperations implements Operations {
  readonly #own: StoreOperationsDependencies

  constructor(dependencies: StoreOperationsDependencies) {
    this.#own = dependencies
  }

  status(brokerId?: string) {
    return readStatus(this.#own.db, this.#own.accountId, brokerId)
  }

  followedCatalogue() {
    return readRemoteStatus(this.#own.db, this.#own.accountId)
  }

  async *plans(
    { brokerId, registrationId, allowDisruptive = false }: RunRequest,
    signal: AbortSignal,
  ): AsyncIterable<Plan> {
    const { engine } = this.#own
    const run = { signal, allowDisruptive }
    if (registrationId !== undefined) {
      for (const pair of await selectPairs(this.#own, registrationId, brokerId)) {
        const plan = await engine.planPair(pair, run)
        if (plan !== null && !isEmpty(plan)) yield plan
      }
      return
    }
    for (const broker of await selectBrokers(this.#own, brokerId)) {
      for await (const plan of engine.planBroker(broker, run)) if (!isEmpty(plan)) yield plan
    }
  }

  async *reconcile(
    { brokerId, registrationId, allowDisruptive = false }: RunRequest,
    signal: AbortSignal,
  ): AsyncIterable<RunEvent> {
    const { engine } = this.#own
    const run = { allowDisruptive, signal }
    if (registrationId === undefined) yield* sweepEvents(engine, await selectBrokers(this.#own, brokerId), run)
    else yield* pairEvents(engine, await selectPairs(this.#own, registrationId, brokerId), run)
  }

  async *importPortal({ portal, ...options }: ImportRequest): AsyncIterable<ImportEvent> {
    const { db, sealer, random, now: nowMs, accountId } = this.#own
    yield { type: 'progress', phase: options.dryRun ? 'comparing' : 'writing' }
    const result = await importPortalFile({ db, sealer, random, nowMs }, accountId, portal.file, options)
    yield { type: 'done', ...result, warnings: portal.file.warnings }
  }

  async *reapply(request: ReapplyRequest, signal: AbortSignal): AsyncIterable<RunEvent> {
    const { db, accountId, engine } = this.#own
    if (request.registrationId === undefined && request.consumerKey === undefined) {
      throw unknownInput(null, 'give a registration, a credential, or both')
    }
    const pairs = await requestPasswords(db, { accountId, ...request })
    if (pairs.length === 0) throw unknownInput(null, 'no client username that Keymesh holds on a broker matches')
    yield* pairEvents(engine, inOrder(pairs), { allowDisruptive: false, signal })
  }

  async *confirmWithdrawals(brokerId: string, signal: AbortSignal): AsyncIterable<RunEvent> {
    const { db, engine } = this.#own
    for (const broker of await selectBrokers(this.#own, brokerId)) {
      const pairs = await confirmWithdrawals(db, broker)
      yield* pairEvents(engine, inOrder(pairs), { allowDisruptive: false, signal })
    }
  }

  async *verify(request: VerifyRequest, signal: AbortSignal): AsyncIterable<VerifyEvent> {
    const { brokerId, registrationId } = request
    const targets =
      registrationId === undefined
        ? await selectBrokers(this.#own, brokerId)
        : await selectPairs(this.#own, registrationId, brokerId)
    yield* verifyEvents(this.#own.engine, targets, request, signal)
  }

  drift(request: DriftRequest): Promise<readonly DriftView[]> {
    return readDrift(this.#own.db, { accountId: this.#own.accountId, ...request })
  }

  async pauses(): Promise<readonly PauseView[]> {
    const { pauses } = await readPauses(this.#own.db, this.#own.accountId, { limit: MAX_PAUSES, offset: 0 })
    return pauses
  }

  pause(target: PauseTarget): Promise<void> {
    return this.#setPaused(target, true)
  }

  async resume(target: PauseTarget): Promise<number> {
    const { db, accountId } = this.#own
    await this.#setPaused(target, false)
    const { scope, id } = target
    const filter = id === null ? {} : scope === 'broker' ? { brokerId: id } : { registrationId: id }
    return (await lagsOf(db, { accountId, ...filter }, MAX_LAGGING)).length
  }

  explainProduct(id: string) {
    return explainProduct(this.#own.db, this.#own.accountId, id)
  }

  explainBroker(id: string) {
    return explainBrokerUse(this.#own.db, this.#own.accountId, id)
  }

  explainRegistration(id: string) {
    return explainRegistration(this.#own.db, this.#own.accountId, id)
  }

  async *orphans(brokerId: string | undefined, signal: AbortSignal): AsyncIterable<Orphan> {
    for (const broker of await selectBrokers(this.#own, brokerId)) {
      const left = await this.#own.engine.orphans(broker, signal)
      for (const { kind, name } of left) yield { brokerId: broker.brokerId, kind, name, deleted: false }
    }
  }

  async *deleteOrphans({ brokerId, only }: OrphanDeletion, signal: AbortSignal): AsyncIterable<Orphan> {
    for (const broker of await selectBrokers(this.#own, brokerId)) {
      const deleted = await this.#own.engine.deleteOrphans(
        broker,
        (orphan) => only === null || (orphan.kind === only.kind && orphan.name === only.name),
        signal,
      )
      for (const { kind, name } of deleted) yield { brokerId: broker.brokerId, kind, name, deleted: true }
    }
    yield* this.orphans(brokerId, signal)
  }

  async adopt({ brokerId, kind, name }: AdoptRequest): Promise<void> {
    const { db, who } = this.#own
    for (const broker of await selectBrokers(this.#own, brokerId)) {
      await recordAdoption(db, broker, { kind, name }, who.kind === 'host' ? 'command line' : who.name)
    }
  }

  /** Throws InvalidInputError when the account has no such broker or registration. */
  async #setPaused(target: PauseTarget, paused: boolean): Promise<void> {
    const { db, accountId, now, who } = this.#own
    const { scope, id } = target
    if (scope === 'broker') {
      if (!(await brokerExists(db, accountId, id))) throw unknownTarget(target)
      await setBrokerPaused(db, { accountId, brokerId: toBrokerId(id) }, paused)
    } else {
      if (id !== null && !(await registrationExists(db, accountId, id))) throw unknownTarget(target)
      const place = { accountId, registrationId: id }
      await (paused ? pause(db, place, who.name) : resume(db, place))
    }
    const what = `${scope === 'account' ? '' : `${scope}.`}${paused ? 'pause' : 'resume'}`
    await audit(db, { atMs: now(), accountId, who, what, subject: id ?? 'account', outcome: 'done' })
  }
}

const inOrder = (pairs: readonly Pair[]): readonly Pair[] =>
  pairs.toSorted((one, other) =>
    one.registrationId === other.registrationId
      ? compare(one.brokerId, other.brokerId)
      : compare(one.registrationId, other.registrationId),
  )

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
