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
  /** Newest first; older than this id when given. */
  readonly beforeId?: number
  readonly limit: number
}

export async function readDrift(db: Database, filter: DriftFilter): Promise<readonly DriftView[]> {
  const { rows } = await sql<
    Omit<DriftView, 'detectedAtMs' | 'lastSeenAtMs' | 'repairedAtMs'> & {
      readonly detectedAt: Date
      readonly lastSeenAt: Date
      readonly repairedAt: Date | null
    }
  >`
    select id, broker_id as "brokerId", registration_id as "registrationId", object_kind as "objectKind",
      object_name as "objectName", kind, reason, before, after, action, run_id as "runId",
      repaired_by_run_id as "repairedByRunId", detected_at as "detectedAt", last_seen_at as "lastSeenAt",
      repaired_at as "repairedAt"
    from drift
    where account_id = ${filter.accountId}
      and (${filter.brokerId ?? null}::text is null or broker_id = ${filter.brokerId ?? null})
      and (${filter.registrationId ?? null}::text is null or registration_id = ${filter.registrationId ?? null})
      and (${filter.beforeId ?? null}::bigint is null or id < ${filter.beforeId ?? null})
      and (not ${filter.openOnly ?? false} or repaired_at is null)
    order by id desc limit ${filter.limit}`.execute(db)
  return rows.map(({ detectedAt, lastSeenAt, repairedAt, ...row }) => ({
    ...row,
    detectedAtMs: detectedAt.getTime(),
    lastSeenAtMs: lastSeenAt.getTime(),
    repairedAtMs: repairedAt?.getTime() ?? null,
  }))
}
