import { html } from 'hono/html'
import type { SweepProgress } from '../../reconcile/sweep.ts'
import type { DriftView } from '../../store/drift-view.ts'
import type { RunView } from '../../store/runs-view.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { chip, counted, facts, pageHead, type Tone, table, when, withQuery } from './components.ts'
import { timeline } from './drift-page.ts'
import type { Html, Page } from './page.ts'
import { stepLines } from './plan-steps.ts'
import { choices, type NamedBroker, olderLink } from './record-filters.ts'
import { brokerLink, moment, registrationLink, runPath, withCode } from './record-parts.ts'

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

/** Why a run was made, for a person. */
export const TRIGGER_WORDS: Readonly<Record<string, string>> = {
  'on-demand': 'a change',
  operator: 'an operator asked',
  revocation: 'a credential ended',
  sweep: 'the sweep',
  poll: 'it lagged',
}

const TRIGGER_SENTENCES: Readonly<Record<string, string>> = {
  'on-demand': 'Something was changed: a registration, a credential, an access request, the catalogue.',
  operator: 'An operator asked for it.',
  revocation: 'A credential was revoked or expired, and is ended before anything else.',
  sweep: 'A sweep of the broker is due at regular times; it reads everything and repairs what differs.',
  poll: 'The poll found that the broker did not have yet what it should have.',
}

const OUTCOMES: Readonly<Record<string, readonly [Tone, string]>> = {
  'in-sync': ['good', 'in sync'],
  done: ['good', 'done'],
  running: ['busy', 'running'],
  lagging: ['busy', 'to be continued'],
  held: ['warn', 'held back'],
  interrupted: ['warn', 'interrupted'],
  'with-errors': ['warn', 'with errors'],
  conflict: ['bad', 'conflict'],
  refused: ['bad', 'refused'],
  error: ['bad', 'error'],
  failed: ['bad', 'failed'],
}

export const RUN_OUTCOMES = Object.keys(OUTCOMES)

