import { html } from 'hono/html'
import type { RunView } from '../../store/runs-view.ts'
import { CONSOLE } from './access.ts'
import { counted, pageHead, withQuery } from './components.ts'
import type { Html, Page } from './page.ts'
import { brokerChoices, choices, type NamedBroker, olderLink } from './record-filters.ts'
import { OUTCOMES, runsTable, TRIGGER_WORDS } from './runs-table.ts'

export const RUNS_PATH = `${CONSOLE}/runs`

export interface RunsQuery {
  readonly broker?: string | undefined
  readonly kind?: string | undefined
  readonly trigger?: string | undefined
  readonly outcome?: string | undefined
  readonly registration?: string | undefined
  /** Where the list goes on. */
  readonly after?: string | undefined
}

export interface RunsPageData {
  readonly query: RunsQuery
  readonly brokers: readonly NamedBroker[]
  readonly runs: readonly RunView[]
  /** The cursor of the next page; null at the end. */
  readonly older: string | null
  readonly nowMs: number
}

export function runsPage({ query, brokers, runs, older, nowMs }: RunsPageData): Page {
  const running = runs.filter(({ outcome }) => outcome === 'running').length
  return {
    title: 'Runs',
    section: 'runs',
    ...(query.after === undefined
      ? { live: running === 0 ? 'No sweep is running.' : `${counted(running, 'sweep')} running.` }
      : {}),
    content: html`${pageHead({
      title: 'Runs',
      lede: 'What ran, why, how long it took and what it changed. A run that found nothing to do leaves no line here.',
      actions: html`<a class="button" href="${CONSOLE}/plan">Plan: what would a run do now?</a>`,
    })}
${filterForm(query, brokers)}
${runsTable(runs, nowMs, 'No run is on record here.')}
${olderLink({ older, after: query.after, pathOf: (after) => withQuery(RUNS_PATH, { ...query, after }) })}`,
  }
}

function filterForm(query: RunsQuery, brokers: readonly NamedBroker[]): Html {
  const { after: _after, ...filters } = query
  const isFiltered = Object.values(filters).some((each) => each !== undefined)
  return html`<form class="filters" method="get" action="${RUNS_PATH}" role="search" aria-label="Filter runs">
<div><label for="broker">Broker</label>
<select id="broker" name="broker">${brokerChoices('All brokers', brokers, query.broker)}</select></div>
<div><label for="kind">What</label>
<select id="kind" name="kind">${choices(
    'Sweeps and registrations',
    [
      ['sweep', 'Sweeps'],
      ['registration', 'Registrations'],
    ],
    query.kind,
  )}</select></div>
<div><label for="trigger">Why</label>
<select id="trigger" name="trigger">${choices('For any reason', Object.entries(TRIGGER_WORDS), query.trigger)}</select></div>
<div><label for="outcome">Outcome</label>
<select id="outcome" name="outcome">${choices(
    'Any outcome',
    Object.entries(OUTCOMES).map(([outcome, [, words]]) => [outcome, words]),
    query.outcome,
  )}</select></div>
<div class="wide"><label for="registration">Registration</label>
<input id="registration" name="registration" value="${query.registration ?? ''}" placeholder="Its id" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="256"></div>
<button type="submit">Filter</button>
${isFiltered ? html`<a class="button" href="${RUNS_PATH}">Clear</a>` : ''}
</form>`
}
