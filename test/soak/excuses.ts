import type { Difference } from './differences.ts'
import type { FaultKind } from './fault-kinds.ts'
import type { Bounds } from './settings.ts'

interface BrokerPast {
  /** Null: nothing is wrong with it now. */
  fault: { readonly kind: FaultKind; readonly fromMs: number; killed: boolean } | null
  /** Of faults that are over, while something may still follow from them. */
  past: readonly FaultKind[]
  excusedUntilMs: number
}

/** What was wrong with which broker when, and what it excuses. */
export class Excuses {
  readonly #brokers: readonly BrokerPast[]
  readonly #bounds: Bounds
  #leasesEndMs = 0

  constructor(brokers: number, bounds: Bounds) {
    this.#brokers = Array.from({ length: brokers }, () => ({ fault: null, past: [], excusedUntilMs: 0 }))
    this.#bounds = bounds
  }

  began(broker: number, kind: FaultKind, atMs: number): void {
    const past = this.#past(broker)
    if (atMs > past.excusedUntilMs) past.past = []
    past.fault = { kind, fromMs: atMs, killed: false }
  }

  ended(broker: number, atMs: number): void {
    const past = this.#past(broker)
    if (past.fault === null) return
    const { recoveryMs, proberMs } = this.#bounds
    const { kind, fromMs, killed } = past.fault
    past.past = [...past.past, kind]
    past.excusedUntilMs = Math.max(past.excusedUntilMs, atMs + recoveryMs(atMs - fromMs) + (killed ? proberMs : 0))
    past.fault = null
  }

  /** Who tried a sick broker may be dead; nobody else tries it for a while, nor takes what the dead one held. */
  killed(atMs: number): void {
    this.#leasesEndMs = atMs + this.#bounds.leaseMs
    for (const past of this.#brokers) {
      if (past.fault !== null) past.fault.killed = true
      else if (past.excusedUntilMs > atMs) past.excusedUntilMs += this.#bounds.proberMs
    }
  }

  isFaulty(broker: number): boolean {
    return this.#past(broker).fault !== null
  }

  faulty(): readonly number[] {
    return [...this.#brokers.keys()].filter((broker) => this.isFaulty(broker))
  }

  /** The faults that what goes wrong on the broker now may come from. */
  reasons(broker: number, atMs: number): readonly FaultKind[] {
    const { fault, past, excusedUntilMs } = this.#past(broker)
    return [...(fault === null ? [] : [fault.kind]), ...(fault !== null || atMs <= excusedUntilMs ? past : [])]
  }

  /** Age of a difference, in which the broker could have been worked on; 0 while it could not. */
  ageMs({ broker, sinceMs }: Pick<Difference, 'broker' | 'sinceMs'>, atMs: number): number {
    const { fault, excusedUntilMs } = this.#past(broker)
    return fault === null ? Math.max(0, atMs - Math.max(sinceMs, excusedUntilMs, this.#leasesEndMs)) : 0
  }

  isOverdue(difference: Difference, atMs: number): boolean {
    return !this.isFaulty(difference.broker) && this.ageMs(difference, atMs) > difference.boundMs
  }

  #past(broker: number): BrokerPast {
    const past = this.#brokers[broker]
    if (past === undefined) throw new RangeError(`there is no broker ${broker}`)
    return past
  }
}
