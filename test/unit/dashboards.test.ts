import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { NEGATIVE_CONTROLS, VERDICT_OUTCOMES } from '../../src/domain/verdict.ts'
import { METRICS, type MetricDefinition } from '../../src/observability/metric-definitions.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import { parseMetrics } from '../helpers/metrics-text.ts'
import { namesOf } from '../helpers/prom-query.ts'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

const alertSchema = z.strictObject({
  alert: z.string().regex(/^Keymesh[A-Za-z]+$/),
  expr: z.string(),
  for: z.string().regex(/^\d+[smhd]$/),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string().min(20), runbook_url: z.string() }),
})
const alertFile = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(alertSchema) })),
})
const alerts = alertFile.parse(parse(read('deploy/prometheus/alerts.yaml'))).groups.flatMap(({ rules }) => rules)

const panelSchema = z.looseObject({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
  targets: z
    .array(z.looseObject({ refId: z.string(), expr: z.string(), legendFormat: z.string().optional() }))
    .default([]),
})
const dashboardSchema = z.looseObject({
  uid: z.literal('keymesh'),
  panels: z.array(panelSchema),
  templating: z.object({ list: z.array(z.looseObject({ name: z.string(), query: z.unknown() })) }),
})
const dashboard = dashboardSchema.parse(JSON.parse(read('deploy/grafana/keymesh.json')))

const variables = dashboard.templating.list.flatMap(({ name, query }) => {
  const text = z.object({ query: z.string() }).safeParse(query)
  const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(text.data?.query ?? '') ?? []
  return selector === undefined || label === undefined
    ? []
    : [{ title: `variable ${name}`, expr: `max by (${label}) (${selector})` }]
})

const queries = [
  ...alerts.map(({ alert, expr }) => ({ title: alert, expr })),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr }))),
  ...variables,
]

/** Labels of each sample name that Prometheus can have. */
const labelsOfSample = new Map<string, readonly string[]>()
/** That every target has, whatever it exports. */
const OF_TARGETS = ['instance', 'job']
beforeAll(async () => {
  for (const [name, { type, labels }] of Object.entries(METRICS)) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes) labelsOfSample.set(name + suffix, suffix === '_bucket' ? [...labels, 'le'] : labels)
  }
  const metrics = new Metrics()
  metrics.watchProcess()
  for (const { name, labels } of parseMetrics(await metrics.render())) {
    if (/^(?:process|nodejs)_/.test(name)) labelsOfSample.set(name, Object.keys(labels))
  }
})

const DRIFT = ['missing', 'changed', 'unexpected', 'conflict', 'unsuitable', 'password']
/** Values of labels that have few. */
const VALUES: Readonly<Partial<Record<keyof typeof METRICS, Readonly<Record<string, readonly string[]>>>>> = {
  keymesh_pairs: { state: ['in-sync', 'lagging', 'held', 'conflict', 'refused', 'error'] },
  keymesh_reconcile_runs_total: {
    outcome: ['in-sync', 'lagging', 'held', 'conflict', 'refused', 'error', 'superseded'],
  },
  keymesh_broker_circuit_state: { state: ['closed', 'open', 'half-open'] },
  keymesh_queue_jobs: { state: ['waiting', 'active', 'delayed', 'failed'] },
  keymesh_drift_detected_total: { kind: DRIFT },
  keymesh_drift_repaired_total: { kind: DRIFT },
  keymesh_credentials_expiring: { within: ['1d', '7d', '30d'] },
  keymesh_api_tokens_expiring: { within: ['1d', '7d', '30d'] },
  keymesh_login_verdicts_total: { outcome: VERDICT_OUTCOMES },
  keymesh_login_controls_total: { outcome: NEGATIVE_CONTROLS },
  keymesh_jobs_total: { outcome: ['done', 'again', 'retry', 'wait', 'stop'] },
}

