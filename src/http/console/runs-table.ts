import { html } from 'hono/html'
import type { RunView } from '../../store/runs-view.ts'
import { chip, counted, type Tone, table, when } from './components.ts'
import type { Html } from './page.ts'
import { runPath } from './record-parts.ts'

/** Why a run was made, for a person. */
export const TRIGGER_WORDS: Readonly<Record<string, string>> = {
  'on-demand': 'a change',
  operator: 'an operator asked',
  revocation: 'a credential ended',
  sweep: 'the sweep',
  poll: 'it lagged',
}

export const TRIGGER_SENTENCES: Readonly<Record<string, string>> = {
  'on-demand': 'Something was changed: a registration, a credential, an access request, the catalogue.',
  operator: 'An operator asked for it.',
  revocation: 'A credential was revoked or expired, and is ended before anything else.',
  sweep: 'A sweep of the broker is due at regular times; it reads everything and repairs what differs.',
  poll: 'The poll found that the broker did not have yet what it should have.',
}

export const OUTCOMES: Readonly<Record<string, readonly [Tone, string]>> = {
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

export function runOutcome(outcome: string): Html {
  const [tone, words] = OUTCOMES[outcome] ?? ['idle', outcome]
  return chip(tone, words)
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

export function tookOf({ startedAtMs, finishedAtMs }: RunView, nowMs: number): string {
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
