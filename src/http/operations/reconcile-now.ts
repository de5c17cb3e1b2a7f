import type { AccountId } from '../../domain/ids.ts'
import { requestRuns } from '../../store/pairs.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { enqueuePairs, enqueueSweeps } from './enqueueing.ts'
import { knownBroker, knownRegistration, managedBrokers } from './known-objects.ts'

/** A permission to drop live clients that no run used is over then. */
const PERMISSION_MS = 3_600_000

export interface ReconcileRequest {
  /** All brokers when absent. */
  readonly brokerId?: string | undefined
  /** Sweeps when absent. */
  readonly registrationId?: string | undefined
  /** The next run of what waits may drop live clients, if it comes within an hour. */
  readonly allowDisruptive: boolean
}

/** For the audit trail. */
export const subjectOf = ({ brokerId, registrationId }: ReconcileRequest): string =>
  [registrationId, brokerId].filter((id) => id !== undefined).join(' on ') || 'all brokers'

/** What an operator asks for; does not wait for brokers. Throws NOT_FOUND for names that the account does not have. */
export async function reconcileNow(
  dependencies: Pick<HttpDependencies, 'db' | 'enqueue' | 'now'>,
  accountId: AccountId,
  { brokerId, registrationId, allowDisruptive }: ReconcileRequest,
) {
  const { db, now } = dependencies
  const disruptiveUntilMs = allowDisruptive ? now() + PERMISSION_MS : null
  const onBroker = brokerId === undefined ? {} : { brokerId }
  if (registrationId !== undefined) {
    await knownRegistration(db, accountId, registrationId)
    if (brokerId !== undefined) await knownBroker(db, accountId, brokerId)
    const pairs = await requestRuns(db, { accountId, registrationId, ...onBroker, disruptiveUntilMs })
    return await enqueuePairs(dependencies, pairs)
  }
  const brokers = await managedBrokers(db, accountId, brokerId)
  if (allowDisruptive) await requestRuns(db, { accountId, ...onBroker, heldOnly: true, disruptiveUntilMs })
  return await enqueueSweeps(dependencies, brokers)
}
