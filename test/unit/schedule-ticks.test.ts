import { describe, expect, it } from 'vitest'
import { checkCron, lastTickMs, spreadMs, tickIntervalMs, tickJobId } from '../../src/queue/schedule-ticks.ts'
import { DEFAULT_SCHEDULES } from '../../src/queue/schedules.ts'

const at = (text: string): number => Date.parse(`2026-03-${text}Z`)

describe('the last tick', () => {
  it.each([
    ['of each minute', '* * * * *', '10T12:34:56', null, '10T12:34:00'],
    ['of each minute, on the tick', '* * * * *', '10T12:34:00', null, '10T12:34:00'],
    ['of every 15 seconds', '*/15 * * * * *', '10T12:34:50', null, '10T12:34:45'],
    ['of an hourly one', '0 * * * *', '10T12:34:56', '10T11:00:00', '10T12:00:00'],
    ['that ran already', '0 * * * *', '10T12:34:56', '10T12:00:00', null],
    ['of a daily one, missed for days', '17 3 * * *', '10T03:16:59', '05T03:17:00', '09T03:17:00'],
    ['of a weekly one', '0 5 * * 1', '10T12:00:00', null, '09T05:00:00'],
    ['of a monthly one', '0 0 1 * *', '31T23:00:00', null, '01T00:00:00'],
    ['that is to come', '0 0 29 2 *', '10T12:00:00', '01T00:00:00', null],
    ['when the clock was set back', '* * * * *', '10T12:34:56', '11T00:00:00', null],
  ])('%s', (_what, expression, now, after, expected) => {
    const tickMs = lastTickMs(expression, at(now), after === null ? null : at(after))
    expect(tickMs).toBe(expected === null ? null : at(expected))
  })

  it('does not repeat or lose an hour when clocks change: ticks are UTC', () => {
    expect(lastTickMs('30 1 * * *', at('29T01:29:59'), null)).toBe(at('28T01:30:00'))
    expect(lastTickMs('30 1 * * *', at('29T01:30:00'), null)).toBe(at('29T01:30:00'))
  })
})

describe('schedules', () => {
  it('have defaults that are cron expressions', () => {
    for (const [name, expression] of Object.entries(DEFAULT_SCHEDULES))
      expect(() => checkCron(name, expression)).not.toThrow()
  })

  it.each(['', 'soon', '61 * * * *', '* * * *', '0 25 * * *'])('refuse %j', (expression) => {
    expect(() => checkCron('sweep-brokers', expression)).toThrow(/schedule sweep-brokers is no cron expression/)
  })

  it.each([
    ['* * * * * *', 1_000],
    ['*/15 * * * * *', 15_000],
    ['0 * * * *', 3_600_000],
    ['17 3 * * *', 86_400_000],
    ['0 0 29 2 *', null],
  ])('tell what is between two ticks of %s', (expression, intervalMs) => {
    expect(tickIntervalMs(expression, at('10T12:34:56'))).toBe(intervalMs)
  })

  it('name the job of a tick alike, whatever the milliseconds, and without a colon', () => {
    expect(tickJobId('prune-records', 1_700_000_000_000)).toBe('prune-records-1700000000')
    expect(tickJobId('prune-records', 1_700_000_000_999)).toBe('prune-records-1700000000')
  })

  it('name it otherwise the second time, when the clock was set back', () => {
    const tickMs = 1_700_000_000_000
    expect(tickJobId('prune-records', tickMs, tickMs + 60_000)).toBe('prune-records-1700000000')
    expect(tickJobId('prune-records', tickMs, tickMs + 61_000)).toBe('prune-records-1700000000-after-1700000061')
  })

  it('spread brokers over the window, each at one place', () => {
    const places = Array.from({ length: 200 }, (_, index) => spreadMs(`broker-${index}`, 600_000))
    expect(places).toEqual(Array.from({ length: 200 }, (_, index) => spreadMs(`broker-${index}`, 600_000)))
    expect(Math.max(...places)).toBeLessThan(600_000)
    for (const sixth of [0, 1, 2, 3, 4, 5]) {
      const inIt = places.filter((place) => Math.floor(place / 100_000) === sixth)
      expect(inIt.length).toBeGreaterThan(15)
    }
    expect(spreadMs('broker-1', 0)).toBe(0)
  })
})
