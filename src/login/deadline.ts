import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { ProbeLimits } from '../reconcile/login-port.ts'

/** Timers of Node fire at once when they are set longer. */
const MAX_TIMER_MS = 2_147_483_647

export const TIMED_OUT: Verdict = notVerified('timeout', 'No answer came in time.')

/** Calls `end` once when the time is up or the probe is aborted; the returned function calls it off. */
export function atDeadline({ timeoutMs, signal }: ProbeLimits, end: () => void): () => void {
  const isOver = signal?.aborted === true || !(timeoutMs > 0)
  const timer = setTimeout(end, isOver ? 0 : Math.min(timeoutMs, MAX_TIMER_MS))
  signal?.addEventListener('abort', end, { once: true })
  return () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}
