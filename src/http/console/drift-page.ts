import { html } from 'hono/html'
import type { DriftBucket, DriftSpan, OpenDrift } from '../../store/drift-chart.ts'
import type { DriftView } from '../../store/drift-view.ts'
import { CONSOLE } from './access.ts'
import { counted, number, pageHead, withQuery } from './components.ts'
import { bucketName, driftChart } from './drift-chart.ts'
import { timeline } from './drift-timeline.ts'
import type { Html, Page } from './page.ts'
import { brokerChoices, choices, type NamedBroker, olderLink } from './record-filters.ts'
import { driftKind } from './record-parts.ts'

export const DRIFT_PATH = `${CONSOLE}/drift`

/** What the address of the page asks for; nothing: everything. */
export interface DriftQuery {
  readonly span: DriftSpan
  readonly broker?: string | undefined
  readonly kind?: string | undefined
  readonly registration?: string | undefined
  readonly open?: '1' | undefined
  /** Begin of the bucket whose differences are listed. */
  readonly from?: number | undefined
  /** Where the list goes on. */
  readonly after?: string | undefined
}

export interface DriftPageData {
  readonly query: DriftQuery
  readonly brokers: readonly NamedBroker[]
  readonly kinds: readonly string[]
  /** Null: they are being counted. */
  readonly buckets: readonly DriftBucket[] | null
  readonly open: readonly OpenDrift[]
  readonly differences: readonly DriftView[]
  /** The cursor of the next page; null at the end. */
  readonly older: string | null
  readonly nowMs: number
}

export function driftPage(data: DriftPageData): Page {
  const { query, buckets, open, nowMs } = data
  const openCount = open.reduce((sum, { count }) => sum + count, 0)
  const standing = openCount === 0 ? 'No drift is open.' : `${counted(openCount, 'difference')} open.`
  return {
    title: 'Drift',
    section: 'drift',
    ...(query.after === undefined ? { live: standing } : {}),
    content: html`${pageHead({
      title: 'Drift',
      lede: 'What brokers had that Keymesh did not want: who found it, when, and what became of it.',
    })}
${filterForm(data)}
<section class="panel" aria-labelledby="chart-title">
<div class="panel-head"><h2 id="chart-title">Detected and repaired</h2>${spanLinks(query)}</div>
${
  buckets === null
    ? html`<p class="empty">There is much to count; the chart comes in a moment.</p>`
    : driftChart({
        span: query.span,
        buckets,
        pathOf: (bucket) => pathOf({ ...query, from: bucket.fromMs, after: undefined }),
        chosenFromMs: query.from ?? null,
      })
}
${openNow(open)}
</section>
<section aria-labelledby="timeline-title">
<h2 id="timeline-title">${timelineTitle(query)}</h2>
${timeline(data.differences, nowMs)}
${olderLink({ older: data.older, after: query.after, pathOf: (after) => pathOf({ ...query, after }) })}
</section>`,
  }
}

const pathOf = ({ span, from, ...others }: DriftQuery): string =>
  withQuery(DRIFT_PATH, {
    ...others,
    span: span === '24h' ? undefined : span,
    from: from === undefined ? undefined : String(from),
  })

function filterForm({ query, brokers, kinds }: DriftPageData): Html {
  const isFiltered = [query.broker, query.kind, query.registration, query.open].some((each) => each !== undefined)
  return html`<form class="filters" method="get" action="${DRIFT_PATH}" role="search" aria-label="Filter drift">
${query.span === '24h' ? '' : html`<input type="hidden" name="span" value="${query.span}">`}
<div><label for="broker">Broker</label>
<select id="broker" name="broker">${brokerChoices('All brokers', brokers, query.broker)}</select></div>
<div><label for="kind">Kind</label>
<select id="kind" name="kind">${choices(
    'All kinds',
    kinds.map((kind) => [kind, kind]),
    query.kind,
  )}</select></div>
<div class="wide"><label for="registration">Registration</label>
<input id="registration" name="registration" value="${query.registration ?? ''}" placeholder="Its id" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="256"></div>
<div><label for="open">Which</label>
<select id="open" name="open">${choices('All', [['1', 'Open only']], query.open)}</select></div>
<button type="submit">Filter</button>
${isFiltered ? html`<a class="button" href="${pathOf({ span: query.span })}">Clear</a>` : ''}
</form>`
}

function spanLinks(query: DriftQuery): Html {
  const link = (span: DriftSpan, name: string): Html => {
    const here = span === query.span ? html` aria-current="true"` : ''
    return html`<li><a href="${pathOf({ ...query, span, from: undefined, after: undefined })}"${here}>${name}</a></li>`
  }
  return html`<ul class="switch" aria-label="Period">${link('24h', '24 hours')}${link('30d', '30 days')}</ul>`
}

function openNow(open: readonly OpenDrift[]): Html {
  if (open.length === 0) return html`<p class="open-now">Nothing is open now.</p>`
  return html`<p class="open-now">Open now: ${open.map(({ kind, count }) => html`<span class="open-kind">${driftKind(kind)} ${number(count)}</span> `)}</p>`
}

function timelineTitle({ span, from, open }: DriftQuery): string {
  const which = open === '1' ? 'Open differences' : 'Timeline'
  if (from === undefined) return which
  return `${which}, detected ${span === '24h' ? '' : 'on '}${bucketName({ fromMs: from }, span)} UTC`
}
