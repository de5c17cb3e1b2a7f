import type { AccountId } from '../../domain/ids.ts'
import { lagsOf } from '../../store/pairs.ts'
import { pause, resume, setBrokerPaused } from '../../store/pause.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { enqueuePairs } from './enqueueing.ts'
import { knownBroker, knownRegistration } from './known-objects.ts'

/** Of one resume; the rest is left to the poll. */
const MAX_RESUMED = 5000

/** What is paused or resumed: everything of the account, a broker, or a registration. */
export type PauseScope =
  | { readonly accountId: AccountId; readonly scope: 'account' }
  | { readonly accountId: AccountId; readonly scope: 'broker' | 'registration'; readonly id: string }

/** What runs ends, nothing begins. Throws NOT_FOUND. */
export async function pauseScope(
  { db }: Pick<HttpDependencies, 'db'>,
  target: PauseScope,
  pausedBy: string,
): Promise<void> {
  await setPaused(db, target, pausedBy)
}

/** What lags is reconciled at once; answers what was put in the queue. Throws NOT_FOUND. */
export async function resumeScope(dependencies: Pick<HttpDependencies, 'db' | 'enqueue'>, target: PauseScope) {
  const { db } = dependencies
  const concerned = await setPaused(db, target, null)
  return await enqueuePairs(dependencies, await lagsOf(db, concerned, MAX_RESUMED))
}

/** Null: resumed. */
async function setPaused(db: HttpDependencies['db'], target: PauseScope, pausedBy: string | null) {
  const { accountId } = target
  if (target.scope === 'broker') {
    const brokerId = await knownBroker(db, accountId, target.id)
    await setBrokerPaused(db, { accountId, brokerId }, pausedBy !== null)
    return { accountId, brokerId }
  }
  const registrationId = target.scope === 'account' ? null : await knownRegistration(db, accountId, target.id)
  const place = { accountId, registrationId }
  await (pausedBy === null ? resume(db, place) : pause(db, place, pausedBy))
  return registrationId === null ? { accountId } : { accountId, registrationId }
}
