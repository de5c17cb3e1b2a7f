import { sql } from 'kysely'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

/** The pause of a broker lives here; its queue follows. */
export async function setBrokerPaused(db: Database, broker: BrokerKey, paused: boolean): Promise<void> {
  await sql`
    insert into broker_status (account_id, broker_id, paused) values (${broker.accountId}, ${broker.brokerId}, ${paused})
    on conflict (account_id, broker_id) do update set paused = excluded.paused`.execute(db)
}
