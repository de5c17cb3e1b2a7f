import { AsyncLocalStorage } from 'node:async_hooks'

/** What this process is doing at the moment, as far as it follows from what called what; in every log line. */
export interface Activity {
  readonly requestId?: string
  readonly jobId?: string
  readonly runId?: string
  readonly traceId?: string
  /** Of a run of the engine, once it has an id; a sweep's own is the first. */
  readonly run?: { id: string | null }
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

/** From here on this run is under way. */
export function enterRun(id: string): void {
  const { run } = currentActivity()
  if (run !== undefined) run.id ??= id
  enterActivity({ runId: id })
}

const IDS = ['requestId', 'jobId', 'runId', 'traceId'] as const

/** The ids of what is under way, without those that are in the line already. */
export function idsForLog(known: Readonly<Record<string, unknown>>): Record<string, string> {
  const activity = currentActivity()
  const ids: Record<string, string> = {}
  for (const name of IDS) {
    const id = activity[name]
    if (id !== undefined && !Object.hasOwn(known, name)) ids[name] = id
  }
  return ids
}
