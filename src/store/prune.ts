import { sql } from 'kysely'
import type { Database } from './database.ts'

/**
 * Deletes finished runs, repaired drift, notifications, finished deliveries and lines of the audit trail older than
 * `beforeMs`, in batches so that no lock is held long.
 */
export async function pruneRecords(db: Database, beforeMs: number, batch = 5000): Promise<number> {
  const before = new Date(beforeMs).toISOString()
  let total = 0
  for (const statement of [
    sql`delete from runs where id in (select id from runs where started_at < ${before} and outcome <> 'running' limit ${batch})`,
    sql`delete from drift where id in (select id from drift where repaired_at < ${before} limit ${batch})`,
    sql`delete from notifications where id in (select id from notifications where occurred_at < ${before}
      and coalesce(keep_until, occurred_at) < ${before} limit ${batch})`,
    sql`delete from notification_deliveries where id in (
      select id from notification_deliveries where finished_at < ${before} limit ${batch})`,
    sql`delete from audit where id in (select id from audit where at < ${before} limit ${batch})`,
  ]) {
    for (;;) {
      const { numAffectedRows } = await statement.execute(db)
      const deleted = Number(numAffectedRows ?? 0)
      total += deleted
      if (deleted < batch) break
    }
  }
  return total
}
