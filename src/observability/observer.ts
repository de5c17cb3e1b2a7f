import type { Logger } from 'pino'
import type { Protocol } from '../domain/catalogue.ts'
import { codeOf, fateOf } from '../domain/errors.ts'
import type { NegativeControl, Verdict } from '../domain/verdict.ts'
import type { FinishedRun, Pair, ReconcileStore, RunTrigger } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { currentActivity, withActivity } from './activity.ts'
import type { LogEvent } from './log-events.ts'
import type { Metrics } from './metrics.ts'
import type { Tracing } from './tracing.ts'

export interface ObserverOptions {
  readonly metrics: Metrics
  readonly tracing: Tracing
  readonly log: Logger
}

interface Run {
  readonly kind: 'reconcile' | 'sweep'
  readonly broker: BrokerKey
  readonly trigger: RunTrigger
}

/** A command says itself what it did, to whoever typed it. */
function levelOfRuns(): 'info' | 'debug' {
  const { jobId, requestId } = currentActivity()
  return jobId === undefined && requestId === undefined ? 'debug' : 'info'
}

/** Codes of SEMP that are answers like others: what was asked for is not there, or there already. */
const ANSWERS: ReadonlySet<string> = new Set(['NOT_FOUND', 'ALREADY_EXISTS', 'SESSION_ENDED'])

interface EndedSweep {
  readonly broker: BrokerKey
  readonly trigger: RunTrigger
  readonly outcome: string
  /** Null when it did not begin. */
  readonly runId: string | null
}

interface SempRequest {
  readonly method: string
  readonly kind: string
  readonly status: number | null
  readonly code: string | null
  readonly seconds: number
}

interface DriftChange {
  readonly accountId: string
  readonly brokerId: string
  readonly kind: string
  readonly change: 'detected' | 'repaired'
  readonly openSeconds: number
}

interface Job {
  readonly id: string
  readonly name: string
  readonly data: unknown
  readonly attempt: number
}

interface Request {
  readonly id: string
  readonly method: string
  /** The pattern, not the address. */
  readonly route: string
  readonly traceparent: string | undefined
}

export interface RequestWatch {
  /** Runs what follows as part of the request. */
  enter(next: () => void): void
  answered(status: number, seconds: number): void
}

class ServerError extends Error {}

/** The payload is not parsed yet; what is not of the form is no trace. */
function traceOf(data: unknown): string | undefined {
  const trace = typeof data === 'object' && data !== null && 'trace' in data ? data.trace : undefined
  return typeof trace === 'string' ? trace : undefined
}

/** Who waits for a broker or was told to wait has not failed. */
const NO_FAILURES: ReadonlyMap<string, string> = new Map([
  ['PAUSED', 'paused'],
  ['BROKER_RESTING', 'resting'],
  ['ABORTED', 'stopped'],
])

const labelsOf = ({ accountId, brokerId }: { readonly accountId: string; readonly brokerId: string }) => ({
  account: accountId,
  broker: brokerId,
})

/** Counts, logs and traces what the shell does with brokers. The core knows nothing of it. */
export class Observer {
  readonly #metrics: Metrics
  readonly #tracing: Tracing
  readonly #log: Logger

  constructor({ metrics, tracing, log }: ObserverOptions) {
    this.#metrics = metrics
    this.#tracing = tracing
    this.#log = log
  }

