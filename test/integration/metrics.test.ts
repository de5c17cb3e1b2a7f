import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { METRICS } from '../../src/observability/metric-definitions.ts'
import { openQueue, startHealth, watchProcess } from '../../src/roles.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { parseMetrics, type Sample, sumOf } from '../helpers/metrics-text.ts'
import { suppliedCredential } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from './reconcile-fixtures.ts'

const APP = 'app-a'
const DAY_MS = 86_400_000

let mesh: TestMesh
let stop: () => Promise<void>
let url: string
beforeAll(async () => {
  const credential = {
    ...suppliedCredential('main', keyOf(APP), givenSecretOf(APP)),
    expiresAtMs: Date.now() + 3 * DAY_MS,
  }
  mesh = await withMesh({
    brokers: 2,
    sandbox: { logins: { mqtt: 0 } },
    portal: (brokers) => ordersPortal(brokers, [client(APP, { credentials: [credential] })]),
  })
  const queue = await openQueue(mesh.context)
  watchProcess(mesh.context)
  const health = await startHealth(mesh.context, queue, 0)
  url = health.url
  stop = async () => {
    await health.stop()
    await queue.backend.close()
  }
  await mesh.context.engine.reconcilePair(mesh.pair(APP), { trigger: 'on-demand' })
  mesh.broker().state.clientUsernames.remove(keyOf(APP))
  await mesh.sweep()
  await queue.enqueue.pairs([mesh.pair(APP, 1)], 'poll')
  await sql`update broker_status set health = 'open', failures = 6, retry_at = now() + interval '1 minute'
    where broker_id = ${mesh.key(0).brokerId}`.execute(mesh.context.db)
  await sql`update login_verdicts set outcome = 'disabled' where broker_id = ${mesh.key(0).brokerId}`.execute(
    mesh.context.db,
  )
}, 60_000)
afterAll(async () => {
  await stop()
  await mesh[Symbol.asyncDispose]()
})

