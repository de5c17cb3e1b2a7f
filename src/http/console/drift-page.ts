import { html } from 'hono/html'
import type { DriftBucket, DriftSpan, OpenDrift } from '../../store/drift-chart.ts'
import type { DriftView } from '../../store/drift-view.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { counted, facts, number, pageHead, when, withQuery } from './components.ts'
import { bucketName, driftChart } from './drift-chart.ts'
import type { Html, Page } from './page.ts'
import { choices, type NamedBroker, olderLink } from './record-filters.ts'
import {
  brokerLink,
  comparison,
  dayName,
  driftKind,
  driftOutcome,
  driftPath,
  inShort,
  kindWords,
  moment,
  objectName,
  reasonSentence,
  registrationLink,
  runPath,
} from './record-parts.ts'

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
<select id="broker" name="broker">${choices(
    'All brokers',
    brokers.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`]),
    query.broker,
  )}</select></div>
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

/** By day, the newest first; each entry opens to what was before and after. */
export function timeline(differences: readonly DriftView[], nowMs: number): Html {
  if (differences.length === 0) return html`<p class="empty">No difference is on record here.</p>`
  const days = byDay(differences)
  return html`<div class="timeline">${[...days].map(
    ([day, entries]) => html`<h3>${day}</h3>
<ol>
${entries.map((entry) => timelineEntry(entry, nowMs))}
</ol>
`,
  )}</div>`
}

function byDay(differences: readonly DriftView[]): ReadonlyMap<string, readonly DriftView[]> {
  const days = new Map<string, DriftView[]>()
  for (const difference of differences) {
    const day = dayName(difference.detectedAtMs)
    days.set(day, [...(days.get(day) ?? []), difference])
  }
  return days
}

function timelineEntry(difference: DriftView, nowMs: number): Html {
  const { id, brokerId, registrationId, kind, detectedAtMs } = difference
  const iso = new Date(detectedAtMs).toISOString()
  return html`<li id="drift-${id}" class="entry">
<details id="drift-${id}-more">
<summary><time datetime="${iso}">${iso.slice(11, 19)}</time>
<span class="entry-what">${driftKind(kind)} <span class="entry-object">${objectName(difference)}</span></span>
<span class="entry-short">${inShort(difference)}</span>
<span class="entry-outcome">${driftOutcome(difference)}</span></summary>
<div class="entry-more">
<p>${reasonSentence(difference.reason)} ${whatHappened(difference, nowMs)}</p>
${comparison(difference)}
</div>
</details>
<p class="entry-where">on ${brokerLink(brokerId)} <span aria-hidden="true">·</span> ${registrationLink(registrationId)} <span aria-hidden="true">·</span> <a href="${driftPath(id)}" aria-label="Details of the difference ${id}: ${kindWords(difference.objectKind)} ${difference.objectName}">details</a></p>
</li>
`
}

function whatHappened({ action, lastSeenAtMs, repairedAtMs, repairedByRunId }: DriftView, nowMs: number): Html {
  if (repairedAtMs !== null) {
    const what = action === 'repaired' ? 'Repaired' : 'No longer there'
    const run = repairedByRunId === null ? '' : html` in <a href="${runPath(repairedByRunId)}">this run</a>`
    return html`${what} ${when(repairedAtMs, nowMs)}${run}.`
  }
  switch (action) {
    case 'held':
      return html`The repair is held back by the broker’s policy; last seen ${when(lastSeenAtMs, nowMs)}.`
    case 'failed':
      return html`The repair failed; last seen ${when(lastSeenAtMs, nowMs)}.`
    default:
      return html`It is reported and left as it is; last seen ${when(lastSeenAtMs, nowMs)}.`
  }
}

export interface DifferencePageData {
  readonly difference: DriftView
  readonly nowMs: number
  readonly isAdministrator: boolean
  /** Why nothing can be done on the broker now; null: something can. */
  readonly offBecause: string | null
}

/** Conflicts that end when a person says that the object is ours. */
export const ADOPTABLE: ReadonlySet<string> = new Set(['foreign-username', 'foreign-object'])

/** One difference with all that is known of it. */
export function differencePage({ difference, nowMs, isAdministrator, offBecause }: DifferencePageData): Page {
  const { id, brokerId, registrationId, objectKind, kind, reason, runId, repairedByRunId } = difference
  const off = forAdministrators(isAdministrator) ?? offBecause
  const isOpen = difference.repairedAtMs === null
  const values = { broker: brokerId, ...(registrationId === null ? {} : { registration: registrationId }) }
  const whom = registrationId === null ? `broker ${brokerId}` : `registration ${registrationId} on broker ${brokerId}`
  return {
    title: `Difference ${id}`,
    section: 'drift',
    live: isOpen ? 'This difference is open.' : 'This difference is settled.',
    content: html`${pageHead({
      title: `${kindWords(objectKind)} ${difference.objectName}`,
      above: [{ name: 'Drift', path: DRIFT_PATH }],
      beside: html`${driftKind(kind)} ${driftOutcome(difference)}`,
      lede: html`${reasonSentence(reason)} ${whatHappened(difference, nowMs)}`,
      actions: html`<a class="button" href="${withQuery(`${CONSOLE}/plan`, values)}">Plan</a>${actionButton({
        id: 'reconcile',
        label: 'Reconcile now',
        path: `${CONSOLE}/plan/reconcile`,
        values: { ...values, back: driftPath(id) },
        asks: {
          question: `Reconcile ${whom} now?`,
          explanation:
            'Keymesh reads the broker and writes what differs. What would drop live clients is held back unless the broker’s policy lets it run.',
        },
        offBecause: isOpen ? off : 'It is settled.',
      })}${
        ADOPTABLE.has(reason)
          ? actionButton({
              id: 'adopt',
              label: 'Adopt',
              look: 'danger',
              path: `${driftPath(id)}/adopt`,
              asks: {
                question: `Adopt the ${kindWords(objectKind)} ${difference.objectName}?`,
                explanation:
                  objectKind === 'clientUsername'
                    ? 'It becomes ours: the next run changes it and writes the stored password, which locks out whoever used it before.'
                    : 'It becomes ours: the next run changes it to what Keymesh wants, and a withdrawal removes it.',
              },
              offBecause: isOpen ? off : 'It is settled.',
            })
          : ''
      }`,
    })}
<section class="panel" aria-labelledby="facts-title"><h2 id="facts-title" class="visually-hidden">Facts</h2>
${facts([
  ['Broker', brokerLink(brokerId)],
  ['Registration', registrationLink(registrationId)],
  ['Detected', html`${moment(difference.detectedAtMs)}, in <a href="${runPath(runId)}">this run</a>`],
  ['Last seen', moment(difference.lastSeenAtMs)],
  [
    'Repaired or gone',
    difference.repairedAtMs === null
      ? html`<span class="faint">not yet</span>`
      : html`${moment(difference.repairedAtMs)}${repairedByRunId === null ? '' : html`, in <a href="${runPath(repairedByRunId)}">this run</a>`}`,
  ],
])}
</section>
<section aria-labelledby="comparison-title">
<h2 id="comparison-title">Before and after</h2>
${kind === 'missing' ? html`<p>The broker did not have the object any more. This is what it should be.</p>` : ''}
${kind === 'password' ? html`<p>A broker never tells a password; logins say whether it is right. No password is on record here.</p>` : ''}
${comparison(difference)}
</section>`,
  }
}
