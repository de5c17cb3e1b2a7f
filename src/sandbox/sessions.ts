import { randomBytes } from 'node:crypto'

export interface SessionOptions {
  readonly slots: number
  readonly idleTimeoutMs: number
  readonly maximumLifetimeMs: number
  readonly nowMs: () => number
}

/** A broker's own defaults: 15 minutes idle, 43,200 minutes at most. The number of slots is the sandbox's choice. */
export const DEFAULT_SESSION_OPTIONS: SessionOptions = {
  slots: 100,
  idleTimeoutMs: 15 * 60_000,
  maximumLifetimeMs: 43_200 * 60_000,
  nowMs: Date.now,
}

interface Session {
  readonly startedAtMs: number
  usedAtMs: number
}

/** The SEMP sessions of one broker: each login without a session cookie takes a slot until it is idle for too long. */
export class Sessions {
  #options: SessionOptions
  readonly #sessions = new Map<string, Session>()

  constructor(options: SessionOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  setSlots(slots: number): void {
    this.#options = { ...this.#options, slots }
  }

  clear(): void {
    this.#sessions.clear()
  }

  /** True when the session is live, which keeps it so. */
  touch(id: string): boolean {
    const session = this.#sessions.get(id)
    if (session === undefined) return false
    const nowMs = this.#options.nowMs()
    if (this.#isOver(session, nowMs)) {
      this.#sessions.delete(id)
      return false
    }
    session.usedAtMs = nowMs
    return true
  }

  /** A new session's id, or null when all slots are taken. */
  open(): string | null {
    const nowMs = this.#options.nowMs()
    if (this.#sessions.size >= this.#options.slots) this.#removeFinished(nowMs)
    if (this.#sessions.size >= this.#options.slots) return null
    const id = randomBytes(18).toString('base64url')
    this.#sessions.set(id, { startedAtMs: nowMs, usedAtMs: nowMs })
    return id
  }

  #isOver(session: Session, nowMs: number): boolean {
    const { idleTimeoutMs, maximumLifetimeMs } = this.#options
    return nowMs - session.usedAtMs >= idleTimeoutMs || nowMs - session.startedAtMs >= maximumLifetimeMs
  }

  #removeFinished(nowMs: number): void {
    for (const [id, session] of this.#sessions) if (this.#isOver(session, nowMs)) this.#sessions.delete(id)
  }
}
