import type { QueueBacklog } from '../queue/job-queue.ts'
import type { BrokerFigures, Expiring, MetricsView } from '../store/metrics-view.ts'
import type { GaugeName } from './metric-definitions.ts'
import { METRICS } from './metric-definitions.ts'
import type { Metrics, StoredMetrics } from './metrics.ts'

export interface SharedReading<Value> {
  readonly read: () => Promise<Value>
  /** How long what was read serves further callers. */
  readonly freshMs: number
  /** Who asks does not wait longer; what is under way goes on, and serves those who come later. */
  readonly patienceMs: number
}

/** What many ask for at once, or again and again, is read once. Null when it could not be read in time. */
export function sharedReading<Value>({ read, freshMs, patienceMs }: SharedReading<Value>): () => Promise<Value | null> {
  let last: { readonly value: Promise<Value | null>; readonly atMs: number } | null = null
  let underWay: Promise<Value | null> | null = null
  return async () => {
    if (last !== null && performance.now() - last.atMs < freshMs) return last.value
    underWay ??= read()
      .catch(() => null)
      .finally(() => {
        last = underWay && { value: underWay, atMs: performance.now() }
        underWay = null
      })
    return within(underWay, patienceMs)
  }
}

async function within<Value>(promise: Promise<Value | null>, patienceMs: number): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, patienceMs, null)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

const OF_QUEUE = ['keymesh_queue_jobs', 'keymesh_queue_oldest_job_age_seconds'] as const satisfies readonly GaugeName[]
const OF_STORE = Object.entries(METRICS).flatMap(([name, { from }]) =>
  from === 'store' && !OF_QUEUE.some((each) => each === name) ? [name as GaugeName] : [],
)
const DRIFT_KINDS = ['missing', 'changed', 'unexpected', 'conflict', 'unsuitable', 'password'] as const
const PAIR_STATES = ['in-sync', 'lagging', 'held', 'conflict', 'refused', 'error'] as const
const CIRCUIT_STATES = ['closed', 'open', 'half-open'] as const
const TIMES = ['1d', '7d', '30d'] as const satisfies readonly (keyof Expiring)[]

/** What the database says, as gauges. Counters of brokers begin at 0, so that the first difference is an increase. */
export function storeGauges(metrics: Metrics, read: () => Promise<MetricsView | null>): StoredMetrics {
  return async () => {
    const view = await read()
    metrics.clear(OF_STORE)
    metrics.set('keymesh_store_up', {}, view === null ? 0 : 1)
    if (view === null) return
    for (const broker of view.brokers) setBroker(metrics, broker)
    for (const { account, broker, kind, open, oldestSeconds } of view.drift) {
      metrics.set('keymesh_drift_open', { account, broker, kind }, open)
      metrics.set('keymesh_drift_oldest_age_seconds', { account, broker, kind }, oldestSeconds)
    }
    for (const { account, broker, protocol, rejected, acceptsAnything } of view.logins) {
      metrics.set('keymesh_logins_rejected', { account, broker, protocol }, rejected)
      metrics.set('keymesh_broker_accepts_anything', { account, broker, protocol }, acceptsAnything ? 1 : 0)
    }
    for (const { account, credentials, apiTokens, nextExpirySeconds, followedAtSeconds, ...more } of view.accounts) {
      metrics.set('keymesh_notification_endpoints_failing', { account }, more.failingEndpoints)
      for (const within of TIMES) {
        metrics.set('keymesh_credentials_expiring', { account, within }, credentials[within])
        metrics.set('keymesh_api_tokens_expiring', { account, within }, apiTokens[within])
      }
      if (nextExpirySeconds !== null)
        metrics.set('keymesh_credentials_next_expiry_timestamp_seconds', { account }, nextExpirySeconds)
      if (followedAtSeconds !== null)
        metrics.set('keymesh_remote_catalogue_last_success_timestamp_seconds', { account }, followedAtSeconds)
    }
  }
}

function setBroker(metrics: Metrics, figures: BrokerFigures): void {
  const { account, broker, reachable, health } = figures
  const labels = { account, broker }
  for (const state of PAIR_STATES) metrics.set('keymesh_pairs', { ...labels, state }, figures.pairs[state] ?? 0)
  for (const state of CIRCUIT_STATES)
    metrics.set('keymesh_broker_circuit_state', { ...labels, state }, state === health ? 1 : 0)
  for (const kind of DRIFT_KINDS) {
    metrics.set('keymesh_drift_open', { ...labels, kind }, 0)
    metrics.count('keymesh_drift_detected_total', { ...labels, kind }, 0)
    metrics.count('keymesh_drift_repaired_total', { ...labels, kind }, 0)
  }
  metrics.count('keymesh_broker_rests_total', labels, 0)
  metrics.set('keymesh_pairs_needing_person', labels, figures.needPerson)
  metrics.set('keymesh_pairs_lagging', labels, figures.lagging)
  metrics.set('keymesh_pairs_oldest_lag_seconds', labels, Math.max(0, figures.oldestLagSeconds ?? 0))
  metrics.set('keymesh_broker_consecutive_failures', labels, figures.failures)
  metrics.set('keymesh_broker_paused', labels, figures.paused ? 1 : 0)
  metrics.set('keymesh_broker_last_sweep_timestamp_seconds', labels, figures.sweptAtSeconds ?? 0)
  metrics.set('keymesh_broker_orphans', labels, figures.orphans)
  if (reachable !== null) metrics.set('keymesh_broker_reachable', labels, reachable ? 1 : 0)
}

/** A queue as it is labelled: by its name when all brokers share it, else `broker` with the broker. */
export interface NamedQueue {
  readonly name: string
  readonly label: 'catalogue' | 'registrations' | 'notifications' | 'broker'
  /** Empty for a queue that all brokers share. */
  readonly account: string
  readonly broker: string
}

export interface QueueReading {
  readonly queues: readonly NamedQueue[]
  readonly backlog: readonly QueueBacklog[]
}

export function queueGauges(
  metrics: Metrics,
  read: () => Promise<QueueReading | null>,
  now: () => number,
): StoredMetrics {
  return async () => {
    const reading = await read()
    metrics.clear(OF_QUEUE)
    metrics.set('keymesh_queue_up', {}, reading === null ? 0 : 1)
    if (reading === null) return
    const found = new Map(reading.backlog.map((backlog) => [backlog.queue, backlog]))
    for (const { name, label: queue, account, broker } of reading.queues) {
      const labels = { queue, account, broker }
      const { waiting, active, delayed, failed, waitingSinceMs } = found.get(name) ?? EMPTY
      for (const [state, count] of Object.entries({ waiting, active, delayed, failed })) {
        metrics.set('keymesh_queue_jobs', { ...labels, state }, count)
      }
      const age = waitingSinceMs === null ? 0 : Math.max(0, (now() - waitingSinceMs) / 1000)
      metrics.set('keymesh_queue_oldest_job_age_seconds', labels, age)
    }
  }
}

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0, waitingSinceMs: null }
