import { setTimeout as delay } from 'node:timers/promises'

/** A run that takes longer has met a slow broker, for which the other brokers' sweeps do not stand back. */
const URGENT_MS = 1_000
/** While people ask all the time, a sweep goes on after so long. */
const MOST_STANDING_BACK_MS = 500
const LOOK_EVERY_MS = 20

/** The runs of this process that somebody waits for: meanwhile sweeps take less of it. */
export class UrgentRuns {
  readonly #now: () => number
  /** By the moment they began, in that order. */
  readonly #began = new Map<symbol, number>()

  /** `now` in milliseconds of a clock that is never set. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = Symbol('run')
    this.#began.set(run, this.#now())
    try {
      return await work()
    } finally {
      this.#began.delete(run)
    }
  }

  readonly any = (): boolean => {
    for (const [run, beganMs] of this.#began) {
      if (this.#now() - beganMs < URGENT_MS) return true
      this.#began.delete(run)
    }
    return false
  }

  /** Ends when there are none, and soon in any case. */
  readonly standBack = async (): Promise<void> => {
    const untilMs = this.#now() + MOST_STANDING_BACK_MS
    while (this.any() && this.#now() < untilMs) await delay(LOOK_EVERY_MS)
  }
}
