/** More different ones than an outage has; some carry ids. */
const MAX_KNOWN = 1_000

/** An outage makes the same error many times a minute, for every queue: it is told at once, and then now and again. */
export class ErrorRepeats {
  readonly #everyMs: number
  readonly #nowMs: () => number
  readonly #known = new Map<string, { toldAtMs: number; untold: number }>()

  constructor(everyMs = 60_000, nowMs: () => number = () => performance.now()) {
    this.#everyMs = everyMs
    this.#nowMs = nowMs
  }

  /** How often it came without being told since it was told last; null when it is not to be told now. */
  tell(what: string): number | null {
    const atMs = this.#nowMs()
    const known = this.#known.get(what)
    if (known !== undefined && atMs - known.toldAtMs < this.#everyMs) {
      known.untold += 1
      return null
    }
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(what, { toldAtMs: atMs, untold: 0 })
    return known?.untold ?? 0
  }
}
