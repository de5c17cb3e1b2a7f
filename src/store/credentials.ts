import { timingSafeEqual } from 'node:crypto'
import { sql } from 'kysely'
import { notFound } from '../domain/refusals.ts'
import type { Secret } from '../domain/secret.ts'
import { type CredentialReader, type CredentialView, credentialRevision, findCredential } from './credentials-view.ts'
import type { Database } from './database.ts'
import {
  CONSUMER_KEY_LENGTH,
  insertCredentials,
  retireCredentials,
  updateCredentials,
} from './import-write-registrations.ts'
import type { RandomSource } from './random-source.ts'
import {
  type Changed,
  changeRegistration,
  type RegistrationPlace,
  type RevisionCheck,
  refused,
} from './registrations-change.ts'
import { credentialPlace, type Sealer } from './sealer-port.ts'

/** As many as one answer can hold. */
export const MAX_CREDENTIALS = 999

export interface CredentialWriter extends CredentialReader {
  readonly random: RandomSource
  readonly nowMs: number
}

/** Null: generated; the name is then the consumer key. */
export interface GivenCredential {
  readonly name: string | null
  readonly consumerKey: string | null
  readonly consumerSecret: Secret | null
  readonly expiresAtMs: number | null
}

/**
 * Throws NOT_FOUND for the registration, InvalidInputError when a name or key is taken or the expiry is
 * over. A consumer key is one client username: unique in the account.
 */
export function createCredential(
  writer: CredentialWriter,
  place: RegistrationPlace,
  given: GivenCredential,
): Promise<Changed<CredentialView>> {
  const { accountId, registrationId } = place
  return changeRegistration(writer.db, place, async (trx) => {
    refusePast(given.expiresAtMs, writer.nowMs)
    const consumerKey = given.consumerKey ?? writer.random.token(CONSUMER_KEY_LENGTH)
    const name = given.name ?? consumerKey
    await lockConsumerKey(trx, accountId, consumerKey)
    await refuseTakenKey(trx, accountId, consumerKey)
    await refuseTakenName(trx, place, name)
    await refuseTooMany(trx, place)
    const credential = {
      registrationId,
      name,
      consumerKey,
      secret: given.consumerSecret,
      secretVersion: (await newestVersion(trx, accountId, consumerKey)) + 1,
      expiresAtMs: given.expiresAtMs,
    }
    await insertCredentials(trx, writer, accountId, [credential])
    return { result: await requireCredential({ ...writer, db: trx }, place, consumerKey), touched: true }
  })
}

/** What is absent stays. */
export interface CredentialChange {
  readonly name?: string | undefined
  readonly consumerSecret?: Secret | undefined
  readonly expiresAtMs?: number | null | undefined
}

/** Throws NOT_FOUND, InvalidInputError, or what `check` throws. The same secret again is no new version. */
export function updateCredential(
  writer: CredentialWriter,
  place: RegistrationPlace & { readonly consumerKey: string },
  change: CredentialChange,
  check: RevisionCheck,
): Promise<Changed<CredentialView>> {
  const { accountId, consumerKey } = place
  return changeRegistration(writer.db, place, async (trx) => {
    await lockConsumerKey(trx, accountId, consumerKey)
    const stored = await liveCredential(trx, place)
    check(credentialRevision(stored))
    const storedExpiryMs = stored.expires_at?.getTime() ?? null
    const { name = stored.name, expiresAtMs = storedExpiryMs } = change
    if (expiresAtMs !== storedExpiryMs) refusePast(expiresAtMs, writer.nowMs)
    if (name !== stored.name) {
      await refuseTakenName(trx, place, name)
      await trx
        .updateTable('credentials')
        .set({ name })
        .where('account_id', '=', accountId)
        .where('id', '=', stored.id)
        .execute()
    }
    const secret = await newSecret(writer.sealer, accountId, stored, change.consumerSecret)
    const version = secret === null ? stored.secret_version : (await newestVersion(trx, accountId, consumerKey)) + 1
    const touched = secret !== null || expiresAtMs !== storedExpiryMs
    if (touched) {
      await updateCredentials(trx, writer.sealer, accountId, [
        { id: stored.id, secret, version, expiresAtMs, consumerKey },
      ])
    }
    return { result: await requireCredential({ ...writer, db: trx }, place, consumerKey), touched }
  })
}

