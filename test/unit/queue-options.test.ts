import { describe, expect, it } from 'vitest'
import { backoffMs, DEFAULT_RETRY, priorityOf } from '../../src/queue/job-options.ts'
import { QueueWait } from '../../src/queue/queue-wait.ts'

const MINUTE_MS = 60_000
const NOW_MS = Date.UTC(2026, 5, 1, 10)

describe('the backoff', () => {
  it('doubles from 2 seconds to a cap of 15 minutes', () => {
    const full = [1, 2, 3, 4, 8, 10, 11, 40].map((attempt) => backoffMs(attempt, DEFAULT_RETRY, 1))
    expect(full).toEqual([2_000, 4_000, 8_000, 16_000, 256_000, 900_000, 900_000, 900_000])
  })

  it('is jittered over its upper half', () => {
    expect(backoffMs(3, DEFAULT_RETRY, 0)).toBe(4_000)
    expect(backoffMs(3, DEFAULT_RETRY, 0.5)).toBe(6_000)
  })
})

describe('the priority', () => {
  it('puts on demand and operator before poll before sweep', () => {
    const [demand = 0, operator, poll = 0, sweep = 0] = (['on-demand', 'operator', 'poll', 'sweep'] as const).map(
      (trigger) => priorityOf(trigger, NOW_MS),
    )
    expect(operator).toBe(demand)
    expect(demand).toBeLessThan(poll)
    expect(poll).toBeLessThan(sweep)
  })

  it('puts a revocation before everything, however long that has waited', () => {
    for (const year of [1970, 2025, 2030, 2500]) {
      const waiting = priorityOf('on-demand', Date.UTC(year, 0, 1))
      expect(priorityOf('revocation', Date.UTC(year + 1, 0, 1))).toBeLessThan(waiting)
    }
  })

  it.each([
    ['poll', 11],
    ['sweep', 31],
  ] as const)('puts a %s job before new on-demand ones after %i minutes', (trigger, minutes) => {
    const waiting = priorityOf(trigger, NOW_MS)
    expect(waiting).toBeGreaterThan(priorityOf('on-demand', NOW_MS + (minutes - 2) * MINUTE_MS))
    expect(waiting).toBeLessThan(priorityOf('on-demand', NOW_MS + minutes * MINUTE_MS))
  })

  it('stays within what both engines take, for ever', () => {
    for (const year of [1970, 2025, 2028, 2029, 2060, 2500]) {
      const priority = priorityOf('sweep', Date.UTC(year, 9, 20))
      expect(priority).toBeGreaterThanOrEqual(1)
      expect(priority).toBeLessThan(2 ** 21)
    }
  })
})

describe('the wait of a queue whose broker is sick', () => {
  const POLICY = { baseMs: 1_000, capMs: 5_000 }

  it('doubles with each round up to the cap', () => {
    const wait = new QueueWait(POLICY)
    let nowMs = 0
    const waits = [1, 2, 3, 4, 5].map(() => {
      const waitMs = wait.failed(nowMs, 1)
      nowMs += waitMs
      return waitMs
    })
    expect(waits).toEqual([1_000, 2_000, 4_000, 5_000, 5_000])
  })

  it('is not lengthened by jobs that fail while it runs', () => {
    const wait = new QueueWait(POLICY)
    expect(wait.failed(0, 1)).toBe(1_000)
    expect(wait.failed(400, 1)).toBe(600)
    expect(wait.failed(1_000, 1)).toBe(2_000)
  })

  it('begins anew once a job succeeds', () => {
    const wait = new QueueWait(POLICY)
    wait.failed(0, 1)
    wait.failed(1_000, 1)
    wait.succeeded()
    expect(wait.failed(1_500, 0)).toBe(750)
  })
})
