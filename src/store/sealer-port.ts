import type { SealPlace } from '../domain/seal-place.ts'
import type { Secret } from '../domain/secret.ts'

/** What the store needs of the sealing code. */
export interface Sealer {
  seal(secret: Secret, place: SealPlace): Promise<string>
  open(sealed: string, place: SealPlace): Promise<Secret>
}

export const credentialPlace = (accountId: string, credentialId: string, version: number): SealPlace => ({
  accountId,
  table: 'credentials',
  rowId: credentialId,
  column: 'secret',
  version,
})

export const brokerPasswordPlace = (accountId: string, brokerId: string, version: number): SealPlace => ({
  accountId,
  table: 'brokers',
  rowId: brokerId,
  column: 'management_password',
  version,
})

export const webhookPlace = (accountId: string, id: string, version: number): SealPlace => ({
  accountId,
  table: 'webhooks',
  rowId: id,
  column: 'secrets',
  version,
})

export const notificationEndpointPlace = (accountId: string, id: string, version: number): SealPlace => ({
  accountId,
  table: 'notification_endpoints',
  rowId: id,
  column: 'secrets',
  version,
})
