/** A clock that moved by more against the time that passed was set, or the machine slept. */
const CLOCK_SET_MS = 2_000

/** Compares the clock with the time that passed. */
export class ClockWatch {
  readonly #now: () => number
  #offsetMs: number

  constructor(now: () => number) {
    this.#now = now
    this.#offsetMs = this.#offset()
  }

  /** How far the clock was set since this was last asked, negative for back; 0 when it was not. */
  movedMs(): number {
    const offsetMs = this.#offset()
    const movedMs = offsetMs - this.#offsetMs
    if (Math.abs(movedMs) <= CLOCK_SET_MS) return 0
    this.#offsetMs = offsetMs
    return movedMs
  }

  #offset(): number {
    return this.#now() - performance.now()
  }
}
