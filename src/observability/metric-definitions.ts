/**
 * Every metric that this service exports, beside the ones of the Node process. `process`: counted by this process alone,
 * so that sums over replicas are right. `store`: read from the database and the queue when asked for, so that every
 * replica says the same and a sum would count it twice.
 */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly from: 'process' | 'store'
  readonly labels: readonly string[]
  /** Upper bounds of a histogram, ascending. */
  readonly buckets?: readonly number[]
}

/** Seconds, from a call on the same machine to a broker that is given up on. */
const CALLS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const
/** Seconds, from one run to a sweep of a large broker. */
const WORK = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900] as const
/** Seconds, from a repair in the next run to drift that waited for a person. */
const REPAIRS = [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 604_800] as const

const BROKER = ['account', 'broker'] as const

export const METRICS = {
  keymesh_build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say which version runs with which roles.',
    from: 'process',
    labels: ['version', 'roles'],
  },

  keymesh_reconcile_runs_total: {
    type: 'counter',
    help: 'Runs of one registration on one broker, by how they ended: in-sync, held, conflict, refused, lagging, error; superseded when another process had taken over.',
    from: 'process',
    labels: [...BROKER, 'trigger', 'outcome'],
  },
  keymesh_reconcile_duration_seconds: {
    type: 'histogram',
    help: 'Time of such a run, from its lease to its outcome, logins included.',
    from: 'process',
    labels: [...BROKER, 'trigger'],
    buckets: WORK,
  },
  keymesh_reconcile_errors_total: {
    type: 'counter',
    help: 'Such runs that ended in an error, by the code of the error.',
    from: 'process',
    labels: [...BROKER, 'code'],
  },
  keymesh_reconcile_steps_total: {
    type: 'counter',
    help: 'Steps of plans: run on the broker, or held for a window or a person.',
    from: 'process',
    labels: [...BROKER, 'outcome'],
  },
  keymesh_sweeps_total: {
    type: 'counter',
    help: 'Sweeps of a whole broker, by outcome: done, paused, resting, stopped, or error.',
    from: 'process',
    labels: [...BROKER, 'outcome'],
  },
  keymesh_sweep_duration_seconds: {
    type: 'histogram',
    help: 'Time of a sweep that was done.',
    from: 'process',
    labels: BROKER,
    buckets: WORK,
  },
  keymesh_pairs: {
    type: 'gauge',
    help: 'Registrations on a broker, by state: in-sync, lagging, held, conflict, refused, error.',
    from: 'store',
    labels: [...BROKER, 'state'],
  },
  keymesh_pairs_needing_person: {
    type: 'gauge',
    help: 'Registrations on a broker that do not heal by themselves.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_pairs_lagging: {
    type: 'gauge',
    help: 'Registrations that have not reached their generation on a broker, without those that are paused.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_pairs_oldest_lag_seconds: {
    type: 'gauge',
    help: 'How long the one that lags longest has lagged, without those that are paused; 0 when none does.',
    from: 'store',
    labels: BROKER,
  },

  keymesh_drift_detected_total: {
    type: 'counter',
    help: 'Differences that were not there before, by kind: missing, changed, unexpected, conflict, unsuitable, password.',
    from: 'process',
    labels: [...BROKER, 'kind'],
  },
  keymesh_drift_repaired_total: {
    type: 'counter',
    help: 'Differences that Keymesh has repaired.',
    from: 'process',
    labels: [...BROKER, 'kind'],
  },
  keymesh_drift_repair_duration_seconds: {
    type: 'histogram',
    help: 'Time to repair: from when the difference was found until it was gone.',
    from: 'process',
    labels: [...BROKER, 'kind'],
    buckets: REPAIRS,
  },
  keymesh_drift_open: {
    type: 'gauge',
    help: 'Differences that are not repaired.',
    from: 'store',
    labels: [...BROKER, 'kind'],
  },
  keymesh_drift_oldest_age_seconds: {
    type: 'gauge',
    help: 'Age of the oldest difference that is not repaired.',
    from: 'store',
    labels: [...BROKER, 'kind'],
  },

  keymesh_login_verdicts_total: {
    type: 'counter',
    help: 'What logins with stored credentials proved, by outcome; the reason is given for not-verified alone.',
    from: 'process',
    labels: [...BROKER, 'protocol', 'outcome', 'reason'],
  },
  keymesh_logins_rejected: {
    type: 'gauge',
    help: 'Live credentials whose last login the broker refused: rejected, disabled, or the message VPN is unknown or down.',
    from: 'store',
    labels: [...BROKER, 'protocol'],
  },
  keymesh_broker_accepts_anything: {
    type: 'gauge',
    help: 'Whether the broker accepted a wrong password when it was last tried: 1 or 0.',
    from: 'store',
    labels: [...BROKER, 'protocol'],
  },
  keymesh_login_controls_total: {
    type: 'counter',
    help: 'What logins with a wrong password came to: refused, as it should be, accepts-anything, not-verified.',
    from: 'process',
    labels: [...BROKER, 'protocol', 'outcome'],
  },
  keymesh_login_duration_seconds: {
    type: 'histogram',
    help: 'Time of one login that was tried, from the look-up of the host to the verdict.',
    from: 'process',
    labels: [...BROKER, 'protocol'],
    buckets: CALLS,
  },

  keymesh_semp_requests_total: {
    type: 'counter',
    help: 'SEMP requests by the kind of what was asked for, HTTP status (none: no whole answer) and code: ok, or that of the error.',
    from: 'process',
    labels: [...BROKER, 'method', 'kind', 'status', 'code'],
  },
  keymesh_semp_request_duration_seconds: {
    type: 'histogram',
    help: 'Time of one SEMP request.',
    from: 'process',
    labels: [...BROKER, 'method'],
    buckets: CALLS,
  },

  keymesh_broker_circuit_state: {
    type: 'gauge',
    help: 'Circuit breaker: 1 for the state that it is in: closed (works), open (rests), half-open (is tried by one run).',
    from: 'store',
    labels: [...BROKER, 'state'],
  },
  keymesh_broker_consecutive_failures: {
    type: 'gauge',
    help: 'Failures of the broker in a row; it rests from the fifth on.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_broker_rests_total: {
    type: 'counter',
    help: 'How often this process put a sick broker to rest.',
    from: 'process',
    labels: BROKER,
  },
  keymesh_broker_reachable: {
    type: 'gauge',
    help: 'Whether the broker answered when it was last asked: 1 or 0; absent while nobody knows.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_broker_paused: {
    type: 'gauge',
    help: 'Whether a person paused the broker or its account: 1 or 0.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_broker_last_sweep_timestamp_seconds: {
    type: 'gauge',
    help: 'When the last sweep of the broker ended, whatever it came to, as Unix time; 0: never.',
    from: 'store',
    labels: BROKER,
  },
  keymesh_broker_orphans: {
    type: 'gauge',
    help: 'Objects that look like ours and are not in the ledger, as the last sweep saw them.',
    from: 'store',
    labels: BROKER,
  },

  keymesh_jobs_total: {
    type: 'counter',
    help: 'Attempts of jobs, by outcome: done, again (put back without loss), retry, wait (for a broker) and stop (given up).',
    from: 'process',
    labels: ['job', 'outcome'],
  },
  keymesh_job_duration_seconds: {
    type: 'histogram',
    help: 'Time of one attempt of a job.',
    from: 'process',
    labels: ['job'],
    buckets: WORK,
  },
  keymesh_jobs_missed_total: {
    type: 'counter',
    help: 'Times that the queue did not take jobs in time; the poll finds the work.',
    from: 'process',
    labels: [],
  },
  keymesh_queue_errors_total: {
    type: 'counter',
    help: 'Errors of the connection to the queue.',
    from: 'process',
    labels: [],
  },
  keymesh_queue_jobs: {
    type: 'gauge',
    help: 'Jobs in a queue (catalogue, registrations, notifications, or the one of a broker), by state: waiting, active, delayed, failed (kept for a week).',
    from: 'store',
    labels: ['queue', ...BROKER, 'state'],
  },
  keymesh_queue_oldest_job_age_seconds: {
    type: 'gauge',
    help: 'How long the job that has waited longest could have run; 0 when none waits.',
    from: 'store',
    labels: ['queue', ...BROKER],
  },

  keymesh_credentials_expiring: {
    type: 'gauge',
    help: 'Credentials that end within 1d, 7d and 30d, each counting those of the shorter times too.',
    from: 'store',
    labels: ['account', 'within'],
  },
  keymesh_credentials_next_expiry_timestamp_seconds: {
    type: 'gauge',
    help: 'When the next credential ends, as Unix time; absent when none has an end.',
    from: 'store',
    labels: ['account'],
  },
  keymesh_api_tokens_expiring: {
    type: 'gauge',
    help: 'API tokens that end within 1d, 7d and 30d, each counting those of the shorter times too.',
    from: 'store',
    labels: ['account', 'within'],
  },
  keymesh_notification_endpoints_failing: {
    type: 'gauge',
    help: 'Endpoints of notifications that do not take what is sent to them.',
    from: 'store',
    labels: ['account'],
  },
  keymesh_remote_catalogue_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'When another service whose catalogue is followed was last read to the end, as Unix time; 0: never.',
    from: 'store',
    labels: ['account'],
  },

  keymesh_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time to answer an HTTP request, by the pattern of its route.',
    from: 'process',
    labels: ['method', 'route', 'status'],
    buckets: CALLS,
  },

  keymesh_store_up: {
    type: 'gauge',
    help: 'Whether what comes from the database could be read for this answer: 1 or 0. With 0 those metrics are absent.',
    from: 'process',
    labels: [],
  },
  keymesh_queue_up: {
    type: 'gauge',
    help: 'The same for what comes from the queue.',
    from: 'process',
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>

export type MetricName = keyof typeof METRICS
type NamesOf<Type> = { [Name in MetricName]: (typeof METRICS)[Name]['type'] extends Type ? Name : never }[MetricName]
export type CounterName = NamesOf<'counter'>
export type GaugeName = NamesOf<'gauge'>
export type HistogramName = NamesOf<'histogram'>

/** Exactly the labels that the definition names. */
export type LabelsOf<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]['labels'][number], string>>

export const metricDefinitions: readonly (MetricDefinition & { readonly name: MetricName })[] = Object.entries(
  METRICS,
).map(([name, definition]) => ({ name: name as MetricName, ...definition }))
