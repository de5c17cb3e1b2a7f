import { sql } from 'kysely'
import type { SweepProgress } from '../reconcile/sweep.ts'
import type { Database } from './database.ts'

/** One run on record; times in epoch milliseconds. A run that found nothing to do leaves none. Holds no secret. */
export interface RunView {
  readonly id: string
  readonly brokerId: string
  /** Null: a sweep of the whole broker. */
  readonly registrationId: string | null
  readonly kind: string
  readonly trigger: string
  readonly outcome: string
  readonly steps: number
  readonly held: number
  readonly drift: number
  readonly conflicts: number
  /** Of a sweep: what it read and how the registrations ended. */
  readonly detail: Readonly<Record<string, unknown>>
  readonly errorCode: string | null
  readonly error: string | null
  readonly startedAtMs: number
  readonly finishedAtMs: number | null
}

export interface RunFilter {
  readonly accountId: string
  readonly id?: string
  readonly brokerId?: string
  readonly registrationId?: string
  readonly kind?: string
  readonly trigger?: string
  readonly outcome?: string
  /** Begun in this time, both ends among it. */
  readonly started?: { readonly fromMs: number; readonly untilMs: number }
}

interface Row extends Omit<RunView, 'startedAtMs' | 'finishedAtMs'> {
  readonly startedAt: Date
  readonly finishedAt: Date | null
}

const matches = (filter: RunFilter) => sql`account_id = ${filter.accountId}
  and (${filter.id ?? null}::text is null or id = ${filter.id ?? null})
  and (${filter.brokerId ?? null}::text is null or broker_id = ${filter.brokerId ?? null})
  and (${filter.registrationId ?? null}::text is null or registration_id = ${filter.registrationId ?? null})
  and (${filter.kind ?? null}::text is null or kind = ${filter.kind ?? null})
  and (${filter.trigger ?? null}::text is null or trigger = ${filter.trigger ?? null})
  and (${filter.outcome ?? null}::text is null or outcome = ${filter.outcome ?? null})
  and (${dateOf(filter.started?.fromMs)}::timestamptz is null or started_at >= ${dateOf(filter.started?.fromMs)})
  and (${dateOf(filter.started?.untilMs)}::timestamptz is null or started_at <= ${dateOf(filter.started?.untilMs)})`

const dateOf = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

const COLUMNS = sql`id, broker_id as "brokerId", registration_id as "registrationId", kind, trigger, outcome, steps, held, drift,
  conflicts, detail, error_code as "errorCode", error, started_at as "startedAt", finished_at as "finishedAt"`

/** Newest first. */
export async function readRuns(
  db: Database,
  filter: RunFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly runs: readonly RunView[]; readonly count: number }> {
  const { rows } = await sql<Row>`
    select ${COLUMNS} from runs where ${matches(filter)}
    order by started_at desc, id limit ${page.limit} offset ${page.offset}`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count from runs where ${matches(filter)}`.execute(db)
  return { runs: rows.map(toView), count: counted.rows[0]?.count ?? 0 }
}

/** Where a list goes on: after this run, which is not shown again. */
export interface RunCursor {
  readonly startedAtMs: number
  readonly id: string
}

/** Newest first, without a count: one range of an index, however far down the page is. */
export async function readRunsAfter(
  db: Database,
  filter: RunFilter,
  { after, limit }: { readonly after: RunCursor | null; readonly limit: number },
): Promise<readonly RunView[]> {
  const older =
    after === null ? sql`` : sql`and (started_at, id) < (${dateOf(after.startedAtMs)}::timestamptz, ${after.id}::text)`
  const { rows } = await sql<Row>`
    select ${COLUMNS} from runs where ${matches(filter)} ${older}
    order by started_at desc, id desc limit ${limit}`.execute(db)
  return rows.map(toView)
}

/** Null when the account has no such run. */
export async function readRun(db: Database, accountId: string, id: string): Promise<RunView | null> {
  const { runs } = await readRuns(db, { accountId, id }, { limit: 1, offset: 0 })
  return runs[0] ?? null
}

const toView = ({ startedAt, finishedAt, ...row }: Row): RunView => ({
  ...row,
  startedAtMs: startedAt.getTime(),
  finishedAtMs: finishedAt?.getTime() ?? null,
})

/** How far a sweep is; null when it says nothing, or is over. */
export async function readSweepProgress(
  db: Database,
  accountId: string,
  { id, brokerId }: Pick<RunView, 'id' | 'brokerId'>,
): Promise<SweepProgress | null> {
  const { rows } = await sql<{ progress: SweepProgress | null }>`
    select sweep_progress as progress from broker_status
    where account_id = ${accountId} and broker_id = ${brokerId} and sweep_run_id = ${id} and sweep_outcome = 'running'`.execute(
    db,
  )
  return rows[0]?.progress ?? null
}