async function scrape(): Promise<readonly Sample[]> {
  const answer = await fetch(`${url}/metrics`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return parseMetrics(await answer.text())
}

describe('a scrape', () => {
  it('tells what was done on each broker, and what is left', async () => {
    const samples = await scrape()
    const [first, second] = [0, 1].map((index) => ({ account: 'default', broker: String(mesh.key(index).brokerId) }))
    const value = (name: keyof typeof METRICS, labels: object = {}) => sumOf(samples, name, { ...first, ...labels })
    expect({
      runs: value('keymesh_reconcile_runs_total', { trigger: 'on-demand', outcome: 'in-sync' }),
      detected: value('keymesh_drift_detected_total', { kind: 'missing' }),
      repaired: value('keymesh_drift_repaired_total', { kind: 'missing' }),
      neverPassword: value('keymesh_drift_detected_total', { kind: 'password' }),
      open: value('keymesh_drift_open'),
      sweeps: value('keymesh_sweeps_total', { outcome: 'done' }),
      inSync: value('keymesh_pairs', { state: 'in-sync' }),
      lagging: value('keymesh_pairs_lagging'),
      lag: value('keymesh_pairs_oldest_lag_seconds'),
      reachable: value('keymesh_broker_reachable'),
      resting: value('keymesh_broker_circuit_state', { state: 'open' }),
      working: value('keymesh_broker_circuit_state', { state: 'closed' }),
      failures: value('keymesh_broker_consecutive_failures'),
      paused: value('keymesh_broker_paused'),
    }).toEqual({
      runs: 1,
      detected: 1,
      repaired: 1,
      neverPassword: 0,
      open: 0,
      sweeps: 1,
      inSync: 1,
      lagging: 0,
      lag: 0,
      reachable: 1,
      resting: 1,
      working: 0,
      failures: 6,
      paused: 0,
    })
    expect(value('keymesh_login_verdicts_total', { protocol: 'mqtt', outcome: 'accepted' })).toBeGreaterThanOrEqual(2)
    expect(value('keymesh_login_controls_total', { protocol: 'mqtt', outcome: 'refused' })).toBe(1)
    expect(value('keymesh_logins_rejected', { protocol: 'mqtt' })).toBe(1)
    expect(value('keymesh_broker_accepts_anything', { protocol: 'mqtt' })).toBe(0)
    expect(value('keymesh_semp_requests_total', { method: 'POST', kind: 'clientUsername', code: 'ok' })).toBe(2)
    expect(sumOf(samples, 'keymesh_drift_repair_duration_seconds_count', { ...first, kind: 'missing' })).toBe(1)
    expect(sumOf(samples, 'keymesh_semp_request_duration_seconds_sum', { ...first })).toBeGreaterThan(0)
    expect(value('keymesh_broker_last_sweep_timestamp_seconds')).toBeCloseTo(Date.now() / 1000, -2)

    expect(sumOf(samples, 'keymesh_pairs_lagging', second)).toBe(1)
    expect(sumOf(samples, 'keymesh_pairs_oldest_lag_seconds', second)).toBeGreaterThan(0)
    expect(sumOf(samples, 'keymesh_queue_jobs', { ...second, queue: 'broker', state: 'waiting' })).toBe(1)
    expect(sumOf(samples, 'keymesh_queue_oldest_job_age_seconds', { ...second })).toBeGreaterThan(0)
    expect(sumOf(samples, 'keymesh_credentials_expiring', { within: '1d' })).toBe(0)
    expect(sumOf(samples, 'keymesh_credentials_expiring', { within: '7d' })).toBe(1)
    expect(sumOf(samples, 'keymesh_notification_endpoints_failing')).toBe(0)
    expect(sumOf(samples, 'keymesh_store_up')).toBe(1)
    expect(sumOf(samples, 'keymesh_queue_up')).toBe(1)
    expect(sumOf(samples, 'process_resident_memory_bytes')).toBeGreaterThan(0)
  })

  it('counts a difference once, however often it is seen, and its repair not before it is gone', async () => {
    const { state } = mesh.broker(1)
    const ours = { account: 'default', broker: String(mesh.key(1).brokerId), kind: 'conflict' }
    state.clientUsernames.put(keyOf(APP), { enabled: true, aclProfileName: 'default', password: 'of-somebody-else' })
    const reconcile = () => mesh.context.engine.reconcilePair(mesh.pair(APP, 1), { trigger: 'on-demand' })
    await reconcile()
    await reconcile()
    // Told by what this process counted; the readings of the database may be a moment old.
    const counted = async () => {
      const samples = await scrape()
      return [
        sumOf(samples, 'keymesh_drift_detected_total', ours),
        sumOf(samples, 'keymesh_drift_repaired_total', ours),
        sumOf(samples, 'keymesh_drift_repair_duration_seconds_count', ours),
      ]
    }
    // The client username, and the queue that it would own.
    expect(await counted()).toEqual([2, 0, null])
    // Gone by somebody else's hand: that is no repair of ours.
    state.clientUsernames.remove(keyOf(APP))
    await reconcile()
    expect(await counted()).toEqual([2, 0, null])
    expect(await mesh.drift({ brokerId: mesh.key(1).brokerId, openOnly: true })).toEqual([])
  })

  it('has no name of a registration, client or secret, and only labels that are defined', async () => {
    const samples = await scrape()
    const text = JSON.stringify(samples)
    for (const secret of [APP, keyOf(APP), givenSecretOf(APP)]) expect(text).not.toContain(secret)
    const labels = new Map(
      Object.entries(METRICS).map(([name, { labels }]) => [name, new Set<string>([...labels, 'le'])]),
    )
    for (const { name, labels: given } of samples.filter((sample) => sample.name.startsWith('keymesh_'))) {
      const allowed = labels.get(name) ?? labels.get(name.replace(/_(bucket|sum|count)$/, ''))
      expect([name, Object.keys(given).filter((label) => allowed?.has(label) !== true)]).toEqual([name, []])
    }
  })
})
