import type { RunTrigger } from '../reconcile/store-port.ts'

/** How often and how late a job is tried again. */
export interface RetryPolicy {
  readonly attempts: number
  readonly baseMs: number
  readonly capMs: number
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 8, baseMs: 2_000, capMs: 15 * 60_000 }

/**
 * Exponential, then jittered over the upper half, so that jobs that failed together do not return together.
 * `attempt` is 1 after the first failure; `random` is in [0, 1).
 */
export function backoffMs(attempt: number, policy: RetryPolicy, random: number): number {
  const fullMs = Math.min(policy.capMs, policy.baseMs * 2 ** (attempt - 1))
  return Math.round(fullMs * (0.5 + random / 2))
}

/** Minutes that a job of this trigger yields to jobs a person waits for. */
const YIELD_MINUTES: Readonly<Record<Exclude<RunTrigger, 'revocation'>, number>> = {
  'on-demand': 0,
  operator: 0,
  poll: 10,
  sweep: 30,
}

/** Both engines order by a number below 2^21. */
const PRIORITY_RANGE = 2_000_000
const EPOCH_MS = Date.UTC(2025, 0, 1)

/**
 * A revocation stands before everything: there are few, and what they end may be in the wrong hands. For the others, the
 * minute by which a job should run; lower runs first. On demand comes before poll before sweep, and since the clock
 * moves on, a job that has waited its minutes stands before new on-demand ones: nothing starves (invariant 12). The
 * number starts again after 3.8 years; jobs that wait at that moment are passed by newer ones until the queue is empty.
 */
export function priorityOf(trigger: RunTrigger, runsAtMs: number): number {
  if (trigger === 'revocation') return 1
  const minute = Math.max(0, Math.floor((runsAtMs - EPOCH_MS) / 60_000)) + YIELD_MINUTES[trigger]
  return 2 + (minute % PRIORITY_RANGE)
}

/** Finished jobs of one tick stay this long: longer than clocks of replicas differ, else a tick could run twice. */
export const KEEP_TICKS_SECONDS = 3_600

/** The runs table keeps what happened; these rows are for a person who looks at the queue itself. */
export const KEEP_FAILED = { age: 7 * 86_400, count: 1_000 } as const
