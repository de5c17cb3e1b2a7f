import { KEEP_TICKS_SECONDS } from './job-options.ts'
import type { QueueBackend } from './job-queue.ts'
import { CATALOGUE_QUEUE, NOTIFICATIONS_QUEUE, REGISTRATIONS_QUEUE } from './queue-names.ts'
import { CronTicks, checkCron, tickJobId } from './schedule-ticks.ts'
import { settlesWithin } from './settles-within.ts'

export type ScheduleName =
  | 'poll-catalogue'
  | 'poll-registrations'
  | 'sweep-brokers'
  | 'retire-expired'
  | 'prune-records'
  | 'poll-notifications'

/** Cron expressions in UTC: five fields, or six with seconds first. */
export const DEFAULT_SCHEDULES: Readonly<Record<ScheduleName, string>> = {
  'poll-catalogue': '* * * * *',
  'poll-registrations': '*/15 * * * * *',
  'sweep-brokers': '0 * * * *',
  'retire-expired': '* * * * *',
  'prune-records': '17 3 * * *',
  'poll-notifications': '*/10 * * * * *',
}

/** The last tick of each schedule, over all replicas; a later tick is never replaced by an earlier one. */
export interface TickStore {
  lastTick(schedule: ScheduleName): Promise<number | null>
  recordTick(schedule: ScheduleName, tickMs: number): Promise<void>
}

export interface SchedulerOptions {
  readonly backend: QueueBackend
  readonly ticks: TickStore
  readonly expressions?: Partial<Record<ScheduleName, string>>
  readonly now: () => number
  readonly onError: (schedule: ScheduleName, error: unknown) => void
}

export interface Scheduler {
  /** Runs what is overdue, then follows the clock. Throws `SCHEDULE` when an expression is wrong. */
  start(): Promise<void>
  /** Adds the jobs of one tick; again in this or another replica it adds nothing. */
  fire(schedule: ScheduleName, tickMs: number): Promise<void>
  stop(): Promise<void>
}

const LOOK_EVERY_MS = 500
/** What could not be fired is tried again. */
const RETRY_EVERY_MS = 5_000
/** A queue that is away takes a tick when it is back, which may be never. */
const STOP_PATIENCE_MS = 5_000

/**
 * Every replica fires every tick; the tick in the job's id makes that one job. What ticked while no replica was up, the
 * process slept, the clock jumped or the queue was away runs once afterwards, however many ticks it were. Ticks are UTC, so
 * no day has an hour twice or not at all; when day of month and day of week are both given, a tick needs both (node-cron),
 * not either.
 */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { now, onError, ticks } = options
  const expressions = { ...DEFAULT_SCHEDULES, ...options.expressions }
  const schedules = Object.keys(DEFAULT_SCHEDULES) as ScheduleName[]
  const crons = new Map<ScheduleName, CronTicks>()
  const running = new Map<ScheduleName, Promise<void>>()
  /** Schedules with a tick that was not fired. */
  const owed = new Set<ScheduleName>()
  /** An outage is told once for each schedule. */
  const failing = new Set<ScheduleName>()
  let lookedAtMs = 0
  let retriedAtMs = 0
  let timer: NodeJS.Timeout | undefined

  const fire = async (schedule: ScheduleName, tickMs: number): Promise<void> => {
    const id = tickJobId(schedule, tickMs, await ticks.lastTick(schedule))
    await options.backend
      .queue(QUEUE_OF[schedule])
      .add([{ name: schedule, payload: {}, id, keepSeconds: KEEP_TICKS_SECONDS }])
    await ticks.recordTick(schedule, tickMs)
  }
  const runOverdue = async (schedule: ScheduleName): Promise<void> => {
    const tickMs = crons.get(schedule)?.lastMs(now(), await ticks.lastTick(schedule))
    if (tickMs != null) await fire(schedule, tickMs)
  }
  /** One at a time; what ticks meanwhile, or fails, is owed. */
  const run = (schedule: ScheduleName, work: () => Promise<void>): void => {
    if (running.has(schedule)) {
      owed.add(schedule)
      return
    }
    owed.delete(schedule)
    const ran = work()
      .then(
        () => void failing.delete(schedule),
        (error: unknown) => {
          owed.add(schedule)
          if (!failing.has(schedule)) onError(schedule, error)
          failing.add(schedule)
        },
      )
      .finally(() => running.delete(schedule))
    running.set(schedule, ran)
  }
  const look = (): void => {
    const nowMs = now()
    // A clock that was set back begins anew; one that was set forward owes one tick, not all in between.
    const fromMs = Math.min(lookedAtMs, nowMs)
    lookedAtMs = nowMs
    for (const [schedule, cron] of crons) {
      const tickMs = cron.lastMs(nowMs, fromMs)
      if (tickMs !== null) run(schedule, () => fire(schedule, tickMs))
    }
    if (performance.now() - retriedAtMs < RETRY_EVERY_MS) return
    retriedAtMs = performance.now()
    for (const schedule of [...owed]) if (!running.has(schedule)) run(schedule, () => runOverdue(schedule))
  }
  return {
    fire,
    async start() {
      for (const schedule of schedules) checkCron(schedule, expressions[schedule])
      for (const schedule of schedules) crons.set(schedule, new CronTicks(expressions[schedule]))
      lookedAtMs = now()
      // Not waited for: one that cannot run now must not keep the others from their times.
      for (const schedule of schedules) run(schedule, () => runOverdue(schedule))
      timer = setInterval(look, LOOK_EVERY_MS)
    },
    async stop() {
      clearInterval(timer)
      await settlesWithin(Promise.all(running.values()), STOP_PATIENCE_MS)
      for (const cron of crons.values()) cron[Symbol.dispose]()
    },
  }
}

const QUEUE_OF = {
  'poll-catalogue': CATALOGUE_QUEUE,
  'poll-registrations': REGISTRATIONS_QUEUE,
  'sweep-brokers': CATALOGUE_QUEUE,
  'retire-expired': CATALOGUE_QUEUE,
  'prune-records': CATALOGUE_QUEUE,
  'poll-notifications': NOTIFICATIONS_QUEUE,
} as const satisfies Record<ScheduleName, string>
