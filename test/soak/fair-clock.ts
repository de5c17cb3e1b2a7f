/** More than this, and the machine was busy with something else. */
const LATE_MS = 250

/** Milliseconds since the start, without those in which the whole machine stood still. */
export class FairClock {
  readonly #startedMs = performance.now()
  #lostMs = 0

  get nowMs(): number {
    return performance.now() - this.#startedMs - this.#lostMs
  }

  get lostMs(): number {
    return this.#lostMs
  }

  async delay(ms: number): Promise<void> {
    const beganMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, ms))
    const lateMs = performance.now() - beganMs - ms
    if (lateMs > LATE_MS) this.#lostMs += lateMs - LATE_MS
  }
}
