import type { Database } from './database.ts'

export async function brokerExists(db: Database, accountId: string, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('brokers')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined
}

/** Also one that was deleted, while its brokers are being cleaned. */
export async function registrationExists(db: Database, accountId: string, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('registrations')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined
}
