import { sql } from 'kysely'
import type { Protocol } from '../domain/catalogue.ts'
import { consumerKey, registrationId } from '../domain/ids.ts'
import type { BrokerKey, DueLogin, DueLoginsRequest } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

/** Turns are a little closer than the period, so that the sweep after a turn still falls into it. */
const TURN_SHARE = 0.9

/** See `SweepStore.dueLogins`. A credential's place in the period is a hash of its key. */
export async function dueLogins(
  db: Database,
  broker: BrokerKey,
  { nowMs, periodMs, limit }: DueLoginsRequest,
): Promise<readonly DueLogin[]> {
  const turnMs = periodMs * TURN_SHARE
  const { rows } = await sql<{
    registration: string
    consumerKey: string
    version: number
    checked: Readonly<Partial<Record<Protocol, number>>>
  }>`
    with confirmed as (
      select c.registration_id as registration, c.consumer_key, c.secret_version as version,
        ('x' || substr(md5(c.consumer_key), 1, 8))::bit(32)::bigint / 4294967296.0 as phase
      from pairs p
      join credentials c on c.account_id = p.account_id and c.registration_id = p.registration_id and c.retired_at is null
      join ledger l on l.account_id = p.account_id and l.broker_id = p.broker_id and l.kind = 'clientUsername'
        and l.name = c.consumer_key and l.registration_id = p.registration_id
        and l.confirmed_credential_version = c.secret_version and l.withdrawn_at is null
      where p.account_id = ${broker.accountId} and p.broker_id = ${broker.brokerId} and p.wanted
        and p.reached_generation = p.generation and p.state = 'in-sync'
    ), checked as (
      select c.*, v.checked, v.last from confirmed c
      left join lateral (
        select jsonb_object_agg(v.protocol, floor(extract(epoch from v.checked_at) * 1000)) as checked,
          extract(epoch from max(v.checked_at)) * 1000 as last
        from login_verdicts v
        where v.account_id = ${broker.accountId} and v.broker_id = ${broker.brokerId} and v.consumer_key = c.consumer_key
          and v.credential_version = c.version
      ) v on true
    )
    select registration, consumer_key as "consumerKey", version, coalesce(checked, '{}'::jsonb) as checked
    from checked
    where last is null
      or floor(last / ${turnMs}::float8 - phase) < floor(${nowMs}::float8 / ${turnMs}::float8 - phase)
    order by last nulls first, consumer_key
    limit ${limit}`.execute(db)
  return rows.map((row) => ({
    pair: { ...broker, registrationId: registrationId(row.registration) },
    consumerKey: consumerKey(row.consumerKey),
    version: row.version,
    checkedAtMs: row.checked,
  }))
}
