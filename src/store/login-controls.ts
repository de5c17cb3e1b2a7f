import { sql } from 'kysely'
import type { Protocol } from '../domain/catalogue.ts'
import type { NegativeControl } from '../domain/verdict.ts'
import type { LoginControl } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

export async function readControls(db: Database, broker: BrokerKey): Promise<readonly LoginControl[]> {
  const { rows } = await sql<{ protocol: Protocol; outcome: NegativeControl; detail: string; checkedAt: Date }>`
    select protocol, outcome, detail, checked_at as "checkedAt" from login_controls
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}`.execute(db)
  return rows.map(({ checkedAt, ...rest }) => ({ ...rest, checkedAtMs: checkedAt.getTime() }))
}

export async function recordControl(db: Database, broker: BrokerKey, control: LoginControl): Promise<void> {
  await sql`
    insert into login_controls (account_id, broker_id, protocol, outcome, detail, checked_at)
    select ${broker.accountId}, ${broker.brokerId}, ${control.protocol}, ${control.outcome}, ${control.detail},
      ${new Date(control.checkedAtMs)}
    from brokers where account_id = ${broker.accountId} and id = ${broker.brokerId}
    on conflict (account_id, broker_id, protocol) do update
    set outcome = excluded.outcome, detail = excluded.detail, checked_at = excluded.checked_at`.execute(db)
}