/** Ends it at once: the brokers disable its client username, then remove it. Throws NOT_FOUND, or what `check` throws. */
export function deleteCredential(
  db: Database,
  place: RegistrationPlace & { readonly consumerKey: string },
  check: RevisionCheck,
): Promise<Changed<undefined>> {
  return changeRegistration(db, place, async (trx) => {
    const stored = await liveCredential(trx, place)
    check(credentialRevision(stored))
    await retireCredentials(trx, place.accountId, [stored.id])
    return { result: undefined, touched: true }
  })
}

async function requireCredential(
  reader: CredentialReader,
  place: RegistrationPlace,
  consumerKey: string,
): Promise<CredentialView> {
  const credential = await findCredential(reader, place, consumerKey)
  if (credential === null) throw notFound('credential', consumerKey)
  return credential
}

async function liveCredential(db: Database, place: RegistrationPlace & { readonly consumerKey: string }) {
  const row = await liveOf(db, place)
    .where('consumer_key', '=', place.consumerKey)
    .selectAll()
    .forUpdate()
    .executeTakeFirst()
  if (row === undefined) throw notFound('credential', place.consumerKey)
  return row
}

/** Versions of a key must grow over all registrations that ever had it: brokers may have confirmed each of them. */
async function lockConsumerKey(db: Database, accountId: string, consumerKey: string): Promise<void> {
  const name = JSON.stringify(['keymesh consumer key', accountId, consumerKey])
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(db)
}

async function newestVersion(db: Database, accountId: string, consumerKey: string): Promise<number> {
  const row = await db
    .selectFrom('credentials')
    .select((eb) => eb.fn.max('secret_version').as('version'))
    .where('account_id', '=', accountId)
    .where('consumer_key', '=', consumerKey)
    .executeTakeFirst()
  return row?.version ?? 0
}

/** Does not say who has it. */
async function refuseTakenKey(db: Database, accountId: string, consumerKey: string): Promise<void> {
  const taken = await db
    .selectFrom('credentials')
    .select('id')
    .where('account_id', '=', accountId)
    .where('consumer_key', '=', consumerKey)
    .where('retired_at', 'is', null)
    .executeTakeFirst()
  if (taken !== undefined) throw refused('secret.consumerKey', 'is not unique: it is in use already')
}

/** A portal file finds a credential by its name. */
async function refuseTakenName(db: Database, place: RegistrationPlace, name: string): Promise<void> {
  const taken = await liveOf(db, place).where('name', '=', name).select('id').executeTakeFirst()
  if (taken !== undefined) throw refused('name', 'is not unique: the registration has a credential of this name')
}

async function refuseTooMany(db: Database, place: RegistrationPlace): Promise<void> {
  const { count } = await liveOf(db, place)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count < MAX_CREDENTIALS) return
  throw refused('request', `the registration has ${MAX_CREDENTIALS} credentials, which is the most it can have`)
}

const liveOf = (db: Database, { accountId, registrationId }: RegistrationPlace) =>
  db
    .selectFrom('credentials')
    .where('account_id', '=', accountId)
    .where('registration_id', '=', registrationId)
    .where('retired_at', 'is', null)

function refusePast(expiresAtMs: number | null, nowMs: number): void {
  if (expiresAtMs === null || expiresAtMs > nowMs) return
  throw refused('expiresAt', 'must be in the future, or -1 for never')
}

/** Null when the stored one stays. */
async function newSecret(
  sealer: Sealer,
  accountId: string,
  stored: { readonly id: string; readonly secret: string; readonly secret_version: number },
  given: Secret | undefined,
): Promise<Secret | null> {
  if (given === undefined) return null
  const known = await sealer.open(stored.secret, credentialPlace(accountId, stored.id, stored.secret_version))
  const [one, other] = [Buffer.from(known.reveal()), Buffer.from(given.reveal())]
  return one.length === other.length && timingSafeEqual(one, other) ? null : given
}
