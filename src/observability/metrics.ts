import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricDefinition,
  metricDefinitions,
} from './metric-definitions.ts'

/** Reads into gauges what is not counted here, before each answer. Does not throw. */
export type StoredMetrics = () => Promise<void>

/** The metrics of one process, in a registry of its own. */
export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #registry = new Registry()
  readonly #counters = new Map<string, Counter>()
  readonly #gauges = new Map<string, Gauge>()
  readonly #histograms = new Map<string, Histogram>()
  readonly #stored = new Map<string, StoredMetrics>()
  #watchesProcess = false

  constructor() {
    for (const definition of metricDefinitions) this.#add(definition)
  }

  #add({ name, type, help, labels, buckets }: MetricDefinition & { readonly name: string }): void {
    const common = { name, help, labelNames: [...labels], registers: [this.#registry] }
    switch (type) {
      case 'counter':
        this.#counters.set(name, new Counter(common))
        break
      case 'gauge':
        this.#gauges.set(name, new Gauge(common))
        break
      case 'histogram':
        this.#histograms.set(name, new Histogram({ ...common, ...(buckets && { buckets: [...buckets] }) }))
        break
      default: {
        const unreachable: never = type
        throw new TypeError(`unknown type of metric: ${String(unreachable)}`)
      }
    }
  }

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.#counters.get(name)?.inc(labels, by)
  }

  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void {
    // A clock that was set back makes no negative time.
    this.#histograms.get(name)?.observe(labels, Math.max(0, seconds))
  }

  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.#gauges.get(name)?.set(labels, value)
  }

  /** Forgets what was set: brokers go. */
  clear(names: readonly GaugeName[]): void {
    for (const name of names) this.#gauges.get(name)?.reset()
  }

  /** Called before each answer; the last one of a source counts. */
  read(source: 'store' | 'queue', stored: StoredMetrics): void {
    this.#stored.set(source, stored)
  }

  /** Memory, processor, event loop and so on of this process, under their usual names; once. */
  watchProcess(): void {
    if (this.#watchesProcess) return
    this.#watchesProcess = true
    collectDefaultMetrics({ register: this.#registry })
  }

  /** In the text format of Prometheus; with an account, without the series of all others. */
  async render({ account }: { readonly account?: string } = {}): Promise<string> {
    await Promise.all([...this.#stored.values()].map((read) => read()))
    const text = await this.#registry.metrics()
    return account === undefined ? text : ofAccount(text, account)
  }
}

const ACCOUNT_LABEL = /[{,]account="((?:[^"\\]|\\.)*)"/

/** Samples are one line each, and quotes inside of a value are escaped, so no value can pass for the label. */
function ofAccount(text: string, account: string): string {
  const escaped = account.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
  return text
    .split('\n')
    .filter((line) => {
      const found = line.startsWith('#') ? undefined : ACCOUNT_LABEL.exec(line)?.[1]
      return found === undefined || found === '' || found === escaped
    })
    .join('\n')
}
