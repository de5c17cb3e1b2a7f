import { createHash } from 'node:crypto'
import type { AccountId, BrokerId } from '../domain/ids.ts'

export const CATALOGUE_QUEUE = 'catalogue'
export const REGISTRATIONS_QUEUE = 'registrations'
export const NOTIFICATIONS_QUEUE = 'notifications'

export interface BrokerKey {
  readonly accountId: AccountId
  readonly brokerId: BrokerId
}

/** At most 24 characters, so that a hash of 32 never passes for one. */
const PLAIN = /^[A-Za-z0-9_]{1,24}$/

/**
 * One queue per broker: only letters, digits, `-` and `_`, on either engine. Ids that are not plain share a readable
 * part and differ by the hash of both, so that two brokers never share a queue.
 */
export function brokerQueue({ accountId, brokerId }: BrokerKey): string {
  if (PLAIN.test(accountId) && PLAIN.test(brokerId)) return `broker-${accountId}-${brokerId}`
  const readable = brokerId.replace(/[^A-Za-z0-9_]/g, '').slice(0, 24)
  const hash = createHash('sha256')
    .update(JSON.stringify([accountId, brokerId]))
    .digest('hex')
    .slice(0, 32)
  return `broker-${readable}-${hash}`
}
