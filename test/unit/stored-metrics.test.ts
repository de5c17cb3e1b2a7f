import { describe, expect, it } from 'vitest'
import { Metrics } from '../../src/observability/metrics.ts'
import { queueGauges, sharedReading, storeGauges } from '../../src/observability/stored-metrics.ts'
import { parseMetrics, sumOf } from '../helpers/metrics-text.ts'

describe('a shared reading', () => {
  it('is made once for all who ask at once, and serves those who come soon after', async () => {
    let reads = 0
    const ask = sharedReading({ read: async () => ++reads, freshMs: 60_000, patienceMs: 1_000 })
    expect(await Promise.all(Array.from({ length: 100 }, () => ask()))).toEqual(Array.from({ length: 100 }, () => 1))
    expect(await ask()).toBe(1)
  })

  it('is made anew when it is old', async () => {
    let reads = 0
    const ask = sharedReading({ read: async () => ++reads, freshMs: 0, patienceMs: 1_000 })
    expect([await ask(), await ask()]).toEqual([1, 2])
  })

  it('is null when it fails or takes too long, and is not begun twice', async () => {
    let reads = 0
    const never = sharedReading({
      read: () => {
        reads += 1
        return new Promise<never>(() => undefined)
      },
      freshMs: 0,
      patienceMs: 1,
    })
    expect([await never(), await never(), reads]).toEqual([null, null, 1])
    const failing = sharedReading({ read: () => Promise.reject(new Error('away')), freshMs: 0, patienceMs: 1_000 })
    expect(await failing()).toBeNull()
  })
})

const BROKER = {
  account: 'default',
  broker: 'broker-1',
  reachable: null,
  paused: true,
  health: 'closed',
  failures: 0,
  sweptAtSeconds: null,
  orphans: 0,
  pairs: { held: 2 },
  needPerson: 0,
  lagging: 0,
  oldestLagSeconds: null,
} as const

describe('metrics of the store', () => {
  it('are gone, and say so, while it does not answer', async () => {
    const metrics = new Metrics()
    const accounts = [
      {
        account: 'default',
        credentials: { '1d': 0, '7d': 0, '30d': 1 },
        apiTokens: { '1d': 0, '7d': 0, '30d': 0 },
        nextExpirySeconds: 9,
        followedAtSeconds: null,
        failingEndpoints: 0,
      },
    ]
    const views = [{ brokers: [BROKER], drift: [], logins: [], accounts }, null]
    metrics.read(
      'store',
      storeGauges(metrics, async () => views.shift() ?? null),
    )
    const first = parseMetrics(await metrics.render())
    expect(sumOf(first, 'keymesh_pairs', { broker: 'broker-1', state: 'held' })).toBe(2)
    expect(sumOf(first, 'keymesh_broker_paused')).toBe(1)
    expect(sumOf(first, 'keymesh_broker_reachable')).toBeNull()
    expect(sumOf(first, 'keymesh_store_up')).toBe(1)
    const second = parseMetrics(await metrics.render())
    expect(sumOf(second, 'keymesh_pairs')).toBeNull()
    expect(sumOf(second, 'keymesh_credentials_expiring')).toBeNull()
    expect(sumOf(second, 'keymesh_store_up')).toBe(0)
    // Counters stay: they are of this process.
    expect(sumOf(second, 'keymesh_drift_detected_total', { broker: 'broker-1' })).toBe(0)
  })

  it('of a queue that holds nothing are 0', async () => {
    const metrics = new Metrics()
    const queues = [{ name: 'catalogue', label: 'catalogue', account: '', broker: '' } as const]
    metrics.read(
      'queue',
      queueGauges(
        metrics,
        async () => ({ queues, backlog: [] }),
        () => 0,
      ),
    )
    const samples = parseMetrics(await metrics.render())
    expect(sumOf(samples, 'keymesh_queue_jobs', { queue: 'catalogue' })).toBe(0)
    expect(sumOf(samples, 'keymesh_queue_oldest_job_age_seconds', { queue: 'catalogue' })).toBe(0)
  })
})

describe('metrics for one account', () => {
  it('are without those of all others, whatever their brokers are called', async () => {
    const metrics = new Metrics()
    const rest = (account: string, broker: string) => metrics.count('keymesh_broker_rests_total', { account, broker })
    rest('ours', 'broker-1')
    rest('theirs', 'broker-2')
    rest('theirs', 'x",account="ours')
    rest('o"urs', 'broker-3')
    metrics.count('keymesh_jobs_missed_total', {})
    const of = async (account: string) =>
      parseMetrics(await metrics.render({ account }))
        .filter(({ name }) => name === 'keymesh_broker_rests_total')
        .map(({ labels }) => labels.broker)
    expect(await of('ours')).toEqual(['broker-1'])
    expect(await of('o"urs')).toEqual(['broker-3'])
    expect(await of('nobody')).toEqual([])
    expect(await metrics.render({ account: 'nobody' })).toContain('keymesh_jobs_missed_total 1')
  })
})
