import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { JobQueue, QueueBackend } from '../../src/queue/job-queue.ts'
import { createScheduler, DEFAULT_SCHEDULES, type ScheduleName, type Scheduler } from '../../src/queue/schedules.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const NOON_MS = Date.UTC(2026, 2, 10, 12)
const NEVER = '0 0 29 2 *'

/** Two schedules that tick, and what they made of a queue that keeps ids as the real one does. */
class World {
  readonly ids: string[] = []
  readonly errors: string[] = []
  readonly ticks = new Map<ScheduleName, number>()
  failure: Error | null = null
  hold: Promise<void> = Promise.resolve()
  readonly scheduler: Scheduler

  constructor() {
    const queue: Pick<JobQueue, 'add'> = {
      add: async (jobs) => {
        await this.hold
        if (this.failure !== null) throw this.failure
        for (const { id } of jobs) if (id !== undefined && !this.ids.includes(id)) this.ids.push(id)
      },
    }
    const backend: Pick<QueueBackend, 'queue'> = { queue: () => queue as JobQueue }
    this.scheduler = createScheduler({
      backend: backend as QueueBackend,
      ticks: {
        lastTick: async (schedule) => this.ticks.get(schedule) ?? null,
        recordTick: async (schedule, tickMs) =>
          void this.ticks.set(schedule, Math.max(tickMs, this.ticks.get(schedule) ?? 0)),
      },
      expressions: {
        'poll-catalogue': NEVER,
        'retire-expired': NEVER,
        'prune-records': NEVER,
        'poll-notifications': NEVER,
        'poll-registrations': '*/15 * * * * *',
        'sweep-brokers': '0 * * * *',
      },
      now: () => Date.now(),
      onError: (schedule, error) => void this.errors.push(`${schedule}: ${String(error)}`),
    })
  }

  /** Runs of a schedule since the last call. */
  taken(schedule: ScheduleName): number {
    const taken = this.ids.filter((id) => id.startsWith(schedule))
    for (const id of taken) this.ids.splice(this.ids.indexOf(id), 1, `done ${id}`)
    return taken.length
  }
}

let world: World
beforeEach(async () => {
  vi.useFakeTimers({ now: NOON_MS + 5_000 })
  world = new World()
  for (const schedule of Object.keys(DEFAULT_SCHEDULES) as ScheduleName[]) world.ticks.set(schedule, NOON_MS)
  await world.scheduler.start()
  await vi.advanceTimersByTimeAsync(MINUTE_MS)
  expect(world.taken('poll-registrations')).toBe(4)
  expect(world.taken('sweep-brokers')).toBe(0)
})
afterEach(async () => {
  await world.scheduler.stop()
  vi.useRealTimers()
})

const setClock = (byMs: number): void => void vi.setSystemTime(Date.now() + byMs)

describe('schedules, when the clock is set', () => {
  it.each([
    ['an hour', HOUR_MS],
    ['a day', DAY_MS],
  ])('%s forward, or the machine slept so long, run once for all that ticked meanwhile', async (_what, byMs) => {
    setClock(byMs)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(world.taken('poll-registrations')).toBeLessThanOrEqual(3)
    expect(world.taken('sweep-brokers')).toBe(1)
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    expect(world.taken('poll-registrations')).toBe(4)
    expect(world.taken('sweep-brokers')).toBe(0)
    await vi.advanceTimersByTimeAsync(HOUR_MS)
    expect(world.taken('sweep-brokers')).toBe(1)
  })

  it.each([
    ['an hour', HOUR_MS],
    ['a day', DAY_MS],
  ])('%s back, go on: hours that come a second time have jobs of their own', async (_what, byMs) => {
    setClock(-byMs)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(world.taken('poll-registrations')).toBeGreaterThanOrEqual(1)
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    expect(world.taken('poll-registrations')).toBe(4)
    await vi.advanceTimersByTimeAsync(HOUR_MS)
    // Around the moment that it was set at, old and new ticks cannot be told apart for a minute.
    expect(world.taken('poll-registrations')).toBeGreaterThanOrEqual(240 - 8)
    expect(world.taken('sweep-brokers')).toBe(1)
  })

  it('a day forward and back again, go on', async () => {
    setClock(DAY_MS)
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    setClock(-DAY_MS)
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    world.taken('poll-registrations')
    await vi.advanceTimersByTimeAsync(HOUR_MS)
    expect(world.taken('poll-registrations')).toBe(240)
    expect(world.taken('sweep-brokers')).toBe(2)
  })
})

describe('schedules, when the queue is away', () => {
  it('owe one run for all ticks that it refused, and tell of it once', async () => {
    world.failure = new Error('no queue')
    await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
    expect(world.errors).toEqual(['poll-registrations: Error: no queue', 'sweep-brokers: Error: no queue'])
    world.failure = null
    await vi.advanceTimersByTimeAsync(10_000)
    expect(world.taken('sweep-brokers')).toBe(1)
    expect(world.taken('poll-registrations')).toBeLessThanOrEqual(2)
  })

  it('have one tick wait for a queue that does not answer, however long, and end without it', async () => {
    let answer: () => void = () => undefined
    world.hold = new Promise((resolve) => {
      answer = resolve
    })
    await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
    answer()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(world.taken('sweep-brokers')).toBeLessThanOrEqual(2)
    expect(world.taken('poll-registrations')).toBeLessThanOrEqual(3)
    world.hold = new Promise((resolve) => {
      answer = resolve
    })
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    const stopped = world.scheduler.stop()
    await vi.advanceTimersByTimeAsync(10_000)
    await stopped
    answer()
  })
})
