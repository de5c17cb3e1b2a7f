import { createHash } from 'node:crypto'
import { createTask, parse, type ScheduledTask, validateDetailed } from 'node-cron'
import { KeymeshError } from '../domain/errors.ts'

const MINUTE_MS = 60_000
/** Far enough back for a monthly schedule. */
const LOOK_BACK_MS = 40 * 24 * 60 * MINUTE_MS

/** When a cron expression ticks: five fields, or six with seconds first, in UTC. */
export class CronTicks implements Disposable {
  readonly #task: ScheduledTask
  readonly #minutes: ReadonlySet<number>
  readonly #hours: ReadonlySet<number>
  /** Latest first. */
  readonly #seconds: readonly number[]

  constructor(expression: string) {
    const { second, minute, hour } = parse(expression)
    this.#seconds = [...second].sort((a, b) => b - a)
    this.#minutes = new Set(minute)
    this.#hours = new Set(hour)
    // Never started: it knows days and months. Its own timers would run through every tick of a night that the machine
    // slept, and wait for the hour that was next before the clock was set back.
    this.#task = createTask(expression, () => undefined, { timezone: 'UTC' })
  }

  /** The last tick at or before `nowMs` and after `afterMs`; null when there is none, or none within 40 days. */
  lastMs(nowMs: number, afterMs: number | null): number | null {
    const oldestMs = Math.max(afterMs === null ? 0 : afterMs + 1, nowMs - LOOK_BACK_MS)
    for (let minuteMs = nowMs - (nowMs % MINUTE_MS); minuteMs + MINUTE_MS > oldestMs; minuteMs -= MINUTE_MS) {
      const date = new Date(minuteMs)
      // Cheap, and leaves few for the library.
      if (!this.#minutes.has(date.getUTCMinutes()) || !this.#hours.has(date.getUTCHours())) continue
      const tickMs = this.#lastOfMinute(minuteMs, nowMs, oldestMs)
      if (tickMs !== null) return tickMs
    }
    return null
  }

  [Symbol.dispose](): void {
    void this.#task.destroy()
  }

  #lastOfMinute(minuteMs: number, nowMs: number, oldestMs: number): number | null {
    for (const second of this.#seconds) {
      const tickMs = minuteMs + second * 1_000
      if (tickMs < oldestMs) return null
      if (tickMs <= nowMs && this.#task.match(new Date(tickMs))) return tickMs
    }
    return null
  }
}

/** See `CronTicks.lastMs`. */
export function lastTickMs(expression: string, nowMs: number, afterMs: number | null): number | null {
  using ticks = new CronTicks(expression)
  return ticks.lastMs(nowMs, afterMs)
}

/** Throws `SCHEDULE` (stop) with every field that is wrong. */
export function checkCron(schedule: string, expression: string): void {
  const { valid, errors } = validateDetailed(expression)
  if (valid) return
  throw new KeymeshError({
    code: 'SCHEDULE',
    fate: 'stop',
    message: `The schedule ${schedule} is no cron expression: ${errors.map(({ message }) => message).join('; ')}.`,
    hint: 'Write five fields (minute hour day month weekday), or six with seconds first. Times are UTC.',
  })
}

/** Clocks of replicas differ by less. A tick this far behind the last one is of a clock that was set back. */
const CLOCKS_DIFFER_MS = 60_000

/**
 * The job id of a tick: the same in every replica, whatever its clock says when it fires. No colon. `lastTickMs` is the
 * last tick that any replica fired: when the clock was set back, its hours come a second time, and their jobs are others
 * than those that are kept from the first time.
 */
export function tickJobId(schedule: string, tickMs: number, lastMs: number | null = null): string {
  const id = `${schedule}-${seconds(tickMs)}`
  return lastMs !== null && lastMs - tickMs > CLOCKS_DIFFER_MS ? `${id}-after-${seconds(lastMs)}` : id
}

const seconds = (ms: number): number => Math.floor(ms / 1_000)

/** Time between the last two ticks; null when there were not two within 40 days. */
export function tickIntervalMs(expression: string, nowMs: number): number | null {
  const lastMs = lastTickMs(expression, nowMs, null)
  const beforeMs = lastMs === null ? null : lastTickMs(expression, lastMs - 1, null)
  return lastMs === null || beforeMs === null ? null : lastMs - beforeMs
}

/** Spreads brokers over the window, each always at the same place. */
export function spreadMs(key: string, windowMs: number): number {
  if (windowMs <= 0) return 0
  return createHash('sha256').update(key).digest().readUInt32BE(0) % windowMs
}
