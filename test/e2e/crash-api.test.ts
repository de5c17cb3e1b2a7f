import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { StatementPoint } from '../helpers/postgres-tap.ts'
import { expectInEffect, onBroker, secretsOf } from './crash-effects.ts'
import {
  allStopped,
  ask,
  before,
  type Changing,
  COMMIT,
  mainKey,
  NEXT_SECRET,
  prepare,
  type Row,
} from './crash-rows.ts'
import { CrashWorld } from './crash-world.ts'

interface ApiRow extends Row {
  readonly operation: Changing
  readonly stop: 'before the commit' | 'after the commit' | 'after the job was added'
}

const API_ROWS: readonly ApiRow[] = (['first', 'second', 'rotate', 'end', 'leave'] as const).flatMap((operation) =>
  (['before the commit', 'after the commit', 'after the job was added'] as const).map((stop, index) => ({
    killed: `${operation}: ${stop}`,
    operation,
    id: `api-${operation}-${index}`,
    broker: 0,
    stop,
  })),
)

let world: CrashWorld

beforeAll(async () => {
  world = await CrashWorld.open(['broker-00'])
})
afterAll(() => world?.[Symbol.asyncDispose]())

describe('the service, killed while it answers a request', () => {
  const atTheKill = new Map<string, Readonly<Record<string, string>>>()
  let unsettled: string | null = null
  const POINTS: Readonly<Record<ApiRow['stop'], (row: ApiRow) => StatementPoint>> = {
    'before the commit': ({ id }) => ({ statement: COMMIT, about: [id], moment: 'before' }),
    'after the commit': ({ id }) => ({ statement: COMMIT, about: [id], moment: 'after' }),
    'after the job was added': ({ id }) => ({ statement: /add_(flow|job)/, about: [id], moment: 'after' }),
  }

  beforeAll(async () => {
    await prepare(world, API_ROWS)
    // Nobody works on what is added.
    await world.start({ KEYMESH_ROLES: 'api' })
    const holds = API_ROWS.map((row) => ({ row, hold: world.database.hold(POINTS[row.stop](row)) }))
    const asked = API_ROWS.map((row) => ask(world, row))
    await allStopped(holds.map(({ row, hold }) => ({ row, isReached: hold.isReached })))
    await world.kill()
    expect(await Promise.all(asked)).toEqual(API_ROWS.map(() => null))
    for (const row of API_ROWS) atTheKill.set(row.id, await secretsOf(world, row))
    await world.start()
    unsettled = await world.settled().then(() => null, String)
  }, 240_000)

  it('comes to rest again by itself', () => expect(unsettled).toBeNull())

  it.each(API_ROWS)('$killed', async (row) => {
    const secrets = atTheKill.get(row.id) ?? {}
    if (row.stop === 'before the commit') {
      // Nothing happened, and nothing stands in the way of asking again.
      const was = Object.fromEntries(
        before(row).flatMap(({ credentials }) =>
          credentials.map(({ name, consumerSecret }) => [name, consumerSecret?.reveal()]),
        ),
      )
      expect(secrets).toEqual(was)
      expect(onBroker(world, row).passwords).toEqual(was)
      expect((await ask(world, row))?.status).toBeLessThan(300)
      await world.settled(row.id)
      await expectInEffect(world, row, await secretsOf(world, row))
      return
    }
    await expectInEffect(world, row, secrets)
    if (row.operation === 'rotate') expect(secrets).toEqual({ [mainKey(row.id)]: NEXT_SECRET })
    // A client that asks again learns that it is done.
    const again = { first: 400, second: 400, rotate: 200, end: 404, leave: 404 } as const
    expect((await ask(world, row))?.status).toBe(again[row.operation])
  })
})
