import { html } from 'hono/html'
import { objectKey } from '../../domain/broker-object.ts'
import { actionRef, type Plan, type Step } from '../../reconcile/plan.ts'
import { renderConflict } from '../../reconcile/render.ts'
import type { CollectedPlans } from '../operations/collect-plans.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { chip, counted, pageHead, when, withQuery } from './components.ts'
import type { Html, Page } from './page.ts'
import { planSteps } from './plan-steps.ts'
import { brokerChoices, type NamedBroker } from './record-filters.ts'
import { brokerLink, driftKind, kindWords, registrationLink, withCode } from './record-parts.ts'
import { RUNS_PATH } from './runs-page.ts'

export const PLAN_PATH = `${CONSOLE}/plan`
/** Takes `broker`, `registration` and `disruptive`, all of them optional, and the page to go `back` to. */
export const RECONCILE_PATH = `${PLAN_PATH}/reconcile`

export interface PlanQuery {
  readonly broker?: string | undefined
  readonly registration?: string | undefined
}

export interface PlanPageData {
  readonly query: PlanQuery
  readonly brokers: readonly NamedBroker[]
  /** Null while nothing was chosen. */
  readonly found: CollectedPlans | null
  readonly nowMs: number
  readonly isAdministrator: boolean
  /** Why nothing can be done there now; null: something can. */
  readonly offBecause: string | null
}

/** What a run would do now, without doing it. */
export function planPage(data: PlanPageData): Page {
  const { query, found } = data
  return {
    title: 'Plan',
    section: 'runs',
    content: html`${pageHead({
      title: 'Plan',
      above: [{ name: 'Runs', path: RUNS_PATH }],
      lede: 'What a run would do now. The broker is read and nothing is changed.',
      ...(found === null ? {} : { actions: planActions(data, found) }),
    })}
${chooser(data)}
${found === null ? html`<p class="empty">Choose a broker, or give a registration.</p>` : result(query, found, data.nowMs)}`,
  }
}

function chooser({ query, brokers }: PlanPageData): Html {
  return html`<form class="filters" method="get" action="${PLAN_PATH}" aria-label="What to plan">
<div><label for="broker">Broker</label>
<select id="broker" name="broker">${brokerChoices(query.registration === undefined ? 'Choose' : 'All of its brokers', brokers, query.broker)}</select></div>
<div class="wide"><label for="registration">Registration</label>
<input id="registration" name="registration" value="${query.registration ?? ''}" placeholder="All of the broker, or an id" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="256"></div>
<button type="submit">Plan</button>
</form>`
}

const isHeldForDisruption = ({ disruptive, decision }: Step): boolean => disruptive && decision === 'held'

function planActions({ query, isAdministrator, offBecause }: PlanPageData, { plans }: CollectedPlans): Html {
  const steps = plans.flatMap((plan) => plan.steps)
  const off =
    forAdministrators(isAdministrator) ?? offBecause ?? (plans.length === 0 ? 'There is nothing to do.' : null)
  const values = {
    ...(query.broker === undefined ? {} : { broker: query.broker }),
    ...(query.registration === undefined ? {} : { registration: query.registration }),
    back: withQuery(PLAN_PATH, { ...query }),
  }
  const whom = whomOf(query)
  const runnable = steps.filter(({ decision }) => decision === 'run').length
  const dropping = steps.filter(isHeldForDisruption).length
  const withdrawals = plans.some(({ refused }) => refused?.reason === 'too-many-withdrawals')
  return html`${actionButton({
    id: 'reconcile',
    label: 'Reconcile now',
    path: `${PLAN_PATH}/reconcile`,
    values,
    asks: {
      question: `Reconcile ${whom} now?`,
      explanation: `Brokers are read again and what differs then is written: now ${counted(runnable, 'step')}. What is held back stays so.`,
    },
    offBecause: off,
  })}${
    dropping === 0
      ? ''
      : actionButton({
          id: 'approve',
          label: 'Approve and reconcile',
          look: 'danger',
          path: `${PLAN_PATH}/reconcile`,
          values: { ...values, disruptive: '1' },
          asks: {
            question: `Let live clients drop for ${whom}?`,
            explanation: `${counted(dropping, 'step')} of those shown ${dropping === 1 ? 'disconnects' : 'disconnect'} clients for a moment. The next run within an hour may do so; later ones ask again.`,
          },
          offBecause: off,
        })
  }${
    !withdrawals || query.broker === undefined
      ? ''
      : actionButton({
          id: 'confirm',
          label: 'Confirm withdrawals',
          look: 'danger',
          path: `${PLAN_PATH}/confirm-withdrawals`,
          values: { broker: query.broker, back: values.back },
          asks: {
            question: `Withdraw all refused registrations from broker ${query.broker}?`,
            explanation:
              'More registrations would lose their access at once than the broker’s policy allows without a person. Their client usernames are disabled, then removed after the grace period.',
          },
          offBecause: off,
        })
  }`
}

