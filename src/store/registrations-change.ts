import { sql } from 'kysely'
import { InvalidInputError, KeymeshError } from '../domain/errors.ts'
import { type AccountId, registrationId as brandedId } from '../domain/ids.ts'
import { notFound } from '../domain/refusals.ts'
import type { Filters } from '../domain/registration.ts'
import { databaseField } from './catalogue-transaction.ts'
import type { Database } from './database.ts'
import { refuseFollowed } from './followed-catalogues.ts'
import { raiseGenerations } from './generations.ts'
import { registrationContent, revisionOf } from './import-content.ts'
import { writeRegistrations } from './import-write-registrations.ts'
import type { NameValue } from './schema.ts'

export interface RegistrationPlace {
  readonly accountId: AccountId
  readonly registrationId: string
}

/** Given to a change, which calls it with the stored revision, the row locked; throws to refuse the change. */
export type RevisionCheck = (revision: string) => void

/** A registration without what hangs on it. */
export interface StoredRegistration {
  readonly name: string
  readonly source: string
  readonly sourceOwner: string | null
  readonly applicationDomainId: string | null
  readonly filters: Filters
  readonly attributes: readonly NameValue[]
}

export interface Changed<Result> {
  readonly result: Result
  /** Whether something on a broker may have to change: then its reconciliation is due. */
  readonly touched: boolean
}

/**
 * Changes a registration, or what hangs on it, in one transaction with its generation. Changes of one registration wait
 * for each other. Throws NOT_FOUND, or what `change` throws; nothing is written then.
 */
export function changeRegistration<Result>(
  db: Database,
  place: RegistrationPlace,
  change: (trx: Database, registration: StoredRegistration) => Promise<Changed<Result>>,
): Promise<Changed<Result>> {
  const { accountId, registrationId } = place
  return inTransaction(db, accountId, async (trx) => {
    const registration = await lockRegistration(trx, place)
    if (registration === null) throw notFound('application registration', registrationId)
    const changed = await change(trx, registration)
    if (changed.touched) await raiseGenerations(trx, accountId, [registrationId])
    return changed
  })
}

const ATTEMPTS = 5
const DEADLOCK = '40P01'
const LOCK_TIMEOUT = '55P03'
const PATIENCE = '10s'

/**
 * A transaction that no change of the account's catalogue crosses, an import among them: what a request rests on stays
 * as it was read. Repeated when the reconciler, which locks rows in another order, made it a deadlock. Throws BUSY when
 * others take long, CONFLICT when the account's registrations are those of another service.
 */
export async function inTransaction<Result>(
  db: Database,
  accountId: AccountId,
  run: (trx: Database) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(async (trx) => {
        // Who waits holds a connection that others need.
        await sql`select set_config('lock_timeout', ${PATIENCE}, true)`.execute(trx)
        await sql`select pg_advisory_xact_lock_shared(hashtextextended(${`keymesh import ${accountId}`}, 0))`.execute(
          trx,
        )
        await refuseFollowed(trx, accountId)
        return await run(trx)
      })
    } catch (error) {
      const code = databaseField(error, 'code')
      if (code === LOCK_TIMEOUT) throw busy(error)
      if (code !== DEADLOCK || attempt === ATTEMPTS) throw error
    }
  }
}

const busy = (cause: unknown): KeymeshError =>
  new KeymeshError({
    code: 'BUSY',
    fate: 'retry',
    message: 'Others change the same, or the whole catalogue, at this moment; nothing was written.',
    hint: 'Try again in a moment.',
    cause,
  })

/** Pairs before what hangs on the registration: the order in which finished runs lock them. */
async function lockRegistration(db: Database, place: RegistrationPlace): Promise<StoredRegistration | null> {
  const row = await registrationRow(db, place).forUpdate().executeTakeFirst()
  if (row === undefined) return null
  await db
    .selectFrom('pairs')
    .select('broker_id')
    .where('account_id', '=', place.accountId)
    .where('registration_id', '=', place.registrationId)
    .orderBy('broker_id')
    .forUpdate()
    .execute()
  return row
}

function registrationRow(db: Database, { accountId, registrationId }: RegistrationPlace) {
  return db
    .selectFrom('registrations')
    .select(['name', 'source', 'source_owner as sourceOwner', 'application_domain_id as applicationDomainId'])
    .select(['filters', 'attributes'])
    .where('account_id', '=', accountId)
    .where('id', '=', registrationId)
    .where('deleted_at', 'is', null)
}

/** Without a lock. Throws NOT_FOUND. */
export async function findRegistration(db: Database, place: RegistrationPlace): Promise<StoredRegistration> {
  const row = await registrationRow(db, place).executeTakeFirst()
  if (row === undefined) throw notFound('application registration', place.registrationId)
  return row
}

/** What an ETag of the registration is made of: what a client, or a portal file, gave it. */
export const registrationRevision = (registration: StoredRegistration): string =>
  revisionOf(registrationContent({ ...registration }))

/** The row as a whole; the registration must be locked. */
export async function writeRegistration(
  db: Database,
  { accountId, registrationId }: RegistrationPlace,
  registration: StoredRegistration,
): Promise<void> {
  await writeRegistrations(db, accountId, [
    { registration: { ...registration, id: brandedId(registrationId) }, isNew: false, isDeclared: false },
  ])
}

/** What a field asks for is well written, and does not go together with what is stored. */
export const refused = (field: string, message: string): InvalidInputError =>
  new InvalidInputError('The request', [{ path: field, message }])
