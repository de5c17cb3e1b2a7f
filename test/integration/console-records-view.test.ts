import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Database, openDatabase } from '../../src/store/database.ts'
import { boundsOf, countOpenDrift, readDriftChart } from '../../src/store/drift-chart.ts'
import { readDriftTimeline } from '../../src/store/drift-view.ts'
import { readRunsAfter } from '../../src/store/runs-view.ts'
import { withDatabase } from '../helpers/database.ts'

const database = withDatabase()
let db: Database
let close: () => Promise<void>

beforeAll(() => {
  const { connectionString } = database()
  const opened = openDatabase({ connectionString, maxConnections: 2, onIdleError: () => undefined })
  db = opened.db
  close = opened.close
})
afterAll(() => close())
beforeEach(() => sql`truncate drift, runs`.execute(db))

const NOW_MS = Date.parse('2026-03-10T12:34:56Z')

interface Difference {
  readonly account?: string
  readonly broker?: string
  readonly registration?: string
  readonly kind?: string
  readonly detected: string
  readonly repaired?: string
}

let names = 0
async function add({
  account = 'a',
  broker = 'b-1',
  registration = 'r-1',
  kind = 'changed',
  detected,
  repaired,
}: Difference) {
  names += 1
  await sql`
    insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
      run_id, detected_at, last_seen_at, repaired_at)
    values (${account}, ${broker}, ${registration}, 'queue', ${`q-${names}`}, ${kind}, 'changed-on-broker', '{}', '{}', 'repaired',
      'run', ${detected}, ${detected}, ${repaired ?? null})`.execute(db)
  return `q-${names}`
}

describe('the chart of drift', () => {
  it('has whole hours of the last day and whole days of the last month, the one under way last', () => {
    const at = (ms: number) => new Date(ms).toISOString()
    const [day, month] = [boundsOf('24h', NOW_MS), boundsOf('30d', NOW_MS)]
    expect([at(day.fromMs), at(day.untilMs)]).toEqual(['2026-03-09T13:00:00.000Z', '2026-03-10T13:00:00.000Z'])
    expect([at(month.fromMs), at(month.untilMs)]).toEqual(['2026-02-09T00:00:00.000Z', '2026-03-11T00:00:00.000Z'])
  })

  it('counts a difference where it was detected and where it was repaired, from a bucket’s start to before its end', async () => {
    await add({ detected: '2026-03-10T11:59:59.999Z', repaired: '2026-03-10T12:00:00Z' })
    await add({ detected: '2026-03-10T12:00:00Z' })
    await add({ detected: '2026-03-09T12:59:59Z', repaired: '2026-03-09T13:00:00Z' })
    await add({ account: 'other', detected: '2026-03-10T12:00:00Z' })
    const buckets = await readDriftChart(db, { accountId: 'a' }, '24h', NOW_MS)
    expect(buckets).toHaveLength(24)
    expect(buckets[0]).toEqual({ fromMs: Date.parse('2026-03-09T13:00:00Z'), detected: 0, repaired: 1 })
    expect(buckets.slice(-2)).toEqual([
      { fromMs: Date.parse('2026-03-10T11:00:00Z'), detected: 1, repaired: 0 },
      { fromMs: Date.parse('2026-03-10T12:00:00Z'), detected: 1, repaired: 1 },
    ])
    const days = await readDriftChart(db, { accountId: 'a' }, '30d', NOW_MS)
    expect(days.slice(-2).map(({ detected, repaired }) => [detected, repaired])).toEqual([
      [1, 1],
      [2, 1],
    ])
  })

  it('counts only what the filter lets through, and what is open by kind', async () => {
    await add({ detected: '2026-03-10T12:00:00Z' })
    await add({ kind: 'missing', detected: '2026-03-10T12:00:00Z' })
    await add({ broker: 'b-2', registration: 'r-2', kind: 'missing', detected: '2026-03-10T12:01:00Z' })
    await add({ detected: '2026-03-10T12:02:00Z', repaired: '2026-03-10T12:03:00Z' })
    const detected = async (filter: object) =>
      (await readDriftChart(db, { accountId: 'a', ...filter }, '24h', NOW_MS)).at(-1)?.detected
    expect(await detected({})).toBe(4)
    expect(await detected({ brokerId: 'b-2' })).toBe(1)
    expect(await detected({ registrationId: 'r-1' })).toBe(3)
    expect(await detected({ kind: 'missing' })).toBe(2)
    expect(await detected({ brokerId: 'b-1', kind: 'missing' })).toBe(1)
    expect(await countOpenDrift(db, { accountId: 'a' })).toEqual([
      { kind: 'missing', count: 2 },
      { kind: 'changed', count: 1 },
    ])
  })
})

describe('lists by time', () => {
  it('go on where a page ended, also among differences of one moment', async () => {
    const moment = '2026-03-10T12:00:00Z'
    const added: string[] = []
    for (let count = 0; count < 5; count += 1) added.push(await add({ detected: moment }))
    added.push(await add({ detected: '2026-03-10T12:00:00.001Z' }))
    const shown: string[] = []
    let after: { detectedAtMs: number; id: number } | null = null
    for (;;) {
      const page: Awaited<ReturnType<typeof readDriftTimeline>> = await readDriftTimeline(db, {
        accountId: 'a',
        after,
        limit: 2,
      })
      shown.push(...page.map(({ objectName }) => objectName))
      const last = page.at(-1)
      if (last === undefined) break
      after = last
    }
    expect(shown).toEqual(added.toReversed())
  })

  it('of differences keep to a time', async () => {
    await add({ detected: '2026-03-10T11:00:00Z' })
    const inside = await add({ detected: '2026-03-10T12:00:00Z' })
    await add({ detected: '2026-03-10T13:00:00Z' })
    const bounds = { fromMs: Date.parse('2026-03-10T12:00:00Z'), untilMs: Date.parse('2026-03-10T13:00:00Z') }
    const found = await readDriftTimeline(db, { accountId: 'a', after: null, limit: 9, detected: bounds })
    expect(found.map(({ objectName }) => objectName)).toEqual([inside])
  })

  it('of runs go on where a page ended and keep to a time', async () => {
    const addRun = (id: string, at: string, account = 'a') =>
      sql`insert into runs (id, account_id, broker_id, kind, trigger, outcome, started_at)
        values (${id}, ${account}, 'b-1', 'registration', 'poll', 'in-sync', ${at})`.execute(db)
    await addRun('one', '2026-03-10T12:00:00Z')
    await addRun('three', '2026-03-10T12:00:00Z')
    await addRun('two', '2026-03-10T12:00:00Z')
    await addRun('late', '2026-03-10T12:00:01Z')
    await addRun('theirs', '2026-03-10T12:00:01Z', 'other')
    const ids = async (filter: object, after: { startedAtMs: number; id: string } | null) =>
      (await readRunsAfter(db, { accountId: 'a', ...filter }, { after, limit: 2 })).map(({ id }) => id)
    expect(await ids({}, null)).toEqual(['late', 'two'])
    const at = Date.parse('2026-03-10T12:00:00Z')
    expect(await ids({}, { startedAtMs: at, id: 'two' })).toEqual(['three', 'one'])
    expect(await ids({ started: { fromMs: at + 1, untilMs: at + 1000 } }, null)).toEqual(['late'])
  })
})
