import type { Excuses } from './excuses.ts'
import type { FairClock } from './fair-clock.ts'
import type { LogWatch } from './log-watch.ts'
import type { Problems } from './problems.ts'
import type { ServiceProcess } from './service-process.ts'
import type { Bounds } from './settings.ts'
import type { SoakWorld } from './soak-world.ts'

export interface ServicesOptions {
  readonly world: SoakWorld
  readonly clock: FairClock
  readonly bounds: Bounds
  readonly excuses: Excuses
  readonly log: LogWatch
  readonly problems: Problems
}

/** Longer than the service keeps what it deletes between its last look at the store and the request. */
const DELETES_LATE_MS = 10_000

/** Two of them: one lives from the beginning to the end and is measured, the other one comes and goes. */
export class Services {
  readonly #options: ServicesOptions
  readonly #steady: ServiceProcess
  #other: ServiceProcess
  #changing: Promise<void> | null = null
  #restartedMs = Number.NEGATIVE_INFINITY
  #restarts = 0

  constructor(options: ServicesOptions) {
    this.#options = options
    this.#steady = this.#spawn('steady')
    this.#other = this.#spawn('other-0')
  }

  get steady(): ServiceProcess {
    return this.#steady
  }

  get restarts(): number {
    return this.#restarts
  }

  /** Also shortly after one: what it broke off is told then. */
  isRestarting(atMs: number): boolean {
    return this.#changing !== null || atMs - this.#restartedMs < this.#options.bounds.changeMs
  }

  async started(): Promise<void> {
    await Promise.all([this.#steady.started, this.#other.started])
  }

  /** Returns at once; false while one is under way. */
  restart(how: 'stop' | 'kill'): boolean {
    if (this.#changing !== null) return false
    this.#restarts += 1
    this.#changing = this.#restart(how)
      .catch((error: unknown) => this.#options.problems.add(`A restart went wrong: ${String(error)}`))
      .finally(() => {
        this.#changing = null
        this.#restartedMs = this.#options.clock.nowMs
      })
    return true
  }

  async #restart(how: 'stop' | 'kill'): Promise<void> {
    const { excuses, clock } = this.#options
    if (how === 'stop') await this.#other.stop()
    else {
      await this.#other.kill()
      excuses.killed(clock.nowMs)
    }
    this.#other = this.#spawn(`other-${this.#restarts}`)
    await this.#other.started
  }

  check(): void {
    for (const service of [this.#steady, this.#other]) {
      if (service.isLost) this.#options.problems.add(`The service ${service.name} ended by itself.`)
    }
  }

  /** As a person stops them: they must end well. */
  async stop(): Promise<void> {
    await this.#changing
    const stopped = await Promise.allSettled([this.#steady.stop(), this.#other.stop()])
    for (const result of stopped) {
      if (result.status === 'rejected') this.#options.problems.add(String(result.reason))
    }
  }

  async kill(): Promise<void> {
    await Promise.all([this.#steady.kill(), this.#other.kill()])
    await this.#changing
    await this.#other.kill()
  }

  #spawn(name: string): ServiceProcess {
    const { world, log } = this.#options
    return world.startService(name, {
      onLine: (line) => log.line(line),
      onDelete: (broker, path) => this.#deletes(broker, path),
    })
  }

  /** Nothing of a live registration is ever deleted, even if it was made again, and nothing that is foreign. */
  #deletes(broker: number, path: string): void {
    const { world, clock, excuses, problems } = this.#options
    const found = DELETED.exec(path)
    const kind = KINDS[found?.[1] ?? '']
    if (kind === undefined) return
    const name = decodeURIComponent(found?.[2] ?? '')
    const object = `${kind}/${name}`
    if (world.brokers[broker]?.hands.isForeign(kind, name) === true) {
      problems.add(`The service deletes the foreign ${object} on broker ${broker}.`)
    }
    const record = world.life.records(broker).get(object)
    if (record === undefined || record.wanted === null || record.wanted.optional) return
    const wantedForMs = clock.nowMs - record.turnedMs
    if (wantedForMs < DELETES_LATE_MS || excuses.reasons(broker, clock.nowMs).length > 0) return
    problems.add(
      `The service deletes ${object} on broker ${broker}, which is wanted for ${Math.round(wantedForMs)} ms.`,
    )
  }
}

const DELETED = /^\/SEMP\/v2\/config\/msgVpns\/[^/]+\/([^/]+)\/([^/?]+)$/

const KINDS: Readonly<Record<string, 'clientUsername' | 'aclProfile' | 'clientProfile' | 'queue'>> = {
  clientUsernames: 'clientUsername',
  aclProfiles: 'aclProfile',
  clientProfiles: 'clientProfile',
  queues: 'queue',
}
