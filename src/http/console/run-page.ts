import { html } from 'hono/html'
import type { SweepProgress } from '../../reconcile/sweep.ts'
import type { DriftView } from '../../store/drift-view.ts'
import type { RunView } from '../../store/runs-view.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { counted, facts, pageHead, withQuery } from './components.ts'
import { timeline } from './drift-timeline.ts'
import type { Html, Page } from './page.ts'
import { stepLines } from './plan-steps.ts'
import { brokerLink, moment, registrationLink, runPath, withCode } from './record-parts.ts'
import { RUNS_PATH } from './runs-page.ts'
import { runOutcome, runsTable, TRIGGER_SENTENCES, TRIGGER_WORDS, tookOf } from './runs-table.ts'

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