  /** Around a run of the engine: a span, and for a sweep its outcome. */
  readonly run = async <Result>({ kind, broker, trigger }: Run, work: () => Promise<Result>): Promise<Result> => {
    const startedMs = performance.now()
    const attributes = { 'keymesh.broker': broker.brokerId, 'keymesh.trigger': trigger }
    const activity = { run: { id: null as string | null } }
    return withActivity(activity, () =>
      this.#tracing.span({ name: kind, kind: 'internal', attributes }, async (span) => {
        let outcome = 'done'
        try {
          return await work()
        } catch (error) {
          outcome = NO_FAILURES.get(codeOf(error)) ?? 'error'
          throw error
        } finally {
          const { id } = activity.run
          span.set({ 'keymesh.outcome': outcome, ...(id === null ? {} : { 'keymesh.run.id': id }) })
          if (kind === 'sweep') this.#sweepEnded({ broker, trigger, outcome, runId: id }, performance.now() - startedMs)
        }
      }),
    )
  }

  #sweepEnded({ broker, trigger, outcome, runId }: EndedSweep, durationMs: number): void {
    const labels = labelsOf(broker)
    this.#metrics.count('keymesh_sweeps_total', { ...labels, outcome })
    if (outcome === 'done') this.#metrics.observe('keymesh_sweep_duration_seconds', labels, durationMs / 1000)
    const fields = { ...labels, ...(runId !== null && { runId }), trigger, outcome, durationMs: Math.round(durationMs) }
    this.#log[levelOfRuns()]({ event: 'sweep.finished' satisfies LogEvent, ...fields }, 'A sweep ended')
  }

  /** The store, with every outcome of a run counted as it is recorded. */
  store(store: ReconcileStore): ReconcileStore {
    return {
      ...store,
      finish: async (lease, run) => {
        const isKept = await store.finish(lease, run)
        this.#runFinished(lease.pair, run, isKept)
        return isKept
      },
    }
  }

  #runFinished(pair: Pair, run: FinishedRun, isKept: boolean): void {
    const labels = labelsOf(pair)
    const { trigger, error, stepsRun, stepsHeld, drift } = run
    const outcome = isKept ? run.state : 'superseded'
    const seconds = (run.finishedAtMs - run.startedAtMs) / 1000
    this.#metrics.count('keymesh_reconcile_runs_total', { ...labels, trigger, outcome })
    this.#metrics.observe('keymesh_reconcile_duration_seconds', { ...labels, trigger }, seconds)
    if (error !== null) this.#metrics.count('keymesh_reconcile_errors_total', { ...labels, code: error.code })
    this.#metrics.count('keymesh_reconcile_steps_total', { ...labels, outcome: 'run' }, stepsRun)
    this.#metrics.count('keymesh_reconcile_steps_total', { ...labels, outcome: 'held' }, stepsHeld)
    const isWorthALine = stepsRun + stepsHeld + drift.length > 0 || error !== null || !isKept
    this.#log[isWorthALine ? levelOfRuns() : 'debug'](
      {
        event: 'run.finished' satisfies LogEvent,
        ...labels,
        registration: pair.registrationId,
        runId: run.runId,
        trigger,
        outcome,
        steps: stepsRun,
        held: stepsHeld,
        drift: drift.length,
        durationMs: Math.round(seconds * 1000),
        ...(error === null ? {} : { code: error.code }),
      },
      'A run ended',
    )
  }

  readonly drift = ({ kind, change, openSeconds, ...broker }: DriftChange): void => {
    const labels = { ...labelsOf(broker), kind }
    if (change === 'detected') {
      this.#metrics.count('keymesh_drift_detected_total', labels)
      return
    }
    this.#metrics.count('keymesh_drift_repaired_total', labels)
    this.#metrics.observe('keymesh_drift_repair_duration_seconds', labels, openSeconds)
  }

  readonly semp = (broker: BrokerKey, { method, kind, status, code, seconds }: SempRequest): void => {
    const labels = labelsOf(broker)
    const answered = { status: status === null ? 'none' : String(status), code: code ?? 'ok' }
    this.#metrics.count('keymesh_semp_requests_total', { ...labels, method, kind, ...answered })
    this.#metrics.observe('keymesh_semp_request_duration_seconds', { ...labels, method }, seconds)
    const attributes = {
      'keymesh.broker': broker.brokerId,
      'http.request.method': method,
      'keymesh.semp.kind': kind,
      ...(status === null ? {} : { 'http.response.status_code': status }),
      ...(code === null ? {} : { 'keymesh.semp.code': code }),
    }
    const failure = code === null || ANSWERS.has(code) ? null : code
    this.#tracing.record({ name: `semp ${method} ${kind}`, kind: 'client', attributes }, seconds, failure)
  }

  readonly rested = (broker: BrokerKey, failures: number): void => {
    this.#metrics.count('keymesh_broker_rests_total', labelsOf(broker))
    const fields = { account: broker.accountId, broker: broker.brokerId, failures }
    this.#log.warn({ event: 'broker.resting' satisfies LogEvent, ...fields }, 'A sick broker rests')
  }

  /** Around each attempt of a job. */
  readonly job = <Outcome extends { readonly status: string }>(
    { id, name, data, attempt }: Job,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> => {
    const startedMs = performance.now()
    const attributes = { 'keymesh.job': name, 'keymesh.job.id': id, 'keymesh.job.attempt': attempt }
    const ended = (outcome: string): void => {
      this.#metrics.count('keymesh_jobs_total', { job: name, outcome })
      this.#metrics.observe('keymesh_job_duration_seconds', { job: name }, (performance.now() - startedMs) / 1000)
    }
    return withActivity({ jobId: id }, () =>
      this.#tracing.span({ name: `job ${name}`, kind: 'consumer', attributes, parent: traceOf(data) }, async (span) => {
        try {
          const outcome = await work()
          span.set({ 'keymesh.outcome': outcome.status })
          ended(outcome.status)
          return outcome
        } catch (error) {
          ended(fateOf(error))
          throw error
        }
      }),
    )
  }

  /** Jobs go out in a span of whoever asks for them. */
  enqueuing<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#tracing.span({ name: `enqueue ${name}`, kind: 'producer' }, work)
  }

  readonly queueError = (): void => this.#metrics.count('keymesh_queue_errors_total', {})
  readonly jobsMissed = (): void => this.#metrics.count('keymesh_jobs_missed_total', {})

  /** For the HTTP server: one watch for each request. */
  readonly request = ({ id, method, route, traceparent }: Request): RequestWatch => {
    const attributes = { 'http.request.method': method, 'http.route': route }
    const span = this.#tracing.begin({ name: `${method} ${route}`, kind: 'server', attributes, parent: traceparent })
    return {
      enter: (next) => withActivity({ requestId: id, ...span.activity }, next),
      answered: (status, seconds) => {
        const labels = { method, route, status: String(status) }
        this.#metrics.observe('keymesh_http_request_duration_seconds', labels, seconds)
        span.set({ 'http.response.status_code': status })
        span.end(status >= 500 ? new ServerError() : undefined)
      },
    }
  }

  /** For `BrokerLogins`. */
  readonly logins = {
    probe: (broker: BrokerKey, protocol: Protocol, work: () => Promise<Verdict>): Promise<Verdict> => {
      const startedMs = performance.now()
      const attributes = { 'keymesh.broker': broker.brokerId, 'keymesh.protocol': protocol }
      return this.#tracing.span({ name: `login ${protocol}`, kind: 'client', attributes }, async (span) => {
        const verdict = await work()
        span.set({ 'keymesh.outcome': verdict.outcome })
        const seconds = (performance.now() - startedMs) / 1000
        this.#metrics.observe('keymesh_login_duration_seconds', { ...labelsOf(broker), protocol }, seconds)
        return verdict
      })
    },
    verdict: (broker: BrokerKey, protocol: Protocol, verdict: Verdict): void => {
      const { outcome } = verdict
      const reason = verdict.outcome === 'not-verified' ? verdict.reason : ''
      this.#metrics.count('keymesh_login_verdicts_total', { ...labelsOf(broker), protocol, outcome, reason })
    },
    control: (broker: BrokerKey, protocol: Protocol, outcome: NegativeControl): void => {
      this.#metrics.count('keymesh_login_controls_total', { ...labelsOf(broker), protocol, outcome })
    },
  }
}
