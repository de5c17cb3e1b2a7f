import { sql } from 'kysely'
import type { Database } from './database.ts'

export async function readLastTick(db: Database, schedule: string): Promise<number | null> {
  const { rows } = await sql<{ at: Date }>`
    select last_tick_at as at from schedule_ticks where schedule = ${schedule}`.execute(db)
  return rows[0]?.at.getTime() ?? null
}

/** A later tick is never replaced by an earlier one. */
export async function recordTick(db: Database, schedule: string, tickMs: number): Promise<void> {
  await sql`
    insert into schedule_ticks (schedule, last_tick_at) values (${schedule}, ${new Date(tickMs).toISOString()})
    on conflict (schedule) do update set last_tick_at = greatest(schedule_ticks.last_tick_at, excluded.last_tick_at)`.execute(
    db,
  )
}
