import { CATALOGUE_QUEUE } from '../../src/queue/queue-names.ts'
import type { FairClock } from './fair-clock.ts'
import type { Bounds, SoakSettings } from './settings.ts'
import type { SoakWorld } from './soak-world.ts'

export interface PulseOptions {
  readonly settings: SoakSettings
  readonly bounds: Bounds
  readonly world: SoakWorld
  readonly clock: FairClock
}

const BEATS_EVERY_MS = 200

/** What passes with the time by itself: credentials expire, in the life and, where the minute is too long, in the store. */
export class Pulse {
  readonly #options: PulseOptions
  #retires = 0

  constructor(options: PulseOptions) {
    this.#options = options
  }

  async beat(): Promise<void> {
    const { settings, bounds, world, clock } = this.#options
    await clock.delay(BEATS_EVERY_MS)
    world.life.advance(Date.now(), clock.nowMs, bounds.expiryMs)
    if (settings.retireEveryMs === null || clock.nowMs < this.#retires * settings.retireEveryMs) return
    this.#retires = Math.ceil(clock.nowMs / settings.retireEveryMs)
    const id = `retire-expired-soak-${this.#retires}`
    await world.queue.backend.queue(CATALOGUE_QUEUE).add([{ name: 'retire-expired', payload: {}, id, keepSeconds: 60 }])
  }
}
