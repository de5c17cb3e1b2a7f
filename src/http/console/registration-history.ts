import { html } from 'hono/html'
import type { AuditView } from '../../store/audit.ts'
import type { DriftView } from '../../store/drift-view.ts'
import type { RunView } from '../../store/runs-view.ts'
import { chip, counted, when } from './components.ts'
import type { Html } from './page.ts'
import { brokerLink, driftKind, driftOutcome, driftPath, objectName, runPath } from './record-parts.ts'
import { runOutcome } from './runs-table.ts'

/** Something that happened to a registration. */
export type HistoryEntry =
  | { readonly kind: 'call'; readonly atMs: number; readonly call: AuditView }
  | { readonly kind: 'run'; readonly atMs: number; readonly run: RunView }
  | { readonly kind: 'drift'; readonly atMs: number; readonly drift: DriftView }

/** Newest first. */
export function historyOf(
  found: {
    readonly calls: readonly AuditView[]
    readonly runs: readonly RunView[]
    readonly drift: readonly DriftView[]
  },
  limit: number,
): readonly HistoryEntry[] {
  const entries: readonly HistoryEntry[] = [
    ...found.calls.map((call) => ({ kind: 'call', atMs: call.atMs, call }) as const),
    ...found.runs.map((run) => ({ kind: 'run', atMs: run.startedAtMs, run }) as const),
    ...found.drift.map((drift) => ({ kind: 'drift', atMs: drift.detectedAtMs, drift }) as const),
  ]
  return entries.toSorted((one, other) => other.atMs - one.atMs).slice(0, limit)
}

export function historyList(entries: readonly HistoryEntry[], nowMs: number): Html {
  if (entries.length === 0) return html`<p class="empty">Nothing has happened to it yet.</p>`
  return html`<ol class="history">${entries.map((entry) => html`<li id="${idOf(entry)}"><span class="history-when">${when(entry.atMs, nowMs)}</span> <span>${inWords(entry)}</span></li>`)}</ol>`
}

function idOf(entry: HistoryEntry): string {
  switch (entry.kind) {
    case 'call':
      return `call-${entry.call.id}`
    case 'run':
      return `run-${entry.run.id}`
    case 'drift':
      return `drift-${entry.drift.id}`
    default: {
      const unreachable: never = entry
      return unreachable
    }
  }
}

function inWords(entry: HistoryEntry): Html {
  switch (entry.kind) {
    case 'call': {
      const { actorName, action, outcome } = entry.call
      return html`<strong>${actorName}</strong> ${action}${outcome === 'done' ? '' : html` ${chip(outcome === 'refused' ? 'warn' : 'bad', outcome)}`}`
    }
    case 'run': {
      const { id, brokerId, outcome, steps, trigger } = entry.run
      return html`<a href="${runPath(id)}">Run</a> on ${brokerLink(brokerId)} (${trigger}): ${counted(steps, 'step')} ${runOutcome(outcome)}`
    }
    case 'drift': {
      const { id, brokerId } = entry.drift
      return html`<a href="${driftPath(id)}">Drift</a> on ${brokerLink(brokerId)}: ${objectName(entry.drift)} ${driftKind(entry.drift.kind)} ${driftOutcome(entry.drift)}`
    }
    default: {
      const unreachable: never = entry
      return unreachable
    }
  }
}
