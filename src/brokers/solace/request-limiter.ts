export interface RequestLimits {
  readonly maxConcurrent: number
  /** No limit when absent. */
  readonly maxPerSecond?: number
}

/** Starts may come early by a timer's grain and are paid back: the rate over time is exact, bursts stay this short. */
const TOLERANCE_MS = 10

interface Waiter {
  readonly start: () => void
  readonly stop: (reason: unknown) => void
}

/** First come, first served: bounded concurrency and an even rate for the requests to one broker. */
export class RequestLimiter {
  readonly #maxConcurrent: number
  readonly #intervalMs: number
  readonly #nowMs: () => number
  /** In order of arrival; a set, so that one who gives up leaves at once. */
  readonly #waiters = new Set<Waiter>()
  #running = 0
  #nextStartMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limits: RequestLimits, nowMs: () => number = () => performance.now()) {
    this.#maxConcurrent = Math.max(1, limits.maxConcurrent)
    this.#intervalMs = limits.maxPerSecond === undefined ? 0 : 1000 / limits.maxPerSecond
    this.#nowMs = nowMs
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /** Takes a slot if one is free now; never overtakes a waiter. */
  tryAcquire(): boolean {
    if (this.#waiters.size > 0 || this.#running >= this.#maxConcurrent || this.#delayMs() > 0) return false
    this.#take()
    return true
  }

  /** Takes a slot when it is this caller's turn. Rejects with the signal's reason when aborted before. */
  async acquire(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire()) return
    let onAbort: (() => void) | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        const waiter: Waiter = { start: resolve, stop: reject }
        this.#waiters.add(waiter)
        onAbort = () => {
          if (this.#waiters.delete(waiter)) reject(signal?.reason)
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        this.#pump()
      })
    } finally {
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
    }
  }

  release(): void {
    this.#running -= 1
    this.#pump()
  }

  /** Rejects everyone who waits. */
  rejectWaiting(reason: unknown): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const waiter of this.#waiters) waiter.stop(reason)
    this.#waiters.clear()
  }

  #pump(): void {
    for (const waiter of this.#waiters) {
      if (this.#running >= this.#maxConcurrent) return
      const delayMs = this.#delayMs()
      if (delayMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined
          this.#pump()
        }, Math.ceil(delayMs))
        return
      }
      this.#waiters.delete(waiter)
      this.#take()
      waiter.start()
    }
  }

  #take(): void {
    this.#running += 1
    if (this.#intervalMs > 0) this.#nextStartMs = Math.max(this.#nextStartMs, this.#nowMs()) + this.#intervalMs
  }

  #delayMs(): number {
    return this.#intervalMs === 0 ? 0 : this.#nextStartMs - TOLERANCE_MS - this.#nowMs()
  }
}
