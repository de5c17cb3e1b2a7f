import { sql } from 'kysely'
import type { Database } from './database.ts'
import { type DriftFilter, matchesDrift } from './drift-view.ts'

/** Differences of one hour or one day; the last one is not over. */
export interface DriftBucket {
  readonly fromMs: number
  readonly detected: number
  /** Repaired, or gone by themselves; they may have been detected in an earlier bucket. */
  readonly repaired: number
}

export type DriftSpan = '24h' | '30d'

const HOUR_MS = 3_600_000
const SPANS: Readonly<Record<DriftSpan, { readonly stepMs: number; readonly buckets: number }>> = {
  '24h': { stepMs: HOUR_MS, buckets: 24 },
  '30d': { stepMs: 24 * HOUR_MS, buckets: 30 },
}

/** Whole hours, or whole days in UTC, up to the one that is under way. */
export function boundsOf(span: DriftSpan, nowMs: number) {
  const { stepMs, buckets } = SPANS[span]
  const untilMs = (Math.floor(nowMs / stepMs) + 1) * stepMs
  return { fromMs: untilMs - buckets * stepMs, untilMs, stepMs }
}

export type ChartFilter = Pick<DriftFilter, 'accountId' | 'brokerId' | 'registrationId' | 'kind'>

/** Each bucket is one range of an index. */
export async function readDriftChart(
  db: Database,
  filter: ChartFilter,
  span: DriftSpan,
  nowMs: number,
): Promise<readonly DriftBucket[]> {
  const { fromMs, untilMs, stepMs } = boundsOf(span, nowMs)
  const { rows } = await sql<DriftBucket>`
    select b.ms as "fromMs",
      (select count(*) from drift where ${matchesDrift(filter)} and detected_at >= b.starts and detected_at < b.ends) as detected,
      (select count(*) from drift where ${matchesDrift(filter)} and repaired_at >= b.starts and repaired_at < b.ends) as repaired
    from (
      select ms, to_timestamp(ms / 1000.0) as starts, to_timestamp((ms + ${stepMs}::bigint) / 1000.0) as ends
      from generate_series(${fromMs}::bigint, ${untilMs - stepMs}::bigint, ${stepMs}::bigint) ms) b
    order by b.ms`.execute(db)
  return rows
}

export interface OpenDrift {
  readonly kind: string
  readonly count: number
}

/** What is not repaired now, the most common kind first. */
export async function countOpenDrift(db: Database, filter: ChartFilter): Promise<readonly OpenDrift[]> {
  const { rows } = await sql<OpenDrift>`
    select kind, count(*) as count from drift where ${matchesDrift(filter)} and repaired_at is null
    group by kind order by count(*) desc, kind`.execute(db)
  return rows
}
