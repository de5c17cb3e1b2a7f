import { html } from 'hono/html'
import type { BrokerExplanation } from '../../store/explain-registration.ts'
import type { StoredRegistration } from '../../store/registrations-change.ts'
import type { CredentialFacts } from '../../store/registrations-overview.ts'
import { CONSOLE } from './access.ts'
import { accessRequestTable, type ExplainedRequest } from './access-request-table.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { chip, counted, facts, pageHead, type Tone, table, when, withQuery } from './components.ts'
import type { Html, Page } from './page.ts'
import { pairState } from './pair-state.ts'
import { PLAN_PATH, RECONCILE_PATH } from './plan-page.ts'
import { brokerLink, registrationPath } from './record-parts.ts'
import { type HistoryEntry, historyList } from './registration-history.ts'
import { loginList } from './registration-logins.ts'
import { REGISTRATIONS_PATH } from './registrations-page.ts'

export interface RegistrationPageData {
  readonly registrationId: string
  readonly registration: StoredRegistration
  readonly brokers: readonly BrokerExplanation[]
  readonly accessRequests: readonly ExplainedRequest[]
  readonly credentials: readonly CredentialFacts[]
  readonly history: readonly HistoryEntry[]
  /** By itself. */
  readonly isPaused: boolean
  readonly nowMs: number
  readonly isAdministrator: boolean
}

/** One registration: its brokers, credentials, access requests and history. */
export function registrationPage(data: RegistrationPageData): Page {
  const { registrationId, registration, isPaused, nowMs, accessRequests } = data
  const query = { registration: registrationId }
  return {
    title: registration.name,
    section: 'registrations',
    live: summaryOf(data),
    content: html`${pageHead({
      title: registration.name,
      above: [{ name: 'Registrations', path: REGISTRATIONS_PATH }],
      beside: html`${standing(data)}${isPaused ? html` ${chip('idle', 'paused')}` : ''}`,
      lede: summaryOf(data),
      actions: registrationActions(data),
    })}
<div class="panel">${about(data)}</div>
<section aria-labelledby="requests"><h2 id="requests">Access requests</h2>${accessRequestTable({
      registrationId,
      accessRequests,
      nowMs,
      isAdministrator: data.isAdministrator,
    })}</section>
<section aria-labelledby="brokers"><h2 id="brokers">Brokers</h2>${brokers(data)}</section>
<section aria-labelledby="credentials"><h2 id="credentials">Credentials</h2>${credentials(data)}</section>
<section aria-labelledby="history"><h2 id="history">History</h2>${historyList(data.history, nowMs)}
<p class="links"><a href="${withQuery(`${CONSOLE}/runs`, query)}">All its runs</a> <a href="${withQuery(`${CONSOLE}/drift`, query)}">All its drift</a></p></section>`,
  }
}

const isAstray = ({ state, reachedGeneration, generation, openDrift }: BrokerExplanation): boolean =>
  state !== 'in-sync' || reachedGeneration < generation || openDrift > 0

function standing({ brokers: all }: RegistrationPageData): Html {
  const [tone, words]: readonly [Tone, string] = all.some(isAstray)
    ? ['warn', 'not in sync']
    : all.length === 0
      ? ['idle', 'on no broker']
      : ['good', 'in sync']
  return chip(tone, words)
}

function summaryOf({ brokers: all, accessRequests }: RegistrationPageData): string {
  const astray = all.filter(isAstray).length
  const waiting = accessRequests.filter(({ state }) => state === 'PENDING_APPROVAL').length
  const place =
    all.length === 0 ? 'On no broker' : `In sync on ${all.length - astray} of ${counted(all.length, 'broker')}`
  return `${place}${waiting === 0 ? '' : `; ${counted(waiting, 'access request waits', 'access requests wait')} for a decision`}.`
}

