import { html } from 'hono/html'
import type { PairView } from '../../store/pairs-view.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import {
  type BrokerFigures,
  partsInWords,
  partsOf,
  protocolTone,
  protocolVerdict,
  queueInWords,
  standingOf,
  sumsBar,
  sweepInWords,
} from './broker-figures.ts'
import { chip, counted, duration, facts, number, pageHead, table, when, withQuery } from './components.ts'
import type { Html, Page } from './page.ts'
import { pairState } from './pair-state.ts'
import { PLAN_PATH, RECONCILE_PATH } from './plan-page.ts'
import { brokerPath, registrationLink } from './record-parts.ts'

export interface BrokerPageData {
  readonly figures: BrokerFigures
  /** Environment and event mesh, in words; null: in none. */
  readonly place: string | null
  /** Some of those that are not in sync, and how many there are. */
  readonly astray: { readonly pairs: readonly PairView[]; readonly count: number }
  readonly nowMs: number
  readonly isAdministrator: boolean
}

/** Everything about one broker. */
export function brokerPage(data: BrokerPageData): Page {
  const { figures, nowMs, place } = data
  const { broker, sums } = figures
  const { tone, words } = standingOf(figures)
  const summary = `${broker.name} is ${words}${sums === null ? '' : `: ${partsInWords(sums.registrations).toLowerCase()}`}.`
  const query = { broker: broker.brokerId }
  return {
    title: broker.name,
    section: 'mesh',
    live: summary,
    content: html`${pageHead({
      title: broker.name,
      above: [{ name: 'Mesh', path: CONSOLE }],
      beside: chip(tone, words),
      lede: place ?? 'It belongs to no event mesh, so no product is offered on it.',
      actions: brokerActions(data),
    })}
${trouble(figures, nowMs)}
<div class="panel">${facts([
      ['Id', html`<code>${broker.brokerId}</code>`],
      ['Reachable', reachable(figures, nowMs)],
      ['Queue', queueInWords(figures.queue)],
      ['Last sweep', sweepInWords(broker.sweep, sums?.registrations.total ?? null, nowMs)],
      ['SEMP version', broker.sempVersion ?? 'not known'],
      ['Paused', figures.accountPaused ? 'yes, with everything' : broker.paused ? 'yes' : 'no'],
    ])}</div>
<section aria-labelledby="registrations"><h2 id="registrations">Registrations</h2>${registrations(data)}</section>
<section aria-labelledby="protocols"><h2 id="protocols">Logins</h2>${logins(figures)}</section>
<p class="links"><a href="${withQuery(`${CONSOLE}/drift`, query)}">Drift of this broker</a> <a href="${withQuery(`${CONSOLE}/runs`, query)}">Runs on this broker</a></p>`,
  }
}

function reachable({ broker }: BrokerFigures, nowMs: number): Html {
  const { reachable: answer, checkedAtMs } = broker
  if (answer === null) return html`not tried yet`
  return html`${answer ? 'yes' : 'no'}, ${when(checkedAtMs, nowMs)}`
}

function trouble({ broker }: BrokerFigures, nowMs: number): Html {
  const { lookalikes } = broker
  return html`${
    broker.reachable === false
      ? html`<p class="notice bad" id="trouble"><strong>It cannot be reached.</strong> ${broker.error ?? 'Its last answer was none.'}${broker.restsUntilMs === null ? '' : html` It is tried again ${when(broker.restsUntilMs, nowMs)}.`}</p>`
      : ''
  }${
    broker.managed
      ? ''
      : html`<p class="notice" id="unmanaged">Its management settings are not complete, so no run reaches it. Import a portal file that has them, or give them over the portal API.</p>`
  }${
    lookalikes === null
      ? ''
      : html`<p class="notice warn" id="lookalikes">${counted(lookalikes.count, 'object looks', 'objects look')} like those of Keymesh and ${lookalikes.count === 1 ? 'is' : 'are'} not in its ledger${lookalikes.growing ? ', more than before' : ''}: ${lookalikes.examples.join(', ')}.</p>`
  }`
}

