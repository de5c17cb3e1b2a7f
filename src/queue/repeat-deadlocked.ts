import type pg from 'pg'

const DEADLOCK_DETECTED = '40P01'
const MOST_REPEATS = 5

type Query = (text: string, values?: unknown[]) => Promise<pg.QueryResult>

/**
 * The queue's library locks many jobs in one statement, in no order, and two processes that do so at once may block each
 * other. All it sends through a pool is single statements: what a deadlock ended did nothing, and is sent again.
 */
export function repeatDeadlocked(pool: Pick<pg.Pool, 'query'>): void {
  const query: Query = pool.query.bind(pool)
  const patient: Query = async (text, values) => {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await query(text, values)
      } catch (error) {
        const isDeadlock = error instanceof Error && 'code' in error && error.code === DEADLOCK_DETECTED
        if (!isDeadlock || repeats >= MOST_REPEATS) throw error
      }
    }
  }
  Object.assign(pool, { query: patient })
}
