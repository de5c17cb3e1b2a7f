import { callsOf, squattedCredential } from './calls.ts'
import type { Checks, Doings } from './checks.ts'
import type { FaultKind } from './fault-kinds.ts'
import { beginFault, endFault } from './faults.ts'
import type { Change, ObjectRecord } from './life-facts.ts'
import type { Soak } from './soak.ts'
import { MARKER, type WorldBroker } from './soak-world.ts'
import { type HandKind, pick, type Step } from './steps.ts'
import type { Call, CallSettings } from './targets.ts'

interface Ending {
  readonly atMs: number
  readonly end: () => Promise<string> | string
}

const TAIL = 200

/** Does what the steps say, and tells the life what was accepted. */
export class Deeds {
  /** The last steps, as they were done. */
  readonly tail: string[] = []
  readonly counts = { done: 0, idle: 0, calls: 0, refused: 0, touched: 0, hands: 0, faults: 0 }
  readonly #soak: Soak
  readonly #checks: Checks
  #endings: Ending[] = []

  constructor(soak: Soak, checks: Checks) {
    this.#soak = soak
    this.#checks = checks
  }

  get doings(): Doings {
    return this.counts
  }

  async do(step: Step): Promise<void> {
    const { kind } = step
    const done = await this.#do(step)
    this.counts[done === null ? 'idle' : 'done'] += 1
    this.#note(`step ${step.number} (${kind.what}): ${done ?? 'there was nothing to do it to'}`)
  }

  /** What lasts for a while and is over now. */
  async endWhatIsDue(): Promise<void> {
    await this.#end(({ atMs }) => atMs <= this.#soak.clock.nowMs)
  }

  async endAll(): Promise<void> {
    await this.#end(() => true)
  }

