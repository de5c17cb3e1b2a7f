import { sql } from 'kysely'
import type { Database } from './database.ts'

/**
 * Tells the planner how the tables look now. Autovacuum does so within a minute; a first apply or a large import fills
 * tables within seconds, and plans made for empty ones are many times slower.
 */
export async function refreshStatistics(db: Database): Promise<void> {
  await sql`analyze (skip_locked) registrations, access_requests, credentials, pairs, ledger`.execute(db)
}

const FIRST_REFRESH = 100
const GROWTH = 4

/** Counts written rows and refreshes the statistics each time they have grown fourfold, in the background. */
export function watchGrowth(db: Database): (rows: number) => void {
  let written = 0
  let refreshAt = FIRST_REFRESH
  return (rows) => {
    written += rows
    if (written < refreshAt) return
    refreshAt = written * GROWTH
    // A courtesy to the planner: when it fails, the statements are slower and autovacuum comes by.
    refreshStatistics(db).catch(() => undefined)
  }
}
