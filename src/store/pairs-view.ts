import { sql } from 'kysely'
import type { PairState } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'
import { pausedPair } from './pause.ts'

/** One registration on one broker; times in epoch milliseconds. */
export interface PairView {
  readonly registrationId: string
  readonly brokerId: string
  /** False: it is being withdrawn, or was. */
  readonly wanted: boolean
  readonly state: PairState
  readonly reason: string | null
  readonly generation: number
  readonly reachedGeneration: number
  /** Failed runs in a row. */
  readonly attempts: number
  /** Null while none failed. */
  readonly failingSinceMs: number | null
  /** It does not heal by itself. */
  readonly needsPerson: boolean
  readonly openDrift: number
  /** It, its broker or its account. */
  readonly paused: boolean
  /** Null: when something changes, or never by itself. */
  readonly dueAtMs: number | null
  readonly reconciledAtMs: number | null
}

export interface PairsFilter {
  readonly accountId: string
  readonly brokerId?: string
  readonly registrationId?: string
  readonly state?: PairState
  /** Only those that are not in sync: they lag, wait, failed, or have drift. */
  readonly astrayOnly?: boolean
}

/** Of a row `p` of `pairs`: it is not in sync. */
export const astray = sql<boolean>`(p.state <> 'in-sync' or p.reached_generation < p.generation
  or exists (select 1 from drift d where d.account_id = p.account_id and d.broker_id = p.broker_id
    and d.registration_id = p.registration_id and d.repaired_at is null))`

interface Row extends Omit<PairView, 'dueAtMs' | 'reconciledAtMs' | 'failingSinceMs'> {
  readonly failingSince: Date | null
  readonly dueAt: Date | null
  readonly reconciledAt: Date | null
}

/** In the order of registration and broker. */
export async function readPairs(
  db: Database,
  filter: PairsFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly pairs: readonly PairView[]; readonly count: number }> {
  const matches = sql`p.account_id = ${filter.accountId}
    and (${filter.brokerId ?? null}::text is null or p.broker_id = ${filter.brokerId ?? null})
    and (${filter.registrationId ?? null}::text is null or p.registration_id = ${filter.registrationId ?? null})
    and (${filter.state ?? null}::text is null or p.state = ${filter.state ?? null})
    and (not ${filter.astrayOnly ?? false} or ${astray})`
  const { rows } = await sql<Row>`
    select p.registration_id as "registrationId", p.broker_id as "brokerId", p.wanted, p.state, p.reason, p.generation,
      p.reached_generation as "reachedGeneration", p.attempts, p.failing_since as "failingSince",
      p.needs_person as "needsPerson", ${pausedPair} as paused,
      (select count(*) from drift d where d.account_id = p.account_id and d.broker_id = p.broker_id
        and d.registration_id = p.registration_id and d.repaired_at is null) as "openDrift",
      case when isfinite(p.due_at) then p.due_at end as "dueAt", p.reconciled_at as "reconciledAt"
    from pairs p where ${matches}
    order by p.registration_id, p.broker_id limit ${page.limit} offset ${page.offset}`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count from pairs p where ${matches}`.execute(db)
  const pairs = rows.map(({ dueAt, reconciledAt, failingSince, ...row }) => ({
    ...row,
    failingSinceMs: failingSince?.getTime() ?? null,
    dueAtMs: dueAt?.getTime() ?? null,
    reconciledAtMs: reconciledAt?.getTime() ?? null,
  }))
  return { pairs, count: counted.rows[0]?.count ?? 0 }
}
