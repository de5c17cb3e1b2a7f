import { sql } from 'kysely'
import type { Database } from './database.ts'

/** One difference that was found; times in epoch milliseconds. Holds no secret. */
export interface DriftView {
  readonly id: number
  readonly brokerId: string
  readonly registrationId: string | null
  readonly objectKind: string
  readonly objectName: string
  readonly kind: string
  readonly reason: string
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
  readonly action: string
  readonly runId: string
  readonly repairedByRunId: string | null
  readonly detectedAtMs: number
  readonly lastSeenAtMs: number
  readonly repairedAtMs: number | null
}

export interface DriftFilter {
  readonly accountId: string
  readonly brokerId?: string
  readonly registrationId?: string
  readonly openOnly?: boolean
  readonly id?: number
  readonly kind?: string
  readonly objectKind?: string
  readonly action?: string
  /** Found in this run, or repaired by it. */
  readonly runId?: string
  /** Newest first; older than this id when given. */
  readonly beforeId?: number
  /** Detected in this time, its end not among it. */
  readonly detected?: { readonly fromMs: number; readonly untilMs: number }
  readonly limit: number
  readonly offset?: number
}

/** The conditions of a filter, for a statement over `drift`. */
export const matchesDrift = (filter: Omit<DriftFilter, 'limit' | 'offset'>) => sql`account_id = ${filter.accountId}
  and (${filter.brokerId ?? null}::text is null or broker_id = ${filter.brokerId ?? null})
  and (${filter.registrationId ?? null}::text is null or registration_id = ${filter.registrationId ?? null})
  and (${filter.beforeId ?? null}::bigint is null or id < ${filter.beforeId ?? null})
  and (${filter.id ?? null}::bigint is null or id = ${filter.id ?? null})
  and (${filter.kind ?? null}::text is null or kind = ${filter.kind ?? null})
  and (${filter.objectKind ?? null}::text is null or object_kind = ${filter.objectKind ?? null})
  and (${filter.action ?? null}::text is null or action = ${filter.action ?? null})
  and (${filter.runId ?? null}::text is null or ${filter.runId ?? null} in (run_id, repaired_by_run_id))
  and (not ${filter.openOnly ?? false} or repaired_at is null)
  and (${dateOf(filter.detected?.fromMs)}::timestamptz is null or detected_at >= ${dateOf(filter.detected?.fromMs)})
  and (${dateOf(filter.detected?.untilMs)}::timestamptz is null or detected_at < ${dateOf(filter.detected?.untilMs)})`

const dateOf = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

export async function countDrift(db: Database, filter: Omit<DriftFilter, 'limit' | 'offset'>): Promise<number> {
  const { rows } = await sql<{
    count: number
  }>`select count(*) as count from drift where ${matchesDrift(filter)}`.execute(db)
  return rows[0]?.count ?? 0
}

interface Row extends Omit<DriftView, 'detectedAtMs' | 'lastSeenAtMs' | 'repairedAtMs'> {
  readonly detectedAt: Date
  readonly lastSeenAt: Date
  readonly repairedAt: Date | null
}

const COLUMNS = sql`id, broker_id as "brokerId", registration_id as "registrationId", object_kind as "objectKind",
  object_name as "objectName", kind, reason, before, after, action, run_id as "runId",
  repaired_by_run_id as "repairedByRunId", detected_at as "detectedAt", last_seen_at as "lastSeenAt",
  repaired_at as "repairedAt"`

export async function readDrift(db: Database, filter: DriftFilter): Promise<readonly DriftView[]> {
  const { rows } = await sql<Row>`
    select ${COLUMNS} from drift where ${matchesDrift(filter)}
    order by id desc limit ${filter.limit} offset ${filter.offset ?? 0}`.execute(db)
  return rows.map(toView)
}

/** Where a timeline goes on: after this difference, which is not shown again. */
export interface DriftCursor {
  readonly detectedAtMs: number
  readonly id: number
}

export interface TimelineFilter extends Omit<DriftFilter, 'beforeId' | 'offset'> {
  readonly after: DriftCursor | null
}

/** By time of detection, newest first; one range of an index, however far down the page is. */
export async function readDriftTimeline(db: Database, filter: TimelineFilter): Promise<readonly DriftView[]> {
  const { after } = filter
  const older =
    after === null
      ? sql``
      : sql`and (detected_at, id) < (${dateOf(after.detectedAtMs)}::timestamptz, ${after.id}::bigint)`
  const { rows } = await sql<Row>`
    select ${COLUMNS} from drift where ${matchesDrift(filter)} ${older}
    order by detected_at desc, id desc limit ${filter.limit}`.execute(db)
  return rows.map(toView)
}

const toView = ({ detectedAt, lastSeenAt, repairedAt, ...row }: Row): DriftView => ({
  ...row,
  detectedAtMs: detectedAt.getTime(),
  lastSeenAtMs: lastSeenAt.getTime(),
  repairedAtMs: repairedAt?.getTime() ?? null,
})
