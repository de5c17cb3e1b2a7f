export interface RequestLimits {
  readonly maxConcurrent: number
  /** No limit when absent. */
  readonly maxPerSecond?: number
  /** While true, somebody waits for a run on this broker or another: the background takes few slots. */
  readonly isUrgent?: () => boolean
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
/** While it is urgent, the background has one in so many slots, and at least one. */
const BACKGROUND_SLOTS = 5

/**
 * Bounded concurrency and an even rate for the requests to one broker. The foreground goes first and starves nobody;
 * within a lane it is first come, first served.
 */
export class RequestLimiter {
  readonly #maxConcurrent: number
  readonly #intervalMs: number
  readonly #isUrgent: () => boolean
  readonly #nowMs: () => number
  /** In order of arrival; a set, so that one who gives up leaves at once. */
  readonly #waiters: Readonly<Record<Lane, Set<Waiter>>> = { foreground: new Set(), background: new Set() }
  readonly #running: Record<Lane, number> = { foreground: 0, background: 0 }
  /** Turns of the foreground in a row while the background waited. */
  #overtaken = 0
  #nextStartMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limits: RequestLimits, nowMs: () => number = () => performance.now()) {
    this.#maxConcurrent = Math.max(1, limits.maxConcurrent)
    this.#intervalMs = limits.maxPerSecond === undefined ? 0 : 1000 / limits.maxPerSecond
    this.#isUrgent = limits.isUrgent ?? (() => false)
    this.#nowMs = nowMs
  }

  get waiting(): number {
    return this.#waiters.foreground.size + this.#waiters.background.size
  }

  /** Takes a slot if one is free now; never overtakes a waiter. */
  tryAcquire(lane: Lane = 'foreground'): boolean {
    if (this.waiting > 0 || !this.#hasRoom(lane) || this.#delayMs() > 0) return false
    this.#take(lane)
    return true
  }

  /** Takes a slot when it is this caller's turn. Rejects with the signal's reason when aborted before. */
  async acquire(signal?: AbortSignal, lane: Lane = 'foreground'): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire(lane)) return
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

  release(lane: Lane = 'foreground'): void {
    this.#running[lane] -= 1
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
    for (let lane = this.#next(); lane !== null; lane = this.#next()) {
      const delayMs = this.#delayMs()
      if (delayMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined
          this.#pump()
        }, Math.ceil(delayMs))
        return
      }
      this.#overtaken = lane === 'background' || this.#waiters.background.size === 0 ? 0 : this.#overtaken + 1
      this.#take(lane)
      this.#leave(lane)?.start()
    }
  }

  /** Whose turn it is. One that has no room is asked again at the next release, and then there is one. */
  #next(): Lane | null {
    const { foreground, background } = this.#waiters
    const mayForeground = foreground.size > 0 && this.#hasRoom('foreground')
    const mayBackground = background.size > 0 && this.#hasRoom('background')
    if (mayBackground && (!mayForeground || this.#overtaken >= BACKGROUND_EVERY - 1)) return 'background'
    return mayForeground ? 'foreground' : null
  }

  #hasRoom(lane: Lane): boolean {
    const { foreground, background } = this.#running
    if (foreground + background >= this.#maxConcurrent) return false
    if (lane === 'foreground' || !this.#isUrgent()) return true
    return background < Math.max(1, Math.floor(this.#maxConcurrent / BACKGROUND_SLOTS))
  }

  #leave(lane: Lane): Waiter | undefined {
    const waiters = this.#waiters[lane]
    const [first] = waiters
    if (first !== undefined) waiters.delete(first)
    return first
  }

  #take(lane: Lane): void {
    this.#running[lane] += 1
    if (this.#intervalMs > 0) this.#nextStartMs = Math.max(this.#nextStartMs, this.#nowMs()) + this.#intervalMs
  }

  #delayMs(): number {
    return this.#intervalMs === 0 ? 0 : this.#nextStartMs - TOLERANCE_MS - this.#nowMs()
  }
}
