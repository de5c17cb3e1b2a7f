import { type ObjectKind, objectKey } from '../../src/domain/broker-object.ts'
import { runId } from '../../src/domain/ids.ts'
import type { RegistrationOnBroker } from '../../src/domain/registration.ts'
import type { LedgerEntry } from '../../src/reconcile/ledger.ts'
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
import type { Verifier } from '../../src/reconcile/verify.ts'
import { FakeBroker, type FakeBrokerOptions } from './fake-broker.ts'
import { MemoryStore } from './memory-store.ts'
import { NOW_MS, PAIR, SETTINGS } from './sample.ts'

export interface RunOptions {
  readonly settings?: Partial<PlanSettings>
  readonly broker?: BrokerPort
  readonly store?: ReconcileStore
  readonly holder?: string
  readonly verifier?: Verifier
  /** Of a sweep; default 4. */
  readonly concurrency?: number
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
      ...(options.verifier && { verifier: options.verifier }),
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
    const dependencies = {
      ...this.dependencies(options),
      sweepStore: this.store,
      concurrency: options.concurrency ?? 4,
      proveEveryMs: 86_400_000,
      maxListings: 1_000_000,
    }
    return sweepBroker(dependencies, { broker: PAIR, trigger: 'sweep', ...request })
  }

  /** What was written on the broker while `work` ran. */
  async writesDuring(work: () => Promise<unknown>): Promise<FakeBroker['writes']> {
    const before = this.broker.writes.length
    await work()
    return this.broker.writes.slice(before)
  }
}

/** A world that knows one registration, not yet on the broker. */
export function worldOf(
  registration: RegistrationOnBroker,
  options: ConstructorParameters<typeof MemoryWorld>[0] = {},
): MemoryWorld {
  const world = new MemoryWorld(options)
  world.store.put(PAIR, { registration })
  return world
}

/** All that is on the broker, passwords included. */
export const snapshot = (broker: FakeBroker) =>
  broker.keys().map((key) => {
    const [kind = '', ...rest] = key.split('/')
    const name = rest.join('/')
    return [key, broker.peek({ kind: kind as ObjectKind, name }), broker.passwords.get(name)]
  })

export const ledgerOf = (world: MemoryWorld): Readonly<Record<string, LedgerEntry>> =>
  Object.fromEntries(world.store.ledger(PAIR).map((entry) => [objectKey(entry.object), entry]))

/** The port of a store as a plain object, to replace single methods of. */
export const reconcileStore = (store: MemoryStore): ReconcileStore => ({
  acquire: store.acquire.bind(store),
  facts: store.facts.bind(store),
  mayWrite: store.mayWrite.bind(store),
  intend: store.intend.bind(store),
  logins: store.logins.bind(store),
  secret: store.secret.bind(store),
  finish: store.finish.bind(store),
  distrust: store.distrust.bind(store),
})

/** The port of a broker as a plain object, to replace single methods of. */
export function brokerPort(broker: FakeBroker): BrokerPort {
  return {
    facts: broker.facts.bind(broker),
    get: broker.get.bind(broker),
    list: broker.list.bind(broker),
    members: broker.members.bind(broker),
    queuedMessages: broker.queuedMessages.bind(broker),
    connections: broker.connections.bind(broker),
    create: broker.create.bind(broker),
    update: broker.update.bind(broker),
    addMember: broker.addMember.bind(broker),
    removeMember: broker.removeMember.bind(broker),
    delete: broker.delete.bind(broker),
    close: broker.close.bind(broker),
  }
}
