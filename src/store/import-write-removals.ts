import { sql } from 'kysely'
import type { Database } from './database.ts'
import type { VersionKey } from './import-plan.ts'

export async function deleteById(
  db: Database,
  table: 'environments' | 'event_meshes' | 'application_domains' | 'products',
  accountId: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await db.deleteFrom(table).where('account_id', '=', accountId).where('id', 'in', ids).execute()
}

export async function deleteEventApis(db: Database, accountId: string, keys: readonly VersionKey[]): Promise<void> {
  if (keys.length === 0) return
  await sql`
    delete from event_apis e using jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as w(id text, version text)
    where e.account_id = ${accountId} and e.id = w.id and e.version = w.version`.execute(db)
}

/**
 * The shared client profiles stay on the message VPN, no longer known. The ledger's own rows of registrations make the
 * deletion fail, so that nothing of ours is forgotten.
 */
export async function deleteBrokers(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .selectFrom('brokers')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', 'in', ids)
    .orderBy('id')
    .forUpdate()
    .execute()
  await db
    .deleteFrom('ledger')
    .where('account_id', '=', accountId)
    .where('broker_id', 'in', ids)
    .where('registration_id', 'is', null)
    .execute()
  for (const table of ['pairs', 'adoptions'] as const) {
    await db.deleteFrom(table).where('account_id', '=', accountId).where('broker_id', 'in', ids).execute()
  }
  await db.deleteFrom('brokers').where('account_id', '=', accountId).where('id', 'in', ids).execute()
}

/** A product that only stays for its deleted versions gives up its domain. */
export async function leaveDomains(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('products')
    .set({ application_domain_id: null })
    .where('account_id', '=', accountId)
    .where('application_domain_id', 'in', ids)
    .execute()
}