const whomOf = ({ broker, registration }: PlanQuery): string => {
  if (registration === undefined) return `broker ${broker ?? ''}`
  return broker === undefined ? `registration ${registration}` : `registration ${registration} on broker ${broker}`
}

function result(query: PlanQuery, { plans, complete, failures }: CollectedPlans, nowMs: number): Html {
  const failed = failures.map(
    ({ brokerId, message, code }) =>
      html`<p class="notice bad">Broker ${brokerId} could not be read: ${message} <code>${code}</code></p>`,
  )
  const nothing = plans.length === 0 && failures.length === 0 && complete
  return html`<div class="plans">${failed}
${nothing ? html`<p class="empty">Nothing to do: ${whomOf(query)} is as it should be.</p>` : ''}
${plans.map((plan, index) => planCard(plan, index, nowMs))}
${complete || failures.length > 0 ? '' : html`<p class="notice">There is more than is shown here; the command <code>keymesh plan</code> shows all of it.</p>`}</div>`
}

function planCard(plan: Plan, index: number, nowMs: number): Html {
  const { registrationId, brokerId, generation, steps, drift, conflicts, refused, notes, waitsUntilMs } = plan
  const held = steps.filter(({ decision }) => decision === 'held').length
  const id = `plan-${index}`
  const changed = new Set(steps.map(({ action }) => objectKey(actionRef(action))))
  const others = drift.filter(({ object }) => !changed.has(objectKey(object)))
  return html`<section class="panel" aria-labelledby="${id}">
<div class="panel-head"><h2 id="${id}">${registrationLink(registrationId)} <span class="on-broker">on ${brokerLink(brokerId)}</span></h2>
<p class="chips">${refused === null ? '' : chip('bad', 'refused')} ${conflicts.length === 0 ? '' : chip('bad', counted(conflicts.length, 'conflict'))} ${held === 0 ? '' : chip('warn', `${held} held back`)} ${steps.length === 0 ? '' : chip('busy', counted(steps.length, 'step'))} <span class="faint">generation ${generation}</span></p></div>
${refused === null ? '' : html`<p class="notice bad">Refused: ${withCode(refused.message)}</p>`}
${conflicts.map((conflict) => html`<p class="notice bad">${capitalised(renderConflict(conflict))}</p>`)}
${planSteps(steps)}
${
  others.length === 0
    ? ''
    : html`<h3>What differs, and no step changes</h3><ul class="plain">${others.map(({ kind, object }) => html`<li>${driftKind(kind)} ${kindWords(object.kind)} <code>${object.name}</code></li>`)}</ul>`
}
${notes.map((note) => html`<p class="note">${withCode(note)}</p>`)}
${waitsUntilMs === null ? '' : html`<p class="note">It goes on ${when(waitsUntilMs, nowMs)}, when a grace period ends or the broker’s window opens.</p>`}
</section>
`
}

const capitalised = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