function registrations({ figures, astray, nowMs }: BrokerPageData): Html {
  const { sums, broker } = figures
  if (sums === null) return html`<p class="empty">They are being counted.</p>`
  const { registrations: all, reasons, oldestLagMs } = sums
  if (all.total === 0) return html`<p class="empty">No registration is on this broker.</p>`
  const listed = (state: string) => withQuery(`${CONSOLE}/registrations`, { broker: broker.brokerId, state })
  return html`<div class="panel sums">${sumsBar(all)}
<ul class="sums-legend">${partsOf(all).map(({ tone, words, count }) => html`<li><span class="dot fill-${tone}"></span> ${number(count)} ${words}</li>`)}</ul>
${oldestLagMs === null ? '' : html`<p class="faint">One has lagged for ${duration(oldestLagMs)}.</p>`}
${all.needPerson === 0 ? '' : html`<p>${counted(all.needPerson, 'registration does', 'registrations do')} not heal by ${all.needPerson === 1 ? 'itself' : 'themselves'}.</p>`}
${reasons.length === 0 ? '' : html`<ul class="reasons">${reasons.map(({ reason, count }) => html`<li><span class="numeric">${number(count)}</span> ${reason}</li>`)}</ul>`}</div>
${
  astray.count === 0
    ? ''
    : html`<div class="below">${table({
        caption: 'Registrations that are not in sync on this broker',
        columns: [{ name: 'Registration' }, { name: 'State' }, { name: 'Why' }, { name: 'Reconciled' }],
        rows: astray.pairs.map((pair) => ({
          id: `pair-${pair.registrationId}`,
          cells: [
            registrationLink(pair.registrationId),
            pairState(pair),
            pair.reason ?? '',
            when(pair.reconciledAtMs, nowMs),
          ],
        })),
        empty: '',
      })}
${astray.count <= astray.pairs.length ? '' : html`<p class="pager"><a href="${listed('astray')}">All ${number(astray.count)} that are not in sync</a></p>`}</div>`
}`
}

function logins({ broker, logins: found }: BrokerFigures): Html {
  return table({
    caption: 'Logins by protocol',
    columns: [
      { name: 'Protocol' },
      { name: 'Verdict' },
      { name: 'Accepted', numeric: true },
      { name: 'Rejected', numeric: true },
      { name: 'Not verified', numeric: true },
    ],
    rows: broker.protocols.map((protocol) => {
      const sums = found?.get(protocol)
      const words = found === null ? 'being counted' : protocolVerdict(sums)
      return {
        id: `protocol-${protocol}`,
        cells: [
          protocol,
          chip(protocolTone(sums), words),
          number(sums?.accepted ?? 0),
          number(sums?.rejected ?? 0),
          number(sums?.notVerified ?? 0),
        ],
      }
    }),
    empty: 'The broker exposes no protocol, so no login proves anything.',
  })
}

function brokerActions({ figures, isAdministrator }: BrokerPageData): Html {
  const { broker, accountPaused } = figures
  const path = brokerPath(broker.brokerId)
  const notAllowed = forAdministrators(isAdministrator)
  const plan = broker.managed
    ? html`<a class="button" href="${withQuery(PLAN_PATH, { broker: broker.brokerId })}">Plan</a>`
    : ''
  if (notAllowed !== null) {
    return html`${plan}<p class="why">Only an administrator of the account may reconcile or pause.</p>`
  }
  const isPaused = accountPaused || broker.paused
  const offBecause = !broker.managed
    ? 'Its management settings are not complete.'
    : isPaused
      ? `${accountPaused ? 'Everything' : 'The broker'} is paused; resume it first.`
      : null
  return html`${plan}${actionButton({
    id: 'reconcile',
    label: 'Reconcile now',
    path: RECONCILE_PATH,
    values: { broker: broker.brokerId, back: path },
    look: 'primary',
    offBecause,
    asks: {
      question: `Reconcile ${broker.name} now?`,
      explanation:
        'The broker is read as a whole, and what differs from what should be there is repaired as its policy allows. The plan shows what that would be.',
      fields: html`<label class="check"><input type="checkbox" name="disruptive" value="1"> <span>Also what waits because it drops live clients: they reconnect, if it comes within an hour</span></label>`,
    },
  })}${
    broker.paused
      ? actionButton({
          id: 'resume',
          label: 'Resume',
          path: `${path}/resume`,
          asks: { question: `Resume ${broker.name}?`, explanation: 'What lags there is reconciled at once.' },
        })
      : actionButton({
          id: 'pause',
          label: 'Pause',
          path: `${path}/pause`,
          asks: {
            question: `Pause ${broker.name}?`,
            explanation:
              'What runs ends; nothing else begins on this broker until somebody resumes it. New credentials and revocations wait too.',
          },
        })
  }`
}
