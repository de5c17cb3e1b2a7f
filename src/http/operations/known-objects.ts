import { type AccountId, type BrokerId, brokerId, type RegistrationId, registrationId } from '../../domain/ids.ts'
import { notFound } from '../../domain/refusals.ts'
import { listManagedBrokers, type UsableBroker } from '../../store/broker-settings.ts'
import type { Database } from '../../store/database.ts'
import { brokerExists, registrationExists } from '../../store/operations-lookup.ts'

/** Throws NOT_FOUND when the account has no such broker. */
export async function knownBroker(db: Database, accountId: AccountId, id: string): Promise<BrokerId> {
  if (!(await brokerExists(db, accountId, id))) throw notFound('broker', id)
  return brokerId(id)
}

/** Throws NOT_FOUND when the account has no such registration; one that is being withdrawn is still there. */
export async function knownRegistration(db: Database, accountId: AccountId, id: string): Promise<RegistrationId> {
  if (!(await registrationExists(db, accountId, id))) throw notFound('registration', id)
  return registrationId(id)
}

/** Brokers that a worker can do something for: the named one, or all. Throws NOT_FOUND when the name is of none. */
export async function managedBrokers(
  db: Database,
  accountId: AccountId,
  id: string | undefined,
): Promise<readonly UsableBroker[]> {
  const brokers = await listManagedBrokers(db, accountId)
  if (id === undefined) return brokers
  const named = brokers.filter((broker) => broker.brokerId === id)
  if (named.length === 0) throw notFound('broker with complete management settings', id)
  return named
}
