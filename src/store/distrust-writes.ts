import { sql } from 'kysely'
import type { ObjectRef } from '../domain/broker-object.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'
import { raiseGenerations } from './generations.ts'

/**
 * What a run sent that had lost its lease is not in the ledger, and a password cannot be read: it is written again.
 * The generation orders this after every run that is under way.
 */
export async function distrustWrites(db: Database, pair: Pair, objects: readonly ObjectRef[]): Promise<void> {
  const { accountId, brokerId, registrationId } = pair
  const names = objects.filter(({ kind }) => kind === 'clientUsername').map(({ name }) => name)
  await db.transaction().execute(async (trx) => {
    await raiseGenerations(trx, accountId, [registrationId])
    await sql`
      update ledger set password_due = true
      where account_id = ${accountId} and broker_id = ${brokerId} and registration_id = ${registrationId}
        and kind = 'clientUsername' and name = any(${names}) and withdrawn_at is null`.execute(trx)
  })
}
