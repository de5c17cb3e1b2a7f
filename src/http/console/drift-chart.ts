import { html } from 'hono/html'
import type { DriftBucket, DriftSpan } from '../../store/drift-chart.ts'
import { counted, number, table } from './components.ts'
import type { Html } from './page.ts'

export interface DriftChart {
  readonly span: DriftSpan
  /** The oldest first. */
  readonly buckets: readonly DriftBucket[]
  /** The list of what was detected in a bucket. */
  readonly pathOf: (bucket: DriftBucket) => string
  /** The bucket whose differences are listed now. */
  readonly chosenFromMs: number | null
}

const BUCKET_WIDTH = 10
const BAR_WIDTH = 7
/** Of each half: detected upwards, repaired downwards, so that the two are told apart without their colours. */
const HALF = 100
const LEAST_BAR = 3

/** Bars of what was detected and repaired, and the same as a table. */
export function driftChart(chart: DriftChart): Html {
  const { span, buckets } = chart
  const most = scaleOf(buckets)
  const width = buckets.length * BUCKET_WIDTH
  return html`<figure class="chart" aria-labelledby="drift-chart-summary">
<figcaption id="drift-chart-summary">${summary(chart)}</figcaption>
<div class="chart-plot" aria-hidden="true">
<span class="chart-scale">${number(most)}</span>
<svg viewBox="0 0 ${width} ${2 * HALF}" preserveAspectRatio="none" focusable="false">
<path class="chart-grid" d="M0 1H${width}M0 ${HALF / 2}H${width}M0 ${HALF * 1.5}H${width}M0 ${2 * HALF - 1}H${width}"/>
${buckets.map((bucket, index) => bars(bucket, index, most, chart))}
<path class="chart-baseline" d="M0 ${HALF}H${width}"/>
</svg>
<span class="chart-scale below">${number(most)}</span>
</div>
<div class="chart-axis" aria-hidden="true">${axis(buckets, span).map((label) => html`<span>${label}</span>`)}</div>
<ul class="legend" aria-hidden="true"><li class="is-detected">Detected, upwards</li><li class="is-repaired">Repaired or gone, downwards</li></ul>
<details id="drift-chart-table"><summary>The same as a table</summary>
${asTable(chart)}
</details>
</figure>`
}

function bars(bucket: DriftBucket, index: number, most: number, { span, pathOf, chosenFromMs }: DriftChart): Html {
  const { fromMs, detected, repaired } = bucket
  const x = index * BUCKET_WIDTH
  const inset = x + (BUCKET_WIDTH - BAR_WIDTH) / 2
  const up = heightOf(detected, most)
  const down = heightOf(repaired, most)
  // The table has the same links for the keyboard.
  return html`<a href="${pathOf(bucket)}" tabindex="-1" class="${fromMs === chosenFromMs ? 'bucket is-chosen' : 'bucket'}"><title>${bucketName(bucket, span)}: ${describe(bucket)}</title><rect class="bucket-ground" x="${x}" y="0" width="${BUCKET_WIDTH}" height="${2 * HALF}"/>${
    up === 0 ? '' : html`<rect class="bar-detected" x="${inset}" y="${HALF - up}" width="${BAR_WIDTH}" height="${up}"/>`
  }${down === 0 ? '' : html`<rect class="bar-repaired" x="${inset}" y="${HALF}" width="${BAR_WIDTH}" height="${down}"/>`}</a>
`
}

const heightOf = (count: number, most: number): number =>
  count === 0 ? 0 : Math.max(LEAST_BAR, Math.round((count / most) * (HALF - 1)))

/** The least of 1, 2, 5, 10, 20, 50, … that no bar is above. */
export function scaleOf(buckets: readonly DriftBucket[]): number {
  const highest = Math.max(1, ...buckets.flatMap(({ detected, repaired }) => [detected, repaired]))
  const power = 10 ** Math.floor(Math.log10(highest))
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= highest) ?? highest
}

function summary({ span, buckets }: DriftChart): Html {
  const detected = buckets.reduce((sum, bucket) => sum + bucket.detected, 0)
  const repaired = buckets.reduce((sum, bucket) => sum + bucket.repaired, 0)
  const highest = buckets.toSorted((a, b) => b.detected - a.detected)[0]
  const period = span === '24h' ? 'In the last 24 hours' : 'In the last 30 days'
  if (highest === undefined || detected + repaired === 0) return html`${period} nothing drifted.`
  const peak = highest.detected === 0 ? '' : `, most of them (${number(highest.detected)}) ${peakName(highest, span)}`
  return html`${period} <strong>${number(detected)}</strong> ${detected === 1 ? 'difference was' : 'differences were'} detected${peak}; <strong>${number(repaired)}</strong> ${repaired === 1 ? 'was' : 'were'} repaired or gone.`
}

const describe = ({ detected, repaired }: DriftBucket): string =>
  `${number(detected)} detected, ${number(repaired)} repaired or gone`

const timeOf = (ms: number): string => new Date(ms).toISOString().slice(11, 16)
const dayOf = (ms: number): string =>
  new Date(ms).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
const HOUR_MS = 3_600_000

/** `14:00 to 15:00` or `9 Mar`; all in UTC. */
export const bucketName = ({ fromMs }: Pick<DriftBucket, 'fromMs'>, span: DriftSpan): string =>
  span === '24h' ? `${dayOf(fromMs)}, ${timeOf(fromMs)} to ${timeOf(fromMs + HOUR_MS)}` : dayOf(fromMs)

const peakName = (bucket: DriftBucket, span: DriftSpan): string =>
  span === '24h'
    ? `between ${timeOf(bucket.fromMs)} and ${timeOf(bucket.fromMs + HOUR_MS)} UTC`
    : `on ${dayOf(bucket.fromMs)}`

/** At the beginning of every sixth hour, every fifth day. */
function axis(buckets: readonly DriftBucket[], span: DriftSpan): readonly string[] {
  const every = span === '24h' ? 6 : 5
  return buckets
    .filter((_, index) => index % every === 0)
    .map(({ fromMs }) => (span === '24h' ? timeOf(fromMs) : dayOf(fromMs)))
}

/** Buckets with nothing in them are left out: the table is read, not looked at. */
function asTable({ span, buckets, pathOf }: DriftChart): Html {
  const busy = buckets.filter(({ detected, repaired }) => detected + repaired > 0).toReversed()
  return table({
    caption: span === '24h' ? 'Drift by the hour, the newest first' : 'Drift by the day, the newest first',
    columns: [
      { name: span === '24h' ? 'Hour (UTC)' : 'Day (UTC)' },
      { name: 'Detected', numeric: true },
      { name: 'Repaired or gone', numeric: true },
    ],
    rows: busy.map((bucket) => ({
      id: `bucket-${bucket.fromMs}`,
      cells: [
        html`<a href="${pathOf(bucket)}">${bucketName(bucket, span)}</a>`,
        number(bucket.detected),
        number(bucket.repaired),
      ],
    })),
    empty: `Nothing was detected or repaired in ${counted(buckets.length, span === '24h' ? 'hour' : 'day')}.`,
  })
}
