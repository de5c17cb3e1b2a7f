import type { Secret } from '../domain/secret.ts'
import type { Database } from './database.ts'
import { isoTime, revisionOf } from './import-content.ts'
import type { RegistrationPlace } from './registrations-change.ts'
import { credentialPlace, type Sealer } from './sealer-port.ts'

/** A live credential, its secret open. */
export interface CredentialView {
  readonly name: string
  readonly consumerKey: string
  readonly consumerSecret: Secret
  readonly issuedAtMs: number
  /** Null: it does not expire. */
  readonly expiresAtMs: number | null
  /** Of name, secret and expiry. */
  readonly revision: string
}

export interface CredentialReader {
  readonly db: Database
  readonly sealer: Sealer
}

export const CREDENTIAL_SORT_FIELDS = ['name', 'consumerKey', 'issuedAt', 'expiresAt'] as const
export type CredentialSortField = (typeof CREDENTIAL_SORT_FIELDS)[number]

const COLUMN_OF = {
  name: 'name',
  consumerKey: 'consumer_key',
  issuedAt: 'issued_at',
  expiresAt: 'expires_at',
} as const satisfies Readonly<Record<CredentialSortField, string>>

export interface CredentialQuery {
  readonly sortFieldName?: CredentialSortField | undefined
  readonly sortDirection: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

/** Live credentials of one registration, oldest first unless sorted, and how many there are. */
export async function listCredentials(
  reader: CredentialReader,
  { accountId, registrationId }: RegistrationPlace,
  { sortFieldName = 'issuedAt', sortDirection, limit, offset }: CredentialQuery,
): Promise<{ readonly items: readonly CredentialView[]; readonly count: number }> {
  const live = liveCredentials(reader.db, accountId).where('registration_id', '=', registrationId)
  const rows = await live
    .selectAll()
    .orderBy(COLUMN_OF[sortFieldName], sortDirection)
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute()
  const { count } = await live.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  return { items: await opened(reader.sealer, rows), count }
}

/** Null when the registration has no live credential of this key. */
export async function findCredential(
  { db, sealer }: CredentialReader,
  { accountId, registrationId }: RegistrationPlace,
  consumerKey: string,
): Promise<CredentialView | null> {
  const rows = await liveCredentials(db, accountId)
    .where('registration_id', '=', registrationId)
    .where('consumer_key', '=', consumerKey)
    .selectAll()
    .execute()
  const [credential = null] = await opened(sealer, rows)
  return credential
}

/** By registration, oldest first. */
export async function readCredentials(
  { db, sealer }: CredentialReader,
  accountId: string,
  registrationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly CredentialView[]>> {
  if (registrationIds.length === 0) return new Map()
  const rows = await liveCredentials(db, accountId)
    .where('registration_id', 'in', registrationIds)
    .selectAll()
    .orderBy('issued_at')
    .orderBy('id')
    .execute()
  const views = await opened(sealer, rows)
  const groups = new Map<string, CredentialView[]>()
  for (const [index, view] of views.entries()) {
    const id = rows[index]?.registration_id ?? ''
    groups.set(id, [...(groups.get(id) ?? []), view])
  }
  return groups
}

const liveCredentials = (db: Database, accountId: string) =>
  db.selectFrom('credentials').where('account_id', '=', accountId).where('retired_at', 'is', null)

interface CredentialRow {
  readonly account_id: string
  readonly id: string
  readonly name: string
  readonly consumer_key: string
  readonly secret: string
  readonly secret_version: number
  readonly issued_at: Date
  readonly expires_at: Date | null
}

function opened(sealer: Sealer, rows: readonly CredentialRow[]): Promise<readonly CredentialView[]> {
  return Promise.all(
    rows.map(async (row) => ({
      name: row.name,
      consumerKey: row.consumer_key,
      consumerSecret: await sealer.open(row.secret, credentialPlace(row.account_id, row.id, row.secret_version)),
      issuedAtMs: row.issued_at.getTime(),
      expiresAtMs: row.expires_at?.getTime() ?? null,
      revision: credentialRevision(row),
    })),
  )
}

/** Nothing derived from the secret: its version stands for it. */
export const credentialRevision = (
  row: Pick<CredentialRow, 'name' | 'consumer_key' | 'secret_version' | 'expires_at'>,
): string =>
  revisionOf({
    name: row.name,
    consumerKey: row.consumer_key,
    version: row.secret_version,
    expiresAt: isoTime(row.expires_at?.getTime() ?? null),
  })
