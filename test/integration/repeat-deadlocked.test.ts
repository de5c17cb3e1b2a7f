import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repeatDeadlocked } from '../../src/queue/repeat-deadlocked.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts'

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.connectionString, max: 2 })
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

/** Two of them wait for each other when the first lock of one is the second of the other. */
const LOCK_BOTH =
  'with first as materialized (select pg_advisory_xact_lock($1), pg_sleep(0.3)) select pg_advisory_xact_lock($2) from first'

const blockEachOther = () => Promise.allSettled([pool.query(LOCK_BOTH, [1, 2]), pool.query(LOCK_BOTH, [2, 1])])

describe('statements that block each other', () => {
  it('are both done in the end', async () => {
    expect((await blockEachOther()).map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    repeatDeadlocked(pool)
    expect((await blockEachOther()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  })

  it('are given up when they do so again and again, and other failures are told at once', async () => {
    let sent = 0
    const failing = (code: string) => {
      sent = 0
      const fake: Pick<pg.Pool, 'query'> = {
        query: () => {
          sent += 1
          return Promise.reject(Object.assign(new Error('refused'), { code }))
        },
      }
      repeatDeadlocked(fake)
      return fake.query('select 1')
    }
    await expect(failing('40P01')).rejects.toThrow('refused')
    expect(sent).toBe(6)
    await expect(failing('23505')).rejects.toThrow('refused')
    expect(sent).toBe(1)
  })
})
