import { sql } from 'kysely'
import type { Database } from './database.ts'
import { type LoginSums, NO_LOGINS, sumLogins } from './logins-view.ts'
import type { Lookalikes } from './orphans.ts'
import { pausedAccount } from './pause.ts'
import { NO_SUMS, type ReasonCount, type RegistrationSums, sumRegistrations } from './registration-sums.ts'

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
  readonly registrations: RegistrationSums
  readonly logins: LoginSums
  /** Set while a sick broker rests: when it is tried again. */
  readonly restsUntilMs: number | null
  /** Objects that look like ours and are not in the ledger, as the last sweep saw them; null: none. */
  readonly lookalikes: Lookalikes | null
  /** The longest a registration has lagged. */
  readonly oldestLagMs: number | null
  /** Why registrations are not in sync: the most common reasons first. */
  readonly reasons: readonly ReasonCount[]
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
}

export interface StatusPage {
  readonly limit: number
  readonly offset: number
}

/** Of a row `s` of `broker_status`. */
export const restsUntil = sql<Date | null>`case s.health when 'open' then s.retry_at when 'half-open' then s.prober_until end`

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
      s.sweep_outcome as "sweepOutcome", ${restsUntil} as "restsUntil", s.lookalikes
    from brokers b
    left join event_meshes m on m.account_id = b.account_id and m.id = b.event_mesh_id
    left join environments e on e.account_id = m.account_id and e.id = m.environment_id
    left join broker_status s on s.account_id = b.account_id and s.broker_id = b.id
    where b.account_id = ${account} and (${broker ?? null}::text is null or b.id = ${broker ?? null})
    order by b.id limit ${page?.limit ?? null} offset ${page?.offset ?? 0}`.execute(db)
  const ids = rows.map(({ brokerId }) => brokerId)
  const sums = await sumRegistrations(db, account, ids)
  const logins = await sumLogins(db, account, ids)
  return rows.map(({ checkedAt, sweepFinishedAt, sweepOutcome, restsUntil: rests, lookalikes, ...row }) => ({
    ...row,
    ...(sums.get(row.brokerId) ?? NO_SUMS),
    checkedAtMs: checkedAt?.getTime() ?? null,
    lastSweep:
      sweepOutcome === null ? null : { finishedAtMs: sweepFinishedAt?.getTime() ?? null, outcome: sweepOutcome },
    logins: logins.get(row.brokerId) ?? NO_LOGINS,
    restsUntilMs: rests?.getTime() ?? null,
    lookalikes: lookalikes === null || lookalikes.count === 0 ? null : lookalikes,
  }))
}

export async function countBrokers(db: Database, account: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from brokers where account_id = ${account}`.execute(db)
  return rows[0]?.count ?? 0
}
