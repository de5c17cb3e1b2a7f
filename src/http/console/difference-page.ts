import { html } from 'hono/html'
import type { DriftView } from '../../store/drift-view.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { facts, pageHead, withQuery } from './components.ts'
import { DRIFT_PATH } from './drift-page.ts'
import { whatHappened } from './drift-timeline.ts'
import type { Page } from './page.ts'
import {
  brokerLink,
  comparison,
  driftKind,
  driftOutcome,
  driftPath,
  kindWords,
  moment,
  reasonSentence,
  registrationLink,
  runPath,
} from './record-parts.ts'

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
