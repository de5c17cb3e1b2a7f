import { tickIntervalMs } from '../../src/queue/schedule-ticks.ts'
import type { StepSettings } from './steps.ts'

export interface SoakSettings extends Omit<StepSettings, 'lengthMs'> {
  /** Of random life; the start before it and the end after it take their own time. */
  readonly lengthMs: number
  readonly brokers: number
  /** The first ones of them are never at fault. */
  readonly healthyBrokers: number
  readonly registrations: number
  readonly checkEveryMs: number
  /** When a credential that is to expire does so. */
  readonly expiresInMs: readonly [shortest: number, longest: number]
  readonly requestTimeoutMs: number
  readonly schedule: Schedule
  /** Looks for what has expired this often; null: the scheduler's own minute. */
  readonly retireEveryMs: number | null
  /** What all may take longer on a busy machine. */
  readonly slackMs: number
  /** How far the service's memory may grow after the first third. */
  readonly growth: Growth
}

export interface Growth {
  readonly factor: number
  readonly heapMb: number
  readonly rssMb: number
}

/** As the service's settings have them. */
export interface Schedule {
  readonly pollCron: string
  readonly sweepCron: string
  readonly leaseSeconds: number
  readonly graceSeconds: number
  readonly loginEverySeconds: number
}

/** How long a difference may be there, by what made it. */
export interface Bounds {
  /** Somebody asked for it. */
  readonly changeMs: number
  /** A hand changed it on the broker, so that a sweep has to see it. */
  readonly driftMs: number
  /** A hand changed a password, so that a login has to see it. */
  readonly passwordMs: number
  /** From its time until an expired credential is looked at. */
  readonly expiryMs: number
  /** From the end of access to the deletion of what is left of it. */
  readonly graceMs: number
  /** After a fault of this length, until the broker is worked on again. */
  readonly recoveryMs: (faultMs: number) => number
  /** More than that, when a worker was killed meanwhile: it may have been the one that tried the broker. */
  readonly proberMs: number
  /** After a worker was killed: what it held is free after its lease, its jobs are found after as long. */
  readonly leaseMs: number
  /** In which everything that recurs happens at least twice. */
  readonly quietMs: number
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
/** Longest rest of a sick broker, and how long one that tries it has it to itself: if it dies, others wait so long. */
const LONGEST_REST_MS = 2 * MINUTE_MS
const PROBER_MS = MINUTE_MS

/** An hour, as it is run by hand. */
export function longSoak(given: {
  readonly minutes: number
  readonly brokers: number
  readonly registrations: number
  readonly seed: number
}): SoakSettings {
  return {
    seed: given.seed,
    lengthMs: given.minutes * MINUTE_MS,
    brokers: given.brokers,
    healthyBrokers: 0,
    registrations: given.registrations,
    stepEveryMs: 700,
    faultEveryMs: (10 * MINUTE_MS) / given.brokers,
    faultLastsMs: [5 * SECOND_MS, 90 * SECOND_MS],
    squatLastsMs: [20 * SECOND_MS, 200 * SECOND_MS],
    restartEveryMs: Math.min(5, given.minutes / 4) * MINUTE_MS,
    checkEveryMs: MINUTE_MS,
    expiresInMs: [5 * SECOND_MS, 120 * SECOND_MS],
    requestTimeoutMs: 5_000,
    schedule: {
      pollCron: '*/5 * * * * *',
      sweepCron: '0 * * * * *',
      leaseSeconds: 15,
      graceSeconds: 60,
      loginEverySeconds: Math.round(Math.min(600, Math.max(30, given.minutes * 10))),
    },
    retireEveryMs: null,
    slackMs: MINUTE_MS,
    growth: { factor: 1.25, heapMb: 20, rssMb: 80 },
  }
}

/** Short enough for the tests: the same with everything closer together. */
export function shortSoak({ seed }: { readonly seed: number }): SoakSettings {
  return {
    seed,
    lengthMs: 35 * SECOND_MS,
    brokers: 3,
    healthyBrokers: 1,
    registrations: 40,
    stepEveryMs: 600,
    faultEveryMs: 9 * SECOND_MS,
    faultLastsMs: [1 * SECOND_MS, 5 * SECOND_MS],
    squatLastsMs: [2 * SECOND_MS, 10 * SECOND_MS],
    restartEveryMs: 22 * SECOND_MS,
    checkEveryMs: 5 * SECOND_MS,
    expiresInMs: [1 * SECOND_MS, 10 * SECOND_MS],
    requestTimeoutMs: 2_500,
    schedule: {
      pollCron: '* * * * * *',
      sweepCron: '*/4 * * * * *',
      leaseSeconds: 10,
      graceSeconds: 3,
      loginEverySeconds: 10,
    },
    retireEveryMs: 2_000,
    slackMs: 20 * SECOND_MS,
    growth: { factor: 2, heapMb: 50, rssMb: 200 },
  }
}

export function serviceEnvironment({ schedule }: Pick<SoakSettings, 'schedule'>): Readonly<Record<string, string>> {
  return {
    KEYMESH_ROLES: 'worker,scheduler',
    KEYMESH_LOG_LEVEL: 'trace',
    KEYMESH_POLL_CRON: schedule.pollCron,
    KEYMESH_SWEEP_CRON: schedule.sweepCron,
    KEYMESH_LEASE: `${schedule.leaseSeconds}s`,
    KEYMESH_GRACE_PERIOD: `${schedule.graceSeconds}s`,
    KEYMESH_LOGINS: 'true',
    KEYMESH_LOGIN_EVERY: `${schedule.loginEverySeconds}s`,
    KEYMESH_LOGIN_CONTROL_EVERY: `${schedule.loginEverySeconds}s`,
    KEYMESH_RATE_LIMIT: '0',
  }
}

export function boundsOf({ schedule, retireEveryMs, slackMs }: SoakSettings): Bounds {
  const pollMs = intervalMs(schedule.pollCron)
  // A sweep takes its place within half of the time between two, and one that is cut off leaves the rest to the next.
  const sweepMs = 1.5 * intervalMs(schedule.sweepCron)
  const changeMs = pollMs + slackMs
  const driftMs = 2 * sweepMs + slackMs
  return {
    changeMs,
    driftMs,
    passwordMs: schedule.loginEverySeconds * SECOND_MS + driftMs,
    expiryMs: retireEveryMs ?? MINUTE_MS,
    graceMs: schedule.graceSeconds * SECOND_MS,
    // Rests and backoffs double, so that what is left of one is about as long as the fault was.
    recoveryMs: (faultMs) => 2 * Math.min(faultMs, LONGEST_REST_MS) + 10 * SECOND_MS,
    proberMs: PROBER_MS,
    leaseMs: 3 * schedule.leaseSeconds * SECOND_MS,
    quietMs: Math.max(2 * sweepMs, 2 * pollMs),
  }
}

const SOME_DAY_MS = Date.UTC(2026, 2, 3)

function intervalMs(cron: string): number {
  const interval = tickIntervalMs(cron, SOME_DAY_MS)
  if (interval === null) throw new Error(`${cron} does not tick`)
  return interval
}
