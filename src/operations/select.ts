import type { AccountId } from '../domain/ids.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { listManagedBrokers } from '../store/broker-settings.ts'
import type { Database } from '../store/database.ts'
import { pairsOfRegistration } from '../store/pairs.ts'
import { unknownInput } from './unknown-input.ts'

interface Place {
  readonly db: Database
  readonly accountId: AccountId
}

/** The named broker, or all of the account. Throws InvalidInputError when the name is unknown. */
export async function selectBrokers({ db, accountId }: Place, id: string | undefined): Promise<readonly BrokerKey[]> {
  const brokers = (await listManagedBrokers(db, accountId)).map(({ brokerId }) => ({ accountId, brokerId }))
  if (id === undefined) return brokers
  const named = brokers.filter((broker) => broker.brokerId === id)
  if (named.length === 0) {
    const known = brokers.map((broker) => broker.brokerId).join(', ') || 'none'
    throw unknownInput('brokerId', `there is no broker ${id} with complete management settings; known: ${known}`)
  }
  return named
}

/** The pairs of the named registration, on the named broker or on all. Throws InvalidInputError when there is none. */
export async function selectPairs(
  { db, accountId }: Place,
  registrationId: string,
  brokerId: string | undefined,
): Promise<readonly Pair[]> {
  const pairs = await pairsOfRegistration(db, accountId, registrationId)
  const selected = pairs.filter((pair) => brokerId === undefined || pair.brokerId === brokerId)
  if (selected.length === 0) {
    const where = brokerId === undefined ? 'any broker' : `broker ${brokerId}`
    throw unknownInput('registrationId', `registration ${registrationId} is unknown, or nothing ties it to ${where}`)
  }
  return selected
}
