import { sql } from 'kysely'
import { registrationId as brandedId } from '../domain/ids.ts'
import { conflict } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import { raiseGenerations } from './generations.ts'
import { deleteRegistrations, writeRegistrations } from './import-write-registrations.ts'
import { type RegistrationReader, type RegistrationView, readRegistration } from './registration-view.ts'
import {
  type Changed,
  changeRegistration,
  inTransaction,
  type RegistrationPlace,
  type RevisionCheck,
  refused,
  registrationRevision,
  type StoredRegistration,
  writeRegistration,
} from './registrations-change.ts'

export type NewRegistration = Omit<StoredRegistration, 'filters'>

/** What product documents say instead of the domain of a product that has none; clients hand it on. */
const NO_DOMAIN = 'none'

/**
 * Throws CONFLICT when the registration exists, InvalidInputError for an unknown application domain. One that was deleted
 * comes back without the access requests, credentials and webhooks that it had.
 */
export async function createRegistration(
  reader: RegistrationReader,
  place: RegistrationPlace,
  given: NewRegistration,
): Promise<Changed<RegistrationView>> {
  const { accountId, registrationId: id } = place
  return await inTransaction(reader.db, accountId, async (trx) => {
    // There is no row to lock yet, and a second writer would change the first one's registration.
    const name = JSON.stringify(['keymesh registration', accountId, id])
    await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(trx)
    if (await exists(trx, place)) throw conflict(`There is an application registration "${id}" already.`)
    const applicationDomainId = await knownDomain(trx, accountId, given.applicationDomainId)
    const registration = { ...given, applicationDomainId, id: brandedId(id), filters: {} }
    await writeRegistrations(trx, accountId, [{ registration, isNew: true, isDeclared: false }])
    await raiseGenerations(trx, accountId, [id])
    return { result: await readRegistration({ ...reader, db: trx }, place), touched: true }
  })
}

async function exists(db: Database, { accountId, registrationId }: RegistrationPlace): Promise<boolean> {
  const row = await db
    .selectFrom('registrations')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', registrationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

async function knownDomain(db: Database, accountId: string, id: string | null): Promise<string | null> {
  if (id === null) return null
  const row = await db
    .selectFrom('application_domains')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (row !== undefined) return id
  if (id === NO_DOMAIN) return null
  const message = `there is no application domain ${JSON.stringify(id)}`
  throw refused('applicationDomainId', message)
}

/** What is absent stays. */
export interface RegistrationUpdate {
  readonly name?: string | undefined
  readonly sourceOwner?: string | null | undefined
  readonly applicationDomainId?: string | undefined
}

/** No broker knows what is changed here. Throws NOT_FOUND, InvalidInputError, or what `check` throws. */
export function updateRegistration(
  reader: RegistrationReader,
  place: RegistrationPlace,
  update: RegistrationUpdate,
  check: RevisionCheck,
): Promise<Changed<RegistrationView>> {
  return changeRegistration(reader.db, place, async (trx, stored) => {
    check(registrationRevision(stored))
    const { name = stored.name, sourceOwner = stored.sourceOwner, applicationDomainId } = update
    const domain =
      applicationDomainId === undefined || applicationDomainId === stored.applicationDomainId
        ? stored.applicationDomainId
        : await knownDomain(trx, place.accountId, applicationDomainId)
    await writeRegistration(trx, place, { ...stored, name, sourceOwner, applicationDomainId: domain })
    return { result: await readRegistration({ ...reader, db: trx }, place), touched: false }
  })
}

/** Its credentials end at once; the brokers follow. Throws NOT_FOUND, or what `check` throws. */
export function deleteRegistration(
  db: Database,
  place: RegistrationPlace,
  check: RevisionCheck,
): Promise<Changed<undefined>> {
  return changeRegistration(db, place, async (trx, stored) => {
    check(registrationRevision(stored))
    await deleteRegistrations(trx, place.accountId, [place.registrationId])
    return { result: undefined, touched: true }
  })
}
