import { runId } from '../../src/domain/ids.ts'
import type { PlannedRegistration, PlanSettings } from '../../src/reconcile/plan-registration.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'
import {
  planNow,
  type ReconcileDependencies,
  type ReconcileOutcome,
  reconcileRegistration,
} from '../../src/reconcile/reconcile.ts'
import type { Pair, ReconcileStore } from '../../src/reconcile/store-port.ts'
import { type SweepRequest, type SweepResult, sweepBroker } from '../../src/reconcile/sweep.ts'
import { FakeBroker, type FakeBrokerOptions } from './fake-broker.ts'
import { MemoryStore } from './memory-store.ts'
import { NOW_MS, PAIR, SETTINGS } from './sample.ts'

export interface RunOptions {
  readonly settings?: Partial<PlanSettings>
  readonly broker?: BrokerPort
  readonly store?: ReconcileStore
  readonly holder?: string
}

/** One broker and one store in memory, with a clock that stands still. */
export class MemoryWorld {
  nowMs = NOW_MS
  readonly broker: FakeBroker
  readonly store: MemoryStore
  #runs = 0

  constructor(options: FakeBrokerOptions & { readonly chunkSize?: number } = {}) {
    this.broker = new FakeBroker(options)
    this.store = new MemoryStore(() => this.nowMs, options.chunkSize)
  }

  dependencies(options: RunOptions = {}): ReconcileDependencies {
    return {
      broker: options.broker ?? this.broker,
      store: options.store ?? this.store,
      now: () => this.nowMs,
      newRunId: () => {
        this.#runs += 1
        return runId(`run-${this.#runs}`)
      },
      holder: options.holder ?? 'worker-1',
      leaseMs: 30_000,
      settings: { ...SETTINGS, ...options.settings },
    }
  }

  run(pair: Pair = PAIR, options: RunOptions = {}): Promise<ReconcileOutcome> {
    return reconcileRegistration(this.dependencies(options), { pair, trigger: 'on-demand' })
  }

  /** What a run would do now. */
  async plan(pair: Pair = PAIR, options: RunOptions = {}): Promise<PlannedRegistration> {
    const facts = await this.store.facts(pair)
    if (facts === null) throw new Error('the store does not know the pair')
    return planNow(this.dependencies(options), facts)
  }

  sweep(options: RunOptions = {}, request: Partial<SweepRequest> = {}): Promise<SweepResult> {
    const dependencies = { ...this.dependencies(options), sweepStore: this.store, concurrency: 4 }
    return sweepBroker(dependencies, { broker: PAIR, trigger: 'sweep', ...request })
  }

  /** What was written on the broker while `work` ran. */
  async writesDuring(work: () => Promise<unknown>): Promise<FakeBroker['writes']> {
    const before = this.broker.writes.length
    await work()
    return this.broker.writes.slice(before)
  }
}
