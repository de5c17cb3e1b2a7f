import { sql, type Transaction } from 'kysely'
import { standingOf, VERDICT_OUTCOMES } from '../domain/verdict.ts'
import type { PairState } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'
import { presentVerdicts, provesOver } from './logins-view.ts'
import { pausedAccount, pausedPair } from './pause.ts'
import type { Schema } from './schema.ts'

/** What a scrape asks of the store, over all accounts: a few aggregates, whatever the size of the mesh. */
export interface MetricsView {
  readonly brokers: readonly BrokerFigures[]
  readonly drift: readonly DriftFigures[]
  readonly logins: readonly LoginFigures[]
  readonly accounts: readonly AccountFigures[]
}

export interface BrokerFigures {
  readonly account: string
  readonly broker: string
  readonly reachable: boolean | null
  readonly paused: boolean
  readonly health: 'closed' | 'open' | 'half-open'
  readonly failures: number
  /** Unix seconds; null before the end of the first sweep. */
  readonly sweptAtSeconds: number | null
  readonly orphans: number
  readonly pairs: Readonly<Partial<Record<PairState, number>>>
  readonly needPerson: number
  /** Without those that are paused. */
  readonly lagging: number
  readonly oldestLagSeconds: number | null
}

export interface DriftFigures {
  readonly account: string
  readonly broker: string
  readonly kind: string
  readonly open: number
  readonly oldestSeconds: number
}

/** Of one broker over one protocol, once a wrong password was tried or a login was refused. */
export interface LoginFigures {
  readonly account: string
  readonly broker: string
  readonly protocol: string
  /** Live credentials whose last login the broker refused in its own words. */
  readonly rejected: number
  readonly acceptsAnything: boolean
}

/** Each time counts what ends within the shorter ones too. */
export interface Expiring {
  readonly '1d': number
  readonly '7d': number
  readonly '30d': number
}

export interface AccountFigures {
  readonly account: string
  readonly credentials: Expiring
  readonly nextExpirySeconds: number | null
  readonly apiTokens: Expiring
  /** Null: the account follows no other service; 0: it was never read to the end. */
  readonly followedAtSeconds: number | null
  /** Notification endpoints that do not take what is sent. */
  readonly failingEndpoints: number
}

/** Throws when the database does not answer within `timeoutMs` for one of the statements. */
export async function readMetricsView(db: Database, timeoutMs: number): Promise<MetricsView> {
  return db.transaction().execute(async (trx) => {
    await sql`select set_config('statement_timeout', ${String(Math.round(timeoutMs))}, true)`.execute(trx)
    return {
      brokers: await brokers(trx),
      drift: await drift(trx),
      logins: await logins(trx),
      accounts: await accounts(trx),
    }
  })
}

async function brokers(trx: Transaction<Schema>): Promise<readonly BrokerFigures[]> {
  const { rows } = await sql<BrokerFigures>`
    select b.account_id as account, b.id as broker, s.reachable,
      coalesce(s.paused, false) or ${pausedAccount(sql`b.account_id`)} as paused,
      coalesce(s.health, 'closed') as health, coalesce(s.failures, 0) as failures,
      extract(epoch from s.sweep_finished_at)::float8 as "sweptAtSeconds",
      coalesce((s.lookalikes ->> 'count')::int, 0) as orphans,
      coalesce(p.pairs, '{}') as pairs, coalesce(p."needPerson", 0) as "needPerson", coalesce(p.lagging, 0) as lagging,
      p."oldestLagSeconds"
    from brokers b
    left join broker_status s on s.account_id = b.account_id and s.broker_id = b.id
    left join (
      select account_id, broker_id, jsonb_object_agg(state, total) as pairs, sum("needPerson")::bigint as "needPerson",
        sum(lagging)::bigint as lagging,
        extract(epoch from now() - min(since))::float8 as "oldestLagSeconds"
      from (
        select p.account_id, p.broker_id, p.state, count(*) as total, count(*) filter (where p.needs_person) as "needPerson",
          count(*) filter (where p.reached_generation < p.generation and not ${pausedPair}) as lagging,
          min(p.changed_at) filter (where p.reached_generation < p.generation and not ${pausedPair}) as since
        from pairs p group by 1, 2, 3
      ) by_state group by 1, 2
    ) p on p.account_id = b.account_id and p.broker_id = b.id
    order by 1, 2`.execute(trx)
  return rows
}

async function drift(trx: Transaction<Schema>): Promise<readonly DriftFigures[]> {
  const { rows } = await sql<DriftFigures>`
    select account_id as account, broker_id as broker, kind, count(*) as open,
      greatest(0, extract(epoch from now() - min(detected_at)))::float8 as "oldestSeconds"
    from drift where repaired_at is null group by 1, 2, 3`.execute(trx)
  return rows
}

async function logins(trx: Transaction<Schema>): Promise<readonly LoginFigures[]> {
  const { rows } = await sql<LoginFigures>`
    with rejected as (
      select v.account_id, v.broker_id, v.protocol, count(*) as total from ${presentVerdicts}
      where v.outcome = any(${REJECTED}) group by 1, 2, 3
    )
    select account_id as account, broker_id as broker, protocol, coalesce(r.total, 0) as rejected,
      coalesce(n.outcome = 'accepts-anything', false) as "acceptsAnything"
    from (
      select n.account_id, n.broker_id, n.protocol, n.outcome from login_controls n
      join brokers b on b.account_id = n.account_id and b.id = n.broker_id and ${provesOver(sql`n.protocol`)}
    ) n
    full join rejected r using (account_id, broker_id, protocol)
    order by 1, 2, 3`.execute(trx)
  return rows
}

const REJECTED = VERDICT_OUTCOMES.filter((outcome) => standingOf(outcome) === 'rejected')

const within = (table: string) => sql`jsonb_build_object(
  '1d', count(*) filter (where ${sql.ref(`${table}.expires_at`)} <= now() + interval '1 day'),
  '7d', count(*) filter (where ${sql.ref(`${table}.expires_at`)} <= now() + interval '7 days'),
  '30d', count(*) filter (where ${sql.ref(`${table}.expires_at`)} <= now() + interval '30 days'))`

async function accounts(trx: Transaction<Schema>): Promise<readonly AccountFigures[]> {
  const { rows } = await sql<AccountFigures>`
    with ending as (
      select c.account_id, ${within('c')} as counts, extract(epoch from min(c.expires_at))::float8 as next
      from credentials c where c.expires_at is not null and c.retired_at is null group by 1
    ), tokens as (
      select t.account_id, ${within('t')} as counts from api_tokens t where t.expires_at > now() group by 1
    )
    select a.id as account, coalesce(e.counts, '{"1d": 0, "7d": 0, "30d": 0}') as credentials,
      e.next as "nextExpirySeconds", coalesce(t.counts, '{"1d": 0, "7d": 0, "30d": 0}') as "apiTokens",
      case when f.account_id is not null then coalesce(extract(epoch from f.succeeded_at), 0)::float8 end as "followedAtSeconds",
      (select count(*) from notification_endpoints n
        where n.account_id = a.id and n.enabled and n.failing_since is not null) as "failingEndpoints"
    from accounts a
    left join ending e on e.account_id = a.id
    left join tokens t on t.account_id = a.id
    left join followed_catalogues f on f.account_id = a.id
    order by 1`.execute(trx)
  return rows
}
