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
}

export interface Scheduler {
  /** Runs what is overdue, then follows the clock. Throws `SCHEDULE` when an expression is wrong. */
  start(): Promise<void>
  /** Adds the jobs of one tick; again in this or another replica it adds nothing. */
  fire(schedule: ScheduleName, tickMs: number): Promise<void>
  stop(): Promise<void>
}

/**
 * node-cron fires in every replica; the tick in the job's id makes that one job. What ticked while no replica was up runs
 * once at the next start. Ticks are UTC, so no day has an hour twice or not at all; when day of month and day of week are
 * both given, a tick needs both (node-cron), not either.
 */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { now, onError, ticks } = options
  const expressions = { ...DEFAULT_SCHEDULES, ...options.expressions }
  const schedules = Object.keys(DEFAULT_SCHEDULES) as ScheduleName[]
  const tasks: ScheduledTask[] = []
  const running = new Set<Promise<void>>()

  const fire = async (schedule: ScheduleName, tickMs: number): Promise<void> => {
    const id = tickJobId(schedule, tickMs)
    await options.backend
      .queue(QUEUE_OF[schedule])
      .add([{ name: schedule, payload: {}, id, keepSeconds: KEEP_TICKS_SECONDS }])
    await ticks.recordTick(schedule, tickMs)
  }
  const fireSafely = (schedule: ScheduleName, tickMs: number): void => {
    const run = fire(schedule, tickMs)
      .catch((error: unknown) => onError(schedule, error))
      .finally(() => running.delete(run))
    running.add(run)
  }
  const runOverdue = async (schedule: ScheduleName): Promise<void> => {
    const tickMs = lastTickMs(expressions[schedule], now(), await ticks.lastTick(schedule))
    if (tickMs !== null) await fire(schedule, tickMs)
  }
  const follow = (schedule: ScheduleName): ScheduledTask => {
    const onTick = ({ date }: { readonly date: Date }): void => fireSafely(schedule, date.getTime())
    const task = createTask(expressions[schedule], onTick, {
      timezone: 'UTC',
      suppressMissedWarning: true,
      logger: taskLogger(schedule, onError),
    })
    // A process that was busy for a moment is late, not excused.
    task.on('execution:missed', onTick)
    return task
  }
  return {
    fire,
    async start() {
      for (const schedule of schedules) checkCron(schedule, expressions[schedule])
      for (const schedule of schedules) {
        // One that cannot run now must not keep the others from their times.
        await runOverdue(schedule).catch((error: unknown) => onError(schedule, error))
        const task = follow(schedule)
        tasks.push(task)
        await task.start()
      }
    },
    async stop() {
      await Promise.all(tasks.splice(0).map((task) => task.destroy()))
      await Promise.all(running)
    },
  }
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
