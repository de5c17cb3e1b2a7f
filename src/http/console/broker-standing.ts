import { codeOf, errorLine } from '../../domain/errors.ts'
import { type AccountId, brokerId, registrationId } from '../../domain/ids.ts'
import { listManagedBrokers } from '../../store/broker-settings.ts'
import type { Database } from '../../store/database.ts'
import { refusePausedPair } from '../../store/pause.ts'
import type { NamedBroker } from './record-filters.ts'

interface Place {
  readonly broker?: string | undefined
  readonly registration?: string | undefined
}

/** Brokers that something can be done on, for a select. */
export async function namedBrokers(db: Database, accountId: AccountId): Promise<readonly NamedBroker[]> {
  return (await listManagedBrokers(db, accountId)).map(({ brokerId: id, name }) => ({ id, name }))
}

/** Why no run would do anything there now; null when one would. */
export async function offBecauseOf(db: Database, accountId: AccountId, place: Place): Promise<string | null> {
  const { broker, registration } = place
  if (broker === undefined) return null
  const managed = (await listManagedBrokers(db, accountId)).find((each) => each.brokerId === broker)
  if (managed === undefined) return `Broker ${broker} has no complete management settings.`
  if (managed.paused) return `Broker ${broker} is paused; resume it first.`
  if (registration === undefined) return null
  const pair = { accountId, brokerId: brokerId(broker), registrationId: registrationId(registration) }
  try {
    await refusePausedPair(db, pair)
    return null
  } catch (error) {
    if (codeOf(error) !== 'PAUSED') throw error
    return errorLine(error)
  }
}
