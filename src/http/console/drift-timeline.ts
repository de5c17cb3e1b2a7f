import { html } from 'hono/html'
import type { DriftView } from '../../store/drift-view.ts'
import { when } from './components.ts'
import type { Html } from './page.ts'
import {
  brokerLink,
  comparison,
  dayName,
  driftKind,
  driftOutcome,
  driftPath,
  inShort,
  kindWords,
  objectName,
  reasonSentence,
  registrationLink,
  runPath,
} from './record-parts.ts'

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

/** What became of a difference, as a sentence. */
export function whatHappened({ action, lastSeenAtMs, repairedAtMs, repairedByRunId }: DriftView, nowMs: number): Html {
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