  async #end(isOver: (ending: Ending) => boolean): Promise<void> {
    const due = this.#endings.filter(isOver)
    this.#endings = this.#endings.filter((ending) => !due.includes(ending))
    for (const { end } of due) this.#note(await end())
  }

  #note(text: string): void {
    this.tail.push(`${(this.#soak.clock.nowMs / 1000).toFixed(1)} s ${text}`)
    if (this.tail.length > TAIL) this.tail.shift()
  }

  async #do(step: Step): Promise<string | null> {
    const { kind, picks } = step
    switch (kind.by) {
      case 'call': {
        const calls = callsOf(kind.what, step, this.#soak.world.life, this.#callSettings())
        return calls && this.#call(calls)
      }
      case 'hand':
        return this.#hand(kind.what, step, kind.lastsMs)
      case 'fault':
        return this.#fault(kind.what, kind.lastsMs, picks[0])
      case 'restart':
        return this.#soak.services.restart(kind.what) ? 'a service' : null
      default: {
        const unreachable: never = kind
        return unreachable
      }
    }
  }

  #callSettings(): CallSettings {
    const { registrations, expiresInMs } = this.#soak.settings
    return { registrations, expiresInMs, marker: MARKER, wallMs: Date.now() }
  }

  /** In order, as far as they are accepted; all of them should be. */
  async #call(calls: readonly Call[]): Promise<string> {
    const { world, problems } = this.#soak
    const said: string[] = []
    for (const call of calls) {
      this.counts.calls += 1
      const { status, body } = await world.call(call)
      said.push(`${call.method} ${call.path} ${status}`)
      if (status >= 300) {
        this.counts.refused += 1
        problems.add(`${call.method} ${call.path} answered ${status}: ${body.slice(0, 300)}`)
        break
      }
      if (call.change !== null) this.#accepted(call.change, body)
    }
    return said.join(', ')
  }

  #accepted(change: Change, body: string): void {
    const { world, clock, problems } = this.#soak
    if (change.type === 'access' && change.access.state !== 'REVOKED') {
      const { data } = JSON.parse(body) as { readonly data: { readonly eventApiProductVersion: string } }
      const { product, version } = change.access
      if (data.eventApiProductVersion !== version) {
        problems.add(`A request for ${product} got version ${data.eventApiProductVersion} instead of ${version}.`)
      }
    }
    this.counts.touched +=
      change.type === 'version'
        ? [...world.life.registrations.values()].filter(({ access }) =>
            [...access.values()].some(({ product }) => product === change.product),
          ).length
        : 1
    world.life.apply(change, clock.nowMs)
  }

  async #hand(what: HandKind, step: Step, lastsMs: number): Promise<string | null> {
    const { picks } = step
    const { world } = this.#soak
    const broker = Math.floor(picks[0] * world.brokers.length)
    const hands = this.#broker(broker).hands
    if (what === 'change-foreign') return `broker ${broker}: ${hands.changeForeign(picks)}`
    if (what === 'squat') return this.#squat(broker, step, lastsMs)
    const records = this.#choices(what, broker)
    if (records.length === 0) return null
    const record = pick(records, picks[1])
    const freed = what === 'delete-object' ? hands.freeProfile(record) : []
    const said = this.#change(what, broker, record, step)
    for (const object of [record, ...freed.map((name) => ({ kind: 'clientUsername', name }) as const)]) {
      this.counts.hands += 1
      world.life.byHand(broker, object, this.#soak.clock.nowMs, what === 'change-password')
      this.#checks.watch(broker, object)
    }
    return `broker ${broker}: ${record.kind}/${record.name}: ${said}`
  }

  #change(
    what: Exclude<HandKind, 'squat' | 'change-foreign'>,
    broker: number,
    record: ObjectRecord,
    step: Step,
  ): string {
    const { hands } = this.#broker(broker)
    switch (what) {
      case 'delete-object':
        return hands.delete(record)
      case 'change-attribute':
        return hands.changeAttribute(record, step.picks)
      case 'change-members':
        return hands.changeMembers(record, step.picks)
      case 'change-password':
        return hands.changePassword(record.name, step.number)
      case 'enable-withdrawn':
        return hands.enable(record.name)
      default: {
        const unreachable: never = what
        return unreachable
      }
    }
  }

  /** What can be changed in this way, on this broker. */
  #choices(what: HandKind, broker: number): readonly ObjectRecord[] {
    const { world, clock, bounds } = this.#soak
    const { hands } = this.#broker(broker)
    const there = [...world.life.records(broker).values()].filter(
      (record) => hands.isThere(record) && !hands.isForeign(record.kind, record.name),
    )
    const wanted = there.filter((record) => record.wanted !== null && record.wanted.optional !== true)
    switch (what) {
      case 'change-members':
        return wanted.filter(({ kind }) => kind === 'aclProfile' || kind === 'queue')
      case 'change-password':
        // One that is changed again while the first change is found out would need a person, as it should.
        return wanted.filter(
          ({ kind, passwordByHandAtMs }) =>
            kind === 'clientUsername' &&
            (passwordByHandAtMs === null || clock.nowMs - passwordByHandAtMs > 2 * bounds.passwordMs),
        )
      case 'enable-withdrawn':
        return there.filter(({ kind, wanted: isWanted }) => kind === 'clientUsername' && isWanted === null)
      default:
        return wanted
    }
  }

  /** Somebody has a client username of this name when a registration asks for it. */
  async #squat(broker: number, step: Step, lastsMs: number): Promise<string | null> {
    const { world, clock } = this.#soak
    const { life } = world
    const there = [...life.records(broker).values()].filter(
      ({ kind, wanted }) => kind === 'aclProfile' && wanted !== null,
    )
    if (there.length === 0) return null
    const registration = pick(there, step.picks[1]).name
    const { key, call } = squattedCredential(step, life, this.#callSettings(), registration)
    const { hands } = this.#broker(broker)
    hands.squat(key)
    life.apply({ type: 'squatted', broker, registration, key }, clock.nowMs)
    this.counts.hands += 1
    this.#endings.push({
      atMs: clock.nowMs + lastsMs,
      end: () => {
        hands.leave(key)
        life.apply({ type: 'squat-gone', broker, registration, key }, clock.nowMs)
        return `broker ${broker}: nobody else has the client username ${key} any more`
      },
    })
    return `broker ${broker}: ${key}; ${await this.#call([call])}`
  }

  /** Most brokers are well at any time. */
  async #fault(kind: FaultKind, lastsMs: number, fraction: number): Promise<string | null> {
    const { world, excuses, clock, settings } = this.#soak
    const faulty = excuses.faulty()
    if (faulty.length >= Math.max(1, world.brokers.length / 4)) return null
    const well = [...world.brokers.keys()].filter(
      (index) => index >= settings.healthyBrokers && !faulty.includes(index),
    )
    if (well.length === 0) return null
    const broker = pick(well, fraction)
    excuses.began(broker, kind, clock.nowMs)
    await beginFault(this.#broker(broker), kind)
    this.counts.faults += 1
    const end = async (): Promise<string> => {
      await endFault(this.#broker(broker), kind)
      excuses.ended(broker, clock.nowMs)
      return `broker ${broker}: ${kind} is over`
    }
    this.#endings.push({ atMs: clock.nowMs + lastsMs, end })
    return `broker ${broker} for ${lastsMs} ms`
  }

  #broker(index: number): WorldBroker {
    const broker = this.#soak.world.brokers[index]
    if (broker === undefined) throw new RangeError(`there is no broker ${index}`)
    return broker
  }
}
