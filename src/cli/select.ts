import type { Context } from '../context.ts'
import { InvalidInputError } from '../domain/errors.ts'
import type { Pair } from '../reconcile/store-port.ts'
import { listManagedBrokers, type UsableBroker } from '../store/broker-settings.ts'
import { pairsOfRegistration } from '../store/pairs.ts'

/** The named broker, or all of the account. Throws InvalidInputError when the name is unknown. */
export async function selectBrokers(context: Context, id: string | undefined): Promise<readonly UsableBroker[]> {
  const brokers = await listManagedBrokers(context.db, context.accountId)
  if (id === undefined) return brokers
  const named = brokers.filter((broker) => broker.brokerId === id)
  if (named.length === 0) {
    const known = brokers.map((broker) => broker.brokerId).join(', ') || 'none'
    throw new InvalidInputError('The command line', [
      { path: '--broker', message: `there is no broker ${id} with complete management settings; known: ${known}` },
    ])
  }
  return named
}

/** The pairs of the named registration, on the named broker or on all. Throws InvalidInputError when there is none. */
export async function selectPairs(
  context: Context,
  registration: string,
  broker: string | undefined,
): Promise<readonly Pair[]> {
  const pairs = await pairsOfRegistration(context.db, context.accountId, registration)
  const selected = pairs.filter((pair) => broker === undefined || pair.brokerId === broker)
  if (selected.length === 0) {
    const where = broker === undefined ? 'any broker' : `broker ${broker}`
    throw new InvalidInputError('The command line', [
      { path: '--registration', message: `registration ${registration} is unknown, or nothing ties it to ${where}` },
    ])
  }
  return selected
}
