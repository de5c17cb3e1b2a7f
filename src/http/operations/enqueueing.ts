import type { AccountId } from '../../domain/ids.ts'
import type { Pair, RunTrigger } from '../../reconcile/store-port.ts'
import type { BrokerKey } from '../../reconcile/sweep-port.ts'
import { pairsOfRegistrations } from '../../store/pairs.ts'
import type { HttpDependencies } from '../dependencies.ts'

const SHOWN = 1000
/** The rest of a larger change is left to the poll. */
const MAX_ENQUEUED = 5000

/** Asked after the transaction that made the work. */
export async function enqueuePairs({ enqueue }: Pick<HttpDependencies, 'enqueue'>, pairs: readonly Pair[]) {
  const queued = pairs.length === 0 || (await enqueue.pairs(pairs, 'operator'))
  const registrations = pairs.slice(0, SHOWN).map(({ registrationId, brokerId }) => ({ registrationId, brokerId }))
  return { sweeps: [], registrations, count: pairs.length, queued }
}

export async function enqueueSweeps({ enqueue }: Pick<HttpDependencies, 'enqueue'>, brokers: readonly BrokerKey[]) {
  const added = await Promise.all(
    brokers.map(({ accountId, brokerId }) => enqueue.sweep({ accountId, brokerId }, 'operator')),
  )
  const sweeps = brokers.map(({ brokerId }) => brokerId)
  return { sweeps, registrations: [], count: sweeps.length, queued: added.every((each) => each) }
}

/** After a change that raised the generations of these registrations. */
export async function enqueueRaised(
  { db, enqueue }: Pick<HttpDependencies, 'db' | 'enqueue'>,
  accountId: AccountId,
  raised: readonly string[],
  trigger: RunTrigger = 'on-demand',
): Promise<void> {
  const pairs = await pairsOfRegistrations(db, accountId, raised, MAX_ENQUEUED)
  if (pairs.length > 0) await enqueue.pairs(pairs, trigger)
}
