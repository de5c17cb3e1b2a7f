import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import type { Hold, StatementPoint } from '../helpers/postgres-tap.ts'
import { expectInEffect, secretsOf } from './crash-effects.ts'
import { allStopped, ask, COMMIT, prepare, type Row, WRITES } from './crash-rows.ts'
import { CrashWorld } from './crash-world.ts'

type Stop =
  | { readonly at: 'broker'; readonly write: number; readonly moment: 'before' | 'after' }
  | { readonly at: 'login'; readonly silent: 'up' | 'down' }
  | { readonly at: 'database'; readonly point: (row: Row) => StatementPoint }

interface WorkerRow extends Row {
  readonly stop: Stop
  /** That the broker has done by then. */
  readonly writes: number
}

const TAKE = /move_to_(active|completed_fetch)/

interface DatabaseStop {
  readonly killed: string
  readonly writes: number
  readonly point: (row: Row) => StatementPoint
}

/** Those that stop later in a run come first: what is stopped earlier holds up others. */
const IN_THE_DATABASE: readonly DatabaseStop[] = [
  {
    killed: 'after the job was done',
    writes: WRITES.create,
    point: ({ broker }) => ({ statement: /move_to_completed/, about: [queueOf(broker)], moment: 'after' }),
  },
  {
    killed: 'after the verdict was recorded',
    writes: WRITES.create,
    point: ({ id }) => ({ statement: COMMIT, about: [id, 'reached_generation = greatest'], moment: 'after' }),
  },
  {
    killed: 'after the login, before its verdict was recorded',
    writes: WRITES.create,
    point: ({ broker }) => ({ statement: /insert into login_controls/, about: [nameOf(broker)], moment: 'after' }),
  },
  {
    killed: 'after all writes, before the login',
    writes: WRITES.create,
    point: ({ broker }) => ({ statement: /select messaging, management/, about: [nameOf(broker)], moment: 'before' }),
  },
  {
    killed: 'after the intent, before the first write',
    writes: 0,
    point: ({ id }) => ({ statement: /insert into ledger/, about: [id], moment: 'after' }),
  },
  {
    killed: 'after the lease, before the intent',
    writes: 0,
    point: ({ id }) => ({ statement: /lease_token = p\.lease_token \+ 1/, about: [id], moment: 'after' }),
  },
  {
    killed: 'after the job was taken, before the lease',
    writes: 0,
    point: ({ id, broker }) => ({ statement: TAKE, about: [queueOf(broker)], moment: 'after', answer: id }),
  },
  {
    killed: 'after the job of the broker was added',
    writes: 0,
    point: ({ broker }) => ({ statement: /add_(flow|job)/, about: [queueOf(broker)], moment: 'after' }),
  },
  {
    killed: 'after the job of the registration was taken',
    writes: 0,
    point: ({ id }) => ({ statement: TAKE, about: ['registrations'], moment: 'after', answer: id }),
  },
]

/** All of one length, so that none is a part of another. */
const two = (number: number): string => String(number).padStart(2, '0')

const WORKER_ROWS: readonly WorkerRow[] = [
  ...(['create', 'second', 'rotate', 'end', 'leave'] as const).flatMap((operation) =>
    Array.from({ length: WRITES[operation] }, (_, index) => index + 1).flatMap((write) =>
      (['before', 'after'] as const).map((moment) => ({
        killed: `${operation}: write ${write} of ${WRITES[operation]}, ${moment === 'before' ? 'not sent' : 'done, not answered'}`,
        operation,
        stop: { at: 'broker', write, moment } as const,
        writes: moment === 'before' ? write - 1 : write,
      })),
    ),
  ),
  {
    killed: 'create: during the login',
    operation: 'create' as const,
    stop: { at: 'login', silent: 'up' } as const,
    writes: WRITES.create,
  },
  {
    killed: 'rotate: during the login, which the broker took',
    operation: 'rotate' as const,
    stop: { at: 'login', silent: 'down' } as const,
    writes: WRITES.rotate,
  },
  ...IN_THE_DATABASE.map(({ killed, writes, point }) => ({
    killed: `create: ${killed}`,
    writes,
    operation: 'create' as const,
    stop: { at: 'database', point } as const,
  })),
].map((row, index) => ({ ...row, id: `worker-${two(index)}-${row.operation}`, broker: index }))

const nameOf = (broker: number): string => `broker-${two(broker)}`
const queueOf = (broker: number): string => brokerQueue(world.mesh.key(broker))

let world: CrashWorld

beforeAll(async () => {
  world = await CrashWorld.open(WORKER_ROWS.map(({ broker }) => nameOf(broker)))
})
afterAll(() => world?.[Symbol.asyncDispose]())

describe('the service, killed while it works', () => {
  const atTheKill = new Map<string, Readonly<Record<string, string>>>()
  let unsettled: string | null = null
  const writes = new Map<string, number>()

  beforeAll(async () => {
    await prepare(world, WORKER_ROWS)
    await world.start()
    await world.settled()
    const besides = WORKER_ROWS.filter(({ stop }) => stop.at !== 'database')
    const stops = await Promise.all(besides.map(arm))
    await Promise.all(besides.map((row) => ask(world, row)))
    await allStopped(stops)
    for (const row of WORKER_ROWS) {
      if (row.stop.at !== 'database') continue
      const hold: Hold = world.database.hold(row.stop.point(row))
      await ask(world, row)
      await allStopped([{ row, isReached: hold.isReached }])
    }
    await world.kill()
    for (const row of WORKER_ROWS) {
      atTheKill.set(row.id, await secretsOf(world, row))
      writes.set(row.id, world.mesh.broker(row.broker).requests.writes)
    }
    await world.start()
    unsettled = await world.settled().then(() => null, String)
  }, 240_000)

  async function arm(row: WorkerRow): Promise<{ readonly row: Row; readonly isReached: () => boolean }> {
    const { semp, mqtt } = world.broker(row.broker)
    const { stop } = row
    if (stop.at === 'login') {
      await mqtt.set({ kind: 'silent', direction: stop.silent })
      const connected = () => world.mesh.broker(row.broker).state.accounts.clients().length > 0
      return { row, isReached: () => (stop.silent === 'up' ? mqtt.accepted > 0 : connected()) }
    }
    let isReached = false
    if (stop.at === 'broker') {
      void semp.hold(stop).then(() => {
        isReached = true
      })
    }
    return { row, isReached: () => isReached }
  }

  it('comes to rest again by itself', () => expect(unsettled).toBeNull())

  it.each(WORKER_ROWS)('$killed', async (row) => {
    expect(writes.get(row.id)).toBe(row.writes)
    await expectInEffect(world, row, atTheKill.get(row.id) ?? {})
    const { log } = world.mesh.broker(row.broker).requests
    const refused = log.filter(({ method, httpStatus }) => method !== 'GET' && httpStatus !== 200)
    expect(refused).toEqual([])
  })

  it('prints no secret, whatever it meets', async () => {
    const secrets = [...(await world.mesh.secrets()).values()]
    expect(secrets.length).toBeGreaterThan(WORKER_ROWS.length / 2)
    expect(world.printed).toContain('service.started')
    expect(secrets.filter((secret) => world.printed.includes(secret))).toEqual([])
  })

  it('leaves no connection of a client behind', () => {
    expect(world.mesh.sandbox.brokers.flatMap(({ state }) => state.accounts.clients())).toEqual([])
  })
})
