import { sql } from 'kysely'
import type { ManagementSettings, MessagingSettings } from '../domain/catalogue.ts'
import { accountId, brokerId } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'
import { pausedAccount } from './pause.ts'
import { brokerPasswordPlace, type Sealer } from './sealer-port.ts'

export interface BrokerAccess {
  readonly management: ManagementSettings
  readonly passwordVersion: number
  /** Opens the sealed SEMP password; only when a connection is made. */
  readonly password: () => Promise<Secret>
}

/** Null when the broker is gone or its management settings are incomplete. */
export async function readBrokerAccess(db: Database, sealer: Sealer, broker: BrokerKey): Promise<BrokerAccess | null> {
  const { rows } = await sql<{ management: ManagementSettings | null; sealed: string | null; version: number }>`
    select management, management_password as sealed, management_password_version as version from brokers
    where account_id = ${broker.accountId} and id = ${broker.brokerId}`.execute(db)
  const [row] = rows
  if (row === undefined || row.management === null || row.sealed === null) return null
  const { management, sealed, version } = row
  return {
    management,
    passwordVersion: version,
    password: () => sealer.open(sealed, brokerPasswordPlace(broker.accountId, broker.brokerId, version)),
  }
}

/** Where clients log in; null when the broker is gone or exposes nothing. */
export async function readMessaging(
  db: Database,
  broker: BrokerKey,
): Promise<{ readonly messaging: MessagingSettings; readonly msgVpnName: string } | null> {
  const { rows } = await sql<{ messaging: MessagingSettings | null; management: ManagementSettings | null }>`
    select messaging, management from brokers
    where account_id = ${broker.accountId} and id = ${broker.brokerId}`.execute(db)
  const [row] = rows
  if (row === undefined || row.messaging === null || row.management === null) return null
  return { messaging: row.messaging, msgVpnName: row.management.msgVpnName }
}

export interface UsableBroker extends BrokerKey {
  readonly name: string
  readonly paused: boolean
}

/** Brokers with management settings: those that a worker can do something for. Of all accounts unless one is given. */
export async function listManagedBrokers(db: Database, account?: string): Promise<readonly UsableBroker[]> {
  const { rows } = await sql<{ account: string; id: string; name: string; paused: boolean }>`
    select b.account_id as account, b.id, b.name, coalesce(s.paused, false) or ${pausedAccount(sql`b.account_id`)} as paused
    from brokers b
    left join broker_status s on s.account_id = b.account_id and s.broker_id = b.id
    where b.management is not null and b.management_password is not null
      and (${account ?? null}::text is null or b.account_id = ${account ?? null})
    order by b.account_id, b.id`.execute(db)
  return rows.map((row) => ({
    accountId: accountId(row.account),
    brokerId: brokerId(row.id),
    name: row.name,
    paused: row.paused,
  }))
}
