import { sql } from 'kysely'
import type { Database } from './database.ts'
import { type LoginSums, NO_LOGINS, sumLogins } from './logins-view.ts'
import type { Lookalikes } from './orphans.ts'
import { pausedAccount } from './pause.ts'

/** One broker as `keymesh status` shows it; times in epoch milliseconds. */
export interface BrokerStatusView {
  readonly brokerId: string
  readonly name: string
  readonly environment: string | null
  readonly eventMesh: string | null
  readonly reachable: boolean | null
  readonly checkedAtMs: number | null
  readonly sempVersion: string | null
  /** It, or the whole account. */
  readonly paused: boolean
  readonly errorCode: string | null
  readonly error: string | null
  readonly lastSweep: { readonly finishedAtMs: number | null; readonly outcome: string } | null
  readonly registrations: {
    readonly total: number
    readonly inSync: number
    readonly lagging: number
    readonly drifted: number
    readonly held: number
    readonly conflict: number
    readonly refused: number
    readonly error: number
    /** Of all these, those that do not heal by themselves. */
    readonly needPerson: number
  }
  readonly logins: LoginSums
  /** Set while a sick broker rests: when it is tried again. */
  readonly restsUntilMs: number | null
  /** Objects that look like ours and are not in the ledger, as the last sweep saw them; null: none. */
  readonly lookalikes: Lookalikes | null
  /** The longest a registration has lagged. */
  readonly oldestLagMs: number | null
  /** Why registrations are not in sync: the most common reasons first. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

interface Row {
  readonly brokerId: string
  readonly name: string
  readonly environment: string | null
  readonly eventMesh: string | null
  readonly reachable: boolean | null
  readonly checkedAt: Date | null
  readonly sempVersion: string | null
  readonly paused: boolean
  readonly errorCode: string | null
  readonly error: string | null
  readonly sweepFinishedAt: Date | null
  readonly sweepOutcome: string | null
  readonly restsUntil: Date | null
  readonly lookalikes: Lookalikes | null
  readonly total: number
  readonly inSync: number
  readonly lagging: number
  readonly drifted: number
  readonly held: number
  readonly conflict: number
  readonly refused: number
  readonly failed: number
  readonly needPerson: number
  readonly oldestLagMs: number | null
}

export interface StatusPage {
  readonly limit: number
  readonly offset: number
}

/** In the order of their ids; all when no page is asked for. */
export async function readStatus(
  db: Database,
  account: string,
  broker?: string,
  page?: StatusPage,
): Promise<readonly BrokerStatusView[]> {
  const { rows } = await sql<Row>`
    select b.id as "brokerId", b.name, m.name as "eventMesh", e.name as environment, s.reachable, s.checked_at as "checkedAt",
      s.semp_version as "sempVersion",
      coalesce(s.paused, false) or ${pausedAccount(sql`b.account_id`)} as paused, s.error_code as "errorCode", s.error, s.sweep_finished_at as "sweepFinishedAt",
      s.sweep_outcome as "sweepOutcome",
      case s.health when 'open' then s.retry_at when 'half-open' then s.prober_until end as "restsUntil", s.lookalikes, p.*
    from brokers b
    left join event_meshes m on m.account_id = b.account_id and m.id = b.event_mesh_id
    left join environments e on e.account_id = m.account_id and e.id = m.environment_id
    left join broker_status s on s.account_id = b.account_id and s.broker_id = b.id
    cross join lateral (
      select count(*) as total,
        count(*) filter (where p.state = 'in-sync' and p.reached_generation = p.generation and d.open is null) as "inSync",
        count(*) filter (where p.reached_generation < p.generation and p.state in ('lagging', 'in-sync')) as lagging,
        count(*) filter (where d.open is not null and p.state = 'in-sync' and p.reached_generation = p.generation) as drifted,
        count(*) filter (where p.state = 'held') as held,
        count(*) filter (where p.state = 'conflict') as conflict,
        count(*) filter (where p.state = 'refused') as refused,
        count(*) filter (where p.state = 'error') as failed,
        count(*) filter (where p.needs_person) as "needPerson",
        (extract(epoch from now() - min(p.changed_at) filter (where p.reached_generation < p.generation)) * 1000)::bigint as "oldestLagMs"
      from pairs p
      left join lateral (
        select true as open from drift d where d.account_id = p.account_id and d.broker_id = p.broker_id
          and d.registration_id = p.registration_id and d.repaired_at is null limit 1
      ) d on true
      where p.account_id = b.account_id and p.broker_id = b.id
    ) p
    where b.account_id = ${account} and (${broker ?? null}::text is null or b.id = ${broker ?? null})
    order by b.id limit ${page?.limit ?? null} offset ${page?.offset ?? 0}`.execute(db)
  const reasons = await readReasons(db, account)
  const logins = await sumLogins(
    db,
    account,
    rows.map(({ brokerId }) => brokerId),
  )
  return rows.map((row) => toView(row, reasons, logins.get(row.brokerId) ?? NO_LOGINS))
}

export async function countBrokers(db: Database, account: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from brokers where account_id = ${account}`.execute(db)
  return rows[0]?.count ?? 0
}

interface ReasonRow {
  readonly broker: string
  readonly reason: string
  readonly count: number
}

async function readReasons(db: Database, account: string): Promise<readonly ReasonRow[]> {
  const { rows } = await sql<ReasonRow>`
    select broker_id as broker, reason, count(*) as count from pairs
    where account_id = ${account} and reason is not null and (state <> 'in-sync' or reached_generation < generation)
    group by 1, 2 order by count(*) desc, reason limit 50`.execute(db)
  return rows
}

function toView(row: Row, reasons: readonly ReasonRow[], logins: LoginSums): BrokerStatusView {
  const { brokerId, name, environment, eventMesh, reachable, sempVersion, errorCode, error, oldestLagMs } = row
  const { total, inSync, lagging, drifted, held, conflict, refused, failed, needPerson } = row
  return {
    brokerId,
    name,
    environment,
    eventMesh,
    reachable,
    checkedAtMs: row.checkedAt?.getTime() ?? null,
    sempVersion,
    paused: row.paused,
    errorCode,
    error,
    lastSweep:
      row.sweepOutcome === null
        ? null
        : { finishedAtMs: row.sweepFinishedAt?.getTime() ?? null, outcome: row.sweepOutcome },
    registrations: { total, inSync, lagging, drifted, held, conflict, refused, error: failed, needPerson },
    logins,
    restsUntilMs: row.restsUntil?.getTime() ?? null,
    lookalikes: row.lookalikes === null || row.lookalikes.count === 0 ? null : row.lookalikes,
    oldestLagMs,
    reasons: reasons
      .filter((each) => each.broker === brokerId)
      .slice(0, 3)
      .map(({ reason, count }) => ({ reason, count })),
  }
}