describe.each(queries)('the query of $title: $expr', ({ expr }) => {
  const { metrics, groupings } = namesOf(expr)

  it('names metrics and labels that exist', () => {
    expect(metrics.length).toBeGreaterThan(0)
    for (const { name, matchers } of metrics) {
      const labels = labelsOfSample.get(name)
      expect([name, labels === undefined ? 'does not exist' : 'exists']).toEqual([name, 'exists'])
      expect([name, matchers.filter(({ label }) => labels?.includes(label) !== true)]).toEqual([name, []])
      for (const { label, value } of matchers) {
        const values = VALUES[name as keyof typeof METRICS]?.[label]
        const unknown = value.split('|').filter((each) => values?.includes(each) === false && !each.startsWith('$'))
        expect([name, label, unknown]).toEqual([name, label, []])
      }
    }
    for (const { labels, of } of groupings) {
      for (const name of of) {
        const known = [...(labelsOfSample.get(name) ?? []), ...OF_TARGETS]
        const isJoined = expr.includes('group_left')
        expect([name, isJoined ? [] : labels.filter((label) => !known.includes(label))]).toEqual([name, []])
      }
      const all = of.flatMap((name) => [...(labelsOfSample.get(name) ?? []), ...OF_TARGETS])
      expect(labels.filter((label) => !all.includes(label))).toEqual([])
    }
  })

  it('adds up counters and takes the maximum of what every process says', () => {
    const definitions: Readonly<Record<string, MetricDefinition>> = METRICS
    for (const { name } of metrics) {
      const definition = definitions[name] ?? definitions[name.replace(/_(?:bucket|sum|count)$/, '')]
      if (definition?.from === 'store') {
        expect(expr).toMatch(new RegExp(`(?:max|min)(?: by \\([^)]*\\))? ?\\(${name}`))
      } else if (definition !== undefined && definition.type !== 'gauge') {
        expect(expr).toMatch(new RegExp(`(?:rate|increase)\\(${name}`))
      }
    }
  })
})

describe('the alerts', () => {
  const operations = read('docs/operations.md')

  it.each(alerts)('$alert have a section in the document that says what to do', ({ alert, annotations }) => {
    expect(annotations.runbook_url).toBe(`docs/operations.md#${alert.toLowerCase()}`)
    const section = operations.split(/^### /m).find((text) => text.startsWith(`${alert}\n`))
    for (const part of ['**Means:**', '**Look at:**', '**Do:**']) expect(section ?? '').toContain(part)
  })

  it('are the only ones that have one', () => {
    const sections = [...operations.matchAll(/^### (Keymesh\w+)$/gm)].map(([, name]) => name)
    expect(sections).toEqual(alerts.map(({ alert }) => alert))
  })

  it('show only labels that their query leaves', () => {
    for (const { alert, expr, annotations } of alerts) {
      const shown = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label)
      const left = namesOf(expr).groupings.flatMap(({ labels }) => labels)
      expect([alert, shown.filter((label) => !left.includes(label))]).toEqual([alert, []])
    }
  })
})

describe('the dashboard', () => {
  it('shows labels in legends that their query leaves', () => {
    for (const { title, targets } of dashboard.panels) {
      for (const { expr, legendFormat = '' } of targets) {
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
        const left = [...namesOf(expr).groupings.flatMap(({ labels }) => labels), ...OF_TARGETS]
        expect([title, shown.filter((label) => !left.includes(label))]).toEqual([title, []])
      }
    }
  })

  it('has panels that do not cover each other, in rows', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
    expect(rows).toEqual(['Overview', 'Reconcile', 'Drift', 'Brokers', 'Logins', 'Queue', 'API and processes'])
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
  })

  it('shows every metric that is exported', () => {
    const shown = queries.flatMap(({ expr }) => namesOf(expr).metrics.map(({ name }) => name))
    const isShown = (name: string) =>
      shown.some((each) => each.replace(/_(?:bucket|sum|count)$/, '') === name || each === name)
    expect(Object.keys(METRICS).filter((name) => !isShown(name))).toEqual([])
  })
})
