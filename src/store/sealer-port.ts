import type { Secret } from '../domain/secret.ts'

/** Where a sealed value belongs: bound to it, so that a value moved to another row or column cannot be opened. */
export interface SealPlace {
  readonly accountId: string
  readonly table: string
  readonly rowId: string
  readonly column: string
  readonly version: number
}

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
