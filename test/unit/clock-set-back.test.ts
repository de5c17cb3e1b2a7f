import { describe, expect, it } from 'vitest'
import { QueueWait } from '../../src/queue/queue-wait.ts'
import { admission, type BrokerHealth, PROBER_MS } from '../../src/reconcile/broker-health.ts'

const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2026, 2, 10, 12)

describe('when the clock was set back', () => {
  const rests: readonly { readonly what: string; readonly health: BrokerHealth }[] = [
    { what: 'a broker that rests', health: { state: 'open', failures: 9, retryAtMs: NOW_MS + 1_000 } },
    {
      what: 'a broker whose prober died',
      health: { state: 'half-open', failures: 9, prober: 'gone', proberUntilMs: NOW_MS + PROBER_MS },
    },
  ]
  it.each(rests)('$what is tried now, not when the clock comes to where it was', ({ health }) => {
    expect(admission(health, NOW_MS)).toMatchObject({ to: 'rest' })
    expect(admission(health, NOW_MS - HOUR_MS)).toEqual({ to: 'probe' })
  })

  it('a queue whose broker fails again waits no longer than any queue', () => {
    const wait = new QueueWait({ baseMs: 1_000, capMs: 5_000 })
    expect(wait.failed(NOW_MS, 1)).toBe(1_000)
    expect(wait.failed(NOW_MS - HOUR_MS, 1)).toBe(2_000)
    expect(wait.failed(NOW_MS - HOUR_MS + 500, 1)).toBe(1_500)
  })
})
