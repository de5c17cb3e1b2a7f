import { type Difference, differencesOf, differencesOn } from './differences.ts'
import type { TimedSample } from './growth.ts'
import { type Kept, keptProblems, keptRows } from './kept-rows.ts'
import { keyOf, type ObjectRecord } from './life-facts.ts'
import type { Soak } from './soak.ts'

/** What was accepted and done so far, for limits on what follows from it. */
export interface Doings {
  readonly touched: number
  readonly hands: number
  readonly faults: number
}

interface OpenDrift {
  readonly broker: number
  readonly key: string
  readonly atMs: number
}

/** Compares what should be true with what is. */
export class Checks {
  readonly samples: TimedSample[] = []
  /** Of what a hand did, from then until it was repaired. */
  longestDriftMs = 0
  readonly #soak: Soak
  #drift: OpenDrift[] = []
  #beganMs = 0

  constructor(soak: Soak) {
    this.#soak = soak
  }

  /** Random life begins now. */
  begin(): void {
    this.#beganMs = this.#soak.clock.nowMs
  }

  /** A hand was on it: it is watched until it is repaired. */
  watch(broker: number, object: Pick<ObjectRecord, 'kind' | 'name'>): void {
    this.#drift.push({ broker, key: keyOf(object), atMs: this.#soak.clock.nowMs })
  }

  /** How long each repair took is seen between checks. */
  look(): void {
    const { world, bounds, clock } = this.#soak
    this.#drift = this.#drift.filter(({ broker, key, atMs }) => {
      const record = world.life.records(broker).get(key)
      const hands = world.brokers[broker]?.hands
      if (record === undefined || hands === undefined) return false
      if (differencesOf(world.life, broker, record, hands, bounds).some(({ sinceMs }) => sinceMs <= clock.nowMs))
        return true
      this.longestDriftMs = Math.max(this.longestDriftMs, clock.nowMs - atMs)
      return false
    })
  }

  differences(): readonly Difference[] {
    const { world, bounds } = this.#soak
    return world.brokers.flatMap(({ hands }, broker) => differencesOn(world.life, broker, hands, bounds))
  }

  /** All that can be told while life goes on. */
  async check(doings: Doings): Promise<Kept> {
    const { world, clock, excuses, problems, services, log } = this.#soak
    for (const difference of this.differences()) {
      if (excuses.isOverdue(difference, clock.nowMs)) this.#report(difference)
    }
    for (const [broker, { hands }] of world.brokers.entries()) {
      for (const object of hands.touchedForeign()) {
        problems.add(`Foreign on broker ${broker} and not as its owner left it: ${object}.`)
      }
    }
    services.check()
    for (const line of log.unexplained) problems.add(`Nothing explains: ${line}`)
    const sample = await services.steady.sample()
    this.samples.push({ ...sample, atMs: clock.nowMs - this.#beganMs })
    const kept = await keptRows(world)
    const records = world.brokers.reduce((sum, _, broker) => sum + world.life.records(broker).size, 0)
    const handsAndFaults = doings.hands + doings.faults
    const limits = { ...doings, pairs: records, handsAndFaults, brokers: world.brokers.length }
    for (const problem of keptProblems(kept, limits))
      problems.add(`Too much is kept: ${problem}.`, problem.replace(/\d+/g, ''))
    return kept
  }

  /** Waits until nothing differs any more. */
  async settled(what: string, withinMs: number): Promise<boolean> {
    const { clock, problems, pulse } = this.#soak
    const untilMs = clock.nowMs + withinMs
    for (;;) {
      await pulse.beat()
      this.look()
      const left = this.differences()
      if (left.length === 0) return true
      if (clock.nowMs < untilMs) continue
      problems.add(`${left.length} differences are left ${Math.round(withinMs / 1000)} seconds after ${what}.`)
      for (const difference of left) this.#report(difference)
      return false
    }
  }

  #report(difference: Difference): void {
    const { excuses, clock, problems } = this.#soak
    const { broker, object, registration, what, sinceMs, boundMs } = difference
    const ageSeconds = Math.round(excuses.ageMs(difference, clock.nowMs) / 1000)
    const whose = registration === null ? '' : ` of ${registration}`
    const text = `Broker ${broker}: ${object}${whose}: ${what}, since ${Math.round(sinceMs)} ms, for ${ageSeconds} seconds of ${Math.round(boundMs / 1000)}.`
    problems.add(text, `${broker} ${object} ${what}`)
  }
}
