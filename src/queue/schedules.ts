import { createTask, type ScheduledTask } from 'node-cron'
import { KEEP_TICKS_SECONDS } from './job-options.ts'
import type { QueueBackend } from './job-queue.ts'
import { CATALOGUE_QUEUE, REGISTRATIONS_QUEUE } from './queue-names.ts'
import { checkCron, lastTickMs, tickJobId } from './schedule-ticks.ts'

export type ScheduleName =
  | 'poll-catalogue'
  | 'poll-registrations'
  | 'sweep-brokers'
  | 'retire-expired'
  | 'prune-records'

/** Cron expressions in UTC: five fields, or six with seconds first. */
export const DEFAULT_SCHEDULES: Readonly<Record<ScheduleName, string>> = {
  'poll-catalogue': '* * * * *',
  'poll-registrations': '*/15 * * * * *',
  'sweep-brokers': '0 * * * *',
  'retire-expired': '* * * * *',
  'prune-records': '17 3 * * *',
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
  /** How often the clock is looked at; 5 seconds unless told. */
  readonly lookEveryMs?: number
}

export interface Scheduler {
  /** Runs what is overdue, then follows the clock. Throws `SCHEDULE` when an expression is wrong. */
  start(): Promise<void>
  /** Adds the jobs of one tick; again in this or another replica it adds nothing. */
  fire(schedule: ScheduleName, tickMs: number): Promise<void>
  stop(): Promise<void>
}

/** How often the clock is looked at, and what could not be fired is tried again. */
const LOOK_EVERY_MS = 5_000
/** A clock that moved by more against the time that passed was set. */
const CLOCK_SET_MS = 2_000
/** A queue that is away takes a tick when it is back, which may be never. */
const STOP_PATIENCE_MS = 5_000

/**
 * node-cron fires in every replica; the tick in the job's id makes that one job. What ticked while no replica was up, the
 * process slept, the clock jumped or the queue was away runs once afterwards, however many ticks it were. Ticks are UTC, so
 * no day has an hour twice or not at all; when day of month and day of week are both given, a tick needs both (node-cron),
 * not either.
 */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { now, onError, ticks } = options
  const expressions = { ...DEFAULT_SCHEDULES, ...options.expressions }
  const schedules = Object.keys(DEFAULT_SCHEDULES) as ScheduleName[]
  const tasks: ScheduledTask[] = []
  const running = new Map<ScheduleName, Promise<void>>()
  /** Schedules with a tick that was not fired. */
  const owed = new Set<ScheduleName>()
  /** An outage is told once for each schedule. */
  const failing = new Set<ScheduleName>()
  let clock = clockOffset(now)
  let timer: NodeJS.Timeout | undefined

  const fire = async (schedule: ScheduleName, tickMs: number): Promise<void> => {
    const id = tickJobId(schedule, tickMs, await ticks.lastTick(schedule))
    await options.backend
      .queue(QUEUE_OF[schedule])
      .add([{ name: schedule, payload: {}, id, keepSeconds: KEEP_TICKS_SECONDS }])
    await ticks.recordTick(schedule, tickMs)
  }
  const runOverdue = async (schedule: ScheduleName): Promise<void> => {
    const tickMs = lastTickMs(expressions[schedule], now(), await ticks.lastTick(schedule))
    if (tickMs !== null) await fire(schedule, tickMs)
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
  const follow = async (schedule: ScheduleName): Promise<void> => {
    const task = createTask(expressions[schedule], ({ date }) => run(schedule, () => fire(schedule, date.getTime())), {
      timezone: 'UTC',
      suppressMissedWarning: true,
      logger: taskLogger(schedule, onError),
    })
    // A process that was busy for a moment is late, not excused; one that slept for a day owes one run, not a day's.
    task.on('execution:missed', () => void owed.add(schedule))
    tasks.push(task)
    await task.start()
  }
  const look = async (): Promise<void> => {
    const offset = clockOffset(now)
    if (Math.abs(offset - clock) > CLOCK_SET_MS) {
      clock = offset
      // A task waits for the hour that it knew to be next.
      await Promise.all(tasks.splice(0).map((task) => task.destroy()))
      for (const schedule of schedules) {
        owed.add(schedule)
        if (timer !== undefined) await follow(schedule)
      }
    }
    if (timer === undefined) return
    for (const schedule of [...owed]) if (!running.has(schedule)) run(schedule, () => runOverdue(schedule))
  }
  return {
    fire,
    async start() {
      for (const schedule of schedules) checkCron(schedule, expressions[schedule])
      clock = clockOffset(now)
      timer = setInterval(() => void look(), options.lookEveryMs ?? LOOK_EVERY_MS)
      for (const schedule of schedules) {
        // Not waited for: one that cannot run now must not keep the others from their times.
        run(schedule, () => runOverdue(schedule))
        await follow(schedule)
      }
    },
    async stop() {
      clearInterval(timer)
      timer = undefined
      await Promise.all(tasks.splice(0).map((task) => task.destroy()))
      await settled([...running.values()], STOP_PATIENCE_MS)
    },
  }
}

/** What the clock is ahead of the time that passed; it changes when the clock is set, and when the machine slept. */
const clockOffset = (now: () => number): number => now() - performance.now()

async function settled(work: readonly Promise<void>[], withinMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, withinMs)
  })
  await Promise.race([Promise.all(work), patience])
  clearTimeout(timer)
}

const QUEUE_OF = {
  'poll-catalogue': CATALOGUE_QUEUE,
  'poll-registrations': REGISTRATIONS_QUEUE,
  'sweep-brokers': CATALOGUE_QUEUE,
  'retire-expired': CATALOGUE_QUEUE,
  'prune-records': CATALOGUE_QUEUE,
} as const satisfies Record<ScheduleName, string>

function taskLogger(schedule: ScheduleName, onError: SchedulerOptions['onError']) {
  const quiet = (): void => undefined
  return { info: quiet, debug: quiet, warn: quiet, error: (error: unknown) => onError(schedule, error) }
}