export function runOutcome(outcome: string): Html {
  const [tone, words] = OUTCOMES[outcome] ?? ['idle', outcome]
  return chip(tone, words)
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
<select id="broker" name="broker">${choices(
    'All brokers',
    brokers.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`]),
    query.broker,
  )}</select></div>
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

export function runsTable(runs: readonly RunView[], nowMs: number, empty: string): Html {
  return table({
    caption: 'Runs, the newest first',
    columns: [
      { name: 'Run' },
      { name: 'Began' },
      { name: 'Why' },
      { name: 'Outcome' },
      { name: 'Took', numeric: true },
      { name: 'What it changed' },
    ],
    rows: runs.map((run) => ({
      id: `run-${run.id}`,
      cells: [
        html`<a href="${runPath(run.id)}">${runName(run)}</a> <span class="faint">on ${run.brokerId}</span>`,
        when(run.startedAtMs, nowMs),
        TRIGGER_WORDS[run.trigger] ?? run.trigger,
        runOutcome(run.outcome),
        tookOf(run, nowMs),
        changedInShort(run),
      ],
    })),
    empty,
  })
}

const runName = ({ kind, registrationId }: RunView): string =>
  kind === 'sweep' || registrationId === null ? 'Sweep' : registrationId

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS

/** `240 ms`, `3.2 s`, `2 min 5 s`. */
export function precise(ms: number): string {
  if (ms < SECOND_MS) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(1)} s`
  return `${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / SECOND_MS)} s`
}

function tookOf({ startedAtMs, finishedAtMs }: RunView, nowMs: number): string {
  return finishedAtMs === null ? `${precise(nowMs - startedAtMs)} so far` : precise(finishedAtMs - startedAtMs)
}

function changedInShort(run: RunView): Html {
  const said = run.kind === 'sweep' ? sweepInShort(run) : runInShort(run)
  const error = run.errorCode === null ? '' : html` <code>${run.errorCode}</code>`
  return said.length === 0 && error === '' ? html`<span class="faint">nothing</span>` : html`${said.join(', ')}${error}`
}

const runInShort = ({ steps, held, drift, conflicts }: RunView): readonly string[] => [
  ...(steps > 0 ? [counted(steps, 'write')] : []),
  ...(held > 0 ? [`${held} held back`] : []),
  ...(drift > 0 ? [counted(drift, 'difference')] : []),
  ...(conflicts > 0 ? [counted(conflicts, 'conflict')] : []),
]

function sweepInShort({ detail }: RunView): readonly string[] {
  const of = (name: string): number => (typeof detail[name] === 'number' ? detail[name] : 0)
  return [
    ...(of('changed') > 0 ? [`${counted(of('changed'), 'registration')} changed`] : []),
    ...(of('waiting') > 0 ? [`${of('waiting')} waiting`] : []),
    ...(of('failed') > 0 ? [`${of('failed')} failed`] : []),
    ...(of('loginsRefused') > 0 ? [`${counted(of('loginsRefused'), 'login')} refused`] : []),
  ]
}

export interface RunPageData {
  readonly run: RunView
  readonly differences: readonly DriftView[]
  /** There are more than are shown. */
  readonly moreDifferences: boolean
  /** Of a sweep: runs of registrations on the broker while it ran. */
  readonly during: readonly RunView[]
  readonly moreDuring: boolean
  /** Of a sweep that is under way. */
  readonly progress: SweepProgress | null
  readonly nowMs: number
  readonly isAdministrator: boolean
  /** Why nothing can be done on the broker now; null: something can. */
  readonly offBecause: string | null
}

export function runPage(data: RunPageData): Page {
  const { run, differences, moreDifferences, nowMs } = data
  const { brokerId, registrationId } = run
  return {
    title: `Run ${run.id}`,
    section: 'runs',
    ...(run.finishedAtMs === null ? { live: 'The sweep is under way.' } : {}),
    content: html`${pageHead({
      title: run.kind === 'sweep' ? `Sweep of broker ${brokerId}` : `Run of ${registrationId ?? brokerId}`,
      above: [{ name: 'Runs', path: RUNS_PATH }],
      beside: runOutcome(run.outcome),
      lede: TRIGGER_SENTENCES[run.trigger] ?? run.trigger,
      actions: againActions(data),
    })}
<section class="panel" aria-labelledby="facts-title"><h2 id="facts-title" class="visually-hidden">Facts</h2>
${facts([
  ['Broker', brokerLink(brokerId)],
  ...(run.kind === 'sweep' ? [] : [['Registration', registrationLink(registrationId)] as const]),
  ['Began', moment(run.startedAtMs)],
  ['Ended', run.finishedAtMs === null ? html`<span class="faint">not yet</span>` : moment(run.finishedAtMs)],
  ['Took', tookOf(run, nowMs)],
  ['Why', TRIGGER_WORDS[run.trigger] ?? run.trigger],
  ['Its id', html`<code>${run.id}</code>`],
])}
</section>
${run.error === null ? '' : html`<section aria-labelledby="error-title"><h2 id="error-title">Why it failed</h2><p class="notice bad">${withCode(run.error)} <code>${run.errorCode ?? ''}</code></p></section>`}
${run.kind === 'sweep' ? sweepSections(data) : writtenSections(run)}
<section aria-labelledby="drift-title"><h2 id="drift-title">Differences it found or repaired</h2>
${timeline(differences, nowMs)}
${moreDifferences ? html`<p class="faint">There are more; the <a href="${withQuery(`${CONSOLE}/drift`, { broker: brokerId, span: '30d' })}">drift of the broker</a> has them all.</p>` : ''}
</section>`,
  }
}

function againActions({ run, isAdministrator, offBecause }: RunPageData): Html {
  const { brokerId, registrationId } = run
  const values = { broker: brokerId, ...(registrationId === null ? {} : { registration: registrationId }) }
  const whom = registrationId === null ? `broker ${brokerId}` : `registration ${registrationId} on broker ${brokerId}`
  return html`<a class="button" href="${withQuery(`${CONSOLE}/plan`, values)}">Plan</a>${actionButton({
    id: 'reconcile',
    label: 'Run again',
    path: `${CONSOLE}/plan/reconcile`,
    values: { ...values, back: runPath(run.id) },
    asks: {
      question: `Reconcile ${whom} now?`,
      explanation:
        'Keymesh reads the broker and writes what differs. What would drop live clients is held back unless the broker’s policy lets it run.',
    },
    offBecause: forAdministrators(isAdministrator) ?? offBecause,
  })}`
}

function writtenSections(run: RunView): Html {
  const [ran, held] = [linesOf(run, 'ran'), linesOf(run, 'held')]
  return html`<section aria-labelledby="ran-title"><h2 id="ran-title">What it did</h2>
${run.steps === 0 ? html`<p class="empty">It wrote nothing.</p>` : html`<div class="panel">${stepLines(ran)}${unlisted(run.steps - ran.length, 'write')}</div>`}
</section>
${run.held === 0 ? '' : html`<section aria-labelledby="held-title"><h2 id="held-title">What it held back</h2><div class="panel">${stepLines(held)}${unlisted(run.held - held.length, 'step')}</div></section>`}`
}

const unlisted = (count: number, what: string): Html =>
  count <= 0
    ? html``
    : html`<p class="faint">And ${counted(count, what)} that ${count === 1 ? 'is' : 'are'} not listed.</p>`

/** As the run kept them; nothing of a run that an older program made. */
function linesOf({ detail }: RunView, which: 'ran' | 'held'): readonly string[] {
  const lines = detail[which]
  return Array.isArray(lines) ? lines.filter((line): line is string => typeof line === 'string') : []
}

const SWEEP_FACTS: readonly (readonly [name: string, words: string])[] = [
  ['objectsRead', 'Objects read'],
  ['compared', 'Registrations compared in bulk'],
  ['inSync', 'Looked at closely and in order'],
  ['changed', 'Changed'],
  ['waiting', 'Waiting for a person or a window'],
  ['busy', 'Busy with another run'],
  ['failed', 'Failed'],
  ['loginsProbed', 'Logins made'],
  ['loginsRefused', 'Logins refused'],
]

const PHASES: Readonly<Record<SweepProgress['phase'], readonly [doing: string, one: string, many: string]>> = {
  'reading the store': ['It reads what should be there', 'registration', 'registrations'],
  'reading the broker': ['It reads the broker', 'object', 'objects'],
  reconciling: ['It reconciles what differs', 'registration', 'registrations'],
  'logging in': ['It logs in with credentials whose turn has come', 'login', 'logins'],
}

/** What a sweep without a result does, or did. */
function underWay({ run, progress }: RunPageData): string {
  if (run.finishedAtMs !== null) return 'It ended before it could say.'
  if (progress === null) return 'It has just begun.'
  const [doing, one, many] = PHASES[progress.phase]
  return `${doing}: ${counted(progress.done, one, many)} so far.`
}

function sweepSections(data: RunPageData): Html {
  const { run, during, moreDuring, nowMs } = data
  const known = SWEEP_FACTS.flatMap(([name, words]) => {
    const found = run.detail[name]
    return typeof found === 'number' ? [[words, found.toLocaleString('en')] as const] : []
  })
  return html`<section aria-labelledby="sweep-title"><h2 id="sweep-title">What it read and how it ended</h2>
${known.length === 0 ? html`<p class="empty">${underWay(data)}</p>` : html`<div class="panel">${facts(known)}</div>`}
</section>
<section aria-labelledby="during-title"><h2 id="during-title">Runs of registrations on this broker meanwhile</h2>
${runsTable(during, nowMs, 'None did anything.')}
${moreDuring ? html`<p class="faint">There are more; the <a href="${withQuery(RUNS_PATH, { broker: run.brokerId, kind: 'registration' })}">runs on the broker</a> have them all.</p>` : ''}
</section>`
}
