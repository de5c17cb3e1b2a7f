/** How long a queue waits when its broker cannot take work. */
export interface WaitPolicy {
  readonly baseMs: number
  readonly capMs: number
}

export const DEFAULT_WAIT: WaitPolicy = { baseMs: 5_000, capMs: 5 * 60_000 }

/**
 * The pause of one queue whose broker is sick. Each round doubles it up to the cap, until a job succeeds.
 * Jobs that fail while a pause already runs belong to the same round and do not lengthen it.
 */
export class QueueWait {
  readonly #policy: WaitPolicy
  #rounds = 0
  #untilMs = 0

  constructor(policy: WaitPolicy) {
    this.#policy = policy
  }

  /** Milliseconds to wait from now; `random` is in [0, 1). */
  failed(nowMs: number, random: number): number {
    const leftMs = this.#untilMs - nowMs
    // More than any pause lasts is left when the clock was set back.
    if (leftMs > 0 && leftMs <= this.#policy.capMs) return leftMs
    const fullMs = Math.min(this.#policy.capMs, this.#policy.baseMs * 2 ** this.#rounds)
    const waitMs = Math.max(1, Math.round(fullMs * (0.75 + random / 4)))
    this.#rounds += 1
    this.#untilMs = nowMs + waitMs
    return waitMs
  }

  /** The broker takes work again. A pause that was announced to other replicas still runs out by itself. */
  succeeded(): void {
    this.#rounds = 0
    this.#untilMs = 0
  }
}