function about({ registrationId, registration, brokers: all }: RegistrationPageData): Html {
  const { source, sourceOwner, applicationDomainId, filters, attributes } = registration
  const generation = all[0]?.generation
  return facts([
    ['Id', html`<code>${registrationId}</code>`],
    ['Source', source],
    ...(sourceOwner === null ? [] : [['Owner', sourceOwner] as const]),
    ...(applicationDomainId === null ? [] : [['Application domain', applicationDomainId] as const]),
    ...(generation === undefined ? [] : [['Generation', String(generation)] as const]),
    ...Object.entries(filters).map(([name, values]) => [`Filter ${name}`, values.join(', ')] as const),
    ...attributes.map(({ name, value }) => [`Attribute ${name}`, value] as const),
  ])
}

function brokers({ brokers: all, nowMs }: RegistrationPageData): Html {
  return table({
    caption: 'How it stands on each broker',
    columns: [{ name: 'Broker' }, { name: 'State' }, { name: 'Why' }, { name: 'Logins' }, { name: 'Reconciled' }],
    rows: all.map((pair) => ({
      id: `on-${pair.brokerId}`,
      cells: [
        brokerLink(pair.brokerId),
        pairState(pair),
        html`${pair.reason ?? ''}${pair.dueAtMs === null || !isAstray(pair) ? '' : html` <span class="faint">Tried again ${when(pair.dueAtMs, nowMs)}.</span>`}`,
        loginList(pair.logins),
        when(pair.reconciledAtMs, nowMs, 'not yet'),
      ],
    })),
    empty: 'Nothing of it is on a broker. That begins when an access request is approved.',
  })
}

function credentials({ credentials: all, nowMs }: RegistrationPageData): Html {
  return table({
    caption: 'Credentials, without their secrets',
    columns: [
      { name: 'Client username' },
      { name: 'Name' },
      { name: 'State' },
      { name: 'Version', numeric: true },
      { name: 'Issued' },
      { name: 'Expires' },
    ],
    rows: all.map(({ consumerKey, name, version, issuedAtMs, expiresAtMs, retiredAtMs }) => ({
      id: `credential-${consumerKey}-${issuedAtMs}`,
      cells: [
        html`<code>${consumerKey}</code>`,
        name,
        retiredAtMs === null ? chip('good', 'live') : html`${chip('idle', 'retired')} ${when(retiredAtMs, nowMs)}`,
        String(version),
        when(issuedAtMs, nowMs),
        when(expiresAtMs, nowMs, 'never'),
      ],
    })),
    empty: 'It has no credential, so nobody can log in for it.',
  })
}

function registrationActions({
  registrationId,
  registration,
  isPaused,
  brokers: all,
  isAdministrator,
}: RegistrationPageData): Html {
  const path = registrationPath(registrationId)
  const plan = html`<a class="button" href="${withQuery(PLAN_PATH, { registration: registrationId })}">Plan</a>`
  if (forAdministrators(isAdministrator) !== null) {
    return html`${plan}<p class="why">Only an administrator of the account may reconcile, pause or decide.</p>`
  }
  const offBecause = isPaused
    ? 'The registration is paused; resume it first.'
    : all.length === 0
      ? 'It is on no broker.'
      : all.every(({ paused }) => paused)
        ? 'Its brokers are paused.'
        : null
  const { name } = registration
  return html`${plan}${actionButton({
    id: 'reconcile',
    label: 'Reconcile now',
    path: RECONCILE_PATH,
    values: { registration: registrationId, back: path },
    look: 'primary',
    offBecause,
    asks: {
      question: `Reconcile ${name} now?`,
      explanation: `What it needs is read on ${counted(all.length, 'broker')}, and what differs is repaired as their policies allow.`,
      fields: html`<label class="check"><input type="checkbox" name="disruptive" value="1"> <span>Also what waits because it drops live clients: they reconnect, if it comes within an hour</span></label>`,
    },
  })}${
    isPaused
      ? actionButton({
          id: 'resume',
          label: 'Resume',
          path: `${path}/resume`,
          asks: { question: `Resume ${name}?`, explanation: 'What lags is reconciled at once.' },
        })
      : actionButton({
          id: 'pause',
          label: 'Pause',
          path: `${path}/pause`,
          asks: {
            question: `Pause ${name}?`,
            explanation:
              'What runs ends; nothing else begins for it on any broker until somebody resumes it. Its new credentials and revocations wait too.',
          },
        })
  }`
}
