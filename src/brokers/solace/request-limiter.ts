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

/** Of work that somebody waits for, or of what goes over everything. */
export type Lane = 'foreground' | 'background'

/** While both lanes wait, each of this many turns is one of the background. */
const BACKGROUND_EVERY = 4

/**
 * Bounded concurrency and an even rate for the requests to one broker. The foreground goes first and starves nobody;
 * within a lane it is first come, first served.
 */
export class RequestLimiter {
  readonly #maxConcurrent: number
  readonly #intervalMs: number
  readonly #nowMs: () => number
  /** In order of arrival; a set, so that one who gives up leaves at once. */
  readonly #waiters: Readonly<Record<Lane, Set<Waiter>>> = { foreground: new Set(), background: new Set() }
  #running = 0
  /** Turns of the foreground in a row while the background waited. */
  #overtaken = 0
  #nextStartMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limits: RequestLimits, nowMs: () => number = () => performance.now()) {
    this.#maxConcurrent = Math.max(1, limits.maxConcurrent)
    this.#intervalMs = limits.maxPerSecond === undefined ? 0 : 1000 / limits.maxPerSecond
    this.#nowMs = nowMs
  }

  get waiting(): number {
    return this.#waiters.foreground.size + this.#waiters.background.size
  }

  /** Takes a slot if one is free now; never overtakes a waiter. */
  tryAcquire(): boolean {
    if (this.waiting > 0 || this.#running >= this.#maxConcurrent || this.#delayMs() > 0) return false
    this.#take()
    return true
  }

  /** Takes a slot when it is this caller's turn. Rejects with the signal's reason when aborted before. */
  async acquire(signal?: AbortSignal, lane: Lane = 'foreground'): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire()) return
    const waiters = this.#waiters[lane]
    let onAbort: (() => void) | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        const waiter: Waiter = { start: resolve, stop: reject }
        waiters.add(waiter)
        onAbort = () => {
          if (waiters.delete(waiter)) reject(signal?.reason)
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
    for (const waiters of Object.values(this.#waiters)) {
      for (const waiter of waiters) waiter.stop(reason)
      waiters.clear()
    }
  }

  #pump(): void {
    while (this.waiting > 0 && this.#running < this.#maxConcurrent) {
      const delayMs = this.#delayMs()
      if (delayMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined
          this.#pump()
        }, Math.ceil(delayMs))
        return
      }
      const next = this.#next()
      this.#take()
      next?.start()
    }
  }

  /** Leaves its lane. */
  #next(): Waiter | undefined {
    const { foreground, background } = this.#waiters
    const isBehind = background.size > 0 && (foreground.size === 0 || this.#overtaken >= BACKGROUND_EVERY - 1)
    this.#overtaken = isBehind || background.size === 0 ? 0 : this.#overtaken + 1
    const waiters = isBehind ? background : foreground
    const [first] = waiters
    if (first !== undefined) waiters.delete(first)
    return first
  }

  #take(): void {
    this.#running += 1
    if (this.#intervalMs > 0) this.#nextStartMs = Math.max(this.#nextStartMs, this.#nowMs()) + this.#intervalMs
  }

  #delayMs(): number {
    return this.#intervalMs === 0 ? 0 : this.#nextStartMs - TOLERANCE_MS - this.#nowMs()
  }
}
