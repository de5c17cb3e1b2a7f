import { AsyncLocalStorage } from 'node:async_hooks'

/** What this process is doing at the moment, as far as it follows from what called what; in every log line. */
export interface Activity {
  readonly requestId?: string
  readonly jobId?: string
  readonly runId?: string
  readonly traceId?: string
  /** The span that is under way, of whoever traces. */
  readonly span?: unknown
}

const storage = new AsyncLocalStorage<Activity>()
const NOTHING: Activity = {}

export const currentActivity = (): Activity => storage.getStore() ?? NOTHING

/** Runs `work` and what it calls with these beside what is known already. */
export function withActivity<Result>(more: Activity, work: () => Result): Result {
  return storage.run({ ...currentActivity(), ...more }, work)
}

/** From here on, in what the caller goes on to do, and not in what called it. */
export function enterActivity(more: Activity): void {
  storage.enterWith({ ...currentActivity(), ...more })
}
