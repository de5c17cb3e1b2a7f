import { html } from 'hono/html'
import type { EnvironmentView, EventMeshView, MeshBroker, MeshView } from '../../store/mesh-view.ts'
import { NO_SUMS } from '../../store/registration-sums.ts'
import { CONSOLE } from './access.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import {
  type BrokerFigures,
  partsInWords,
  protocolList,
  queueInWords,
  standingOf,
  sumsBar,
  sweepInWords,
} from './broker-figures.ts'
import { chip, counted, pageHead, type Tone, withQuery } from './components.ts'
import type { FleetFigures } from './fleet-figures.ts'
import type { Html, Page } from './page.ts'
import { RECONCILE_PATH } from './plan-page.ts'
import { brokerPath } from './record-parts.ts'

export interface MeshPageData {
  readonly mesh: MeshView
  readonly figures: FleetFigures
  /** Access requests that wait for a decision. */
  readonly waiting: number
  readonly nowMs: number
  readonly isAdministrator: boolean
}

/** Environments, event meshes and brokers, as a map. */
export function meshPage(data: MeshPageData): Page {
  const { mesh, waiting } = data
  const brokers = [
    ...mesh.environments.flatMap(({ eventMeshes }) => eventMeshes.flatMap((each) => each.brokers)),
    ...mesh.unplaced,
  ]
  const summary = summaryOf(brokers.map((broker) => figuresOf(data, broker)))
  return {
    title: 'Mesh',
    section: 'mesh',
    live: summary,
    content: html`${pageHead({
      title: 'Mesh',
      ...(mesh.paused ? { beside: chip('idle', 'everything is paused') } : {}),
      lede: summary,
      actions: meshActions(data, brokers),
    })}
${
  waiting === 0
    ? ''
    : html`<p class="notice warn" id="waiting"><a href="${withQuery(`${CONSOLE}/registrations`, { state: 'waiting' })}">${counted(waiting, 'access request waits', 'access requests wait')} for a decision</a></p>`
}
${
  brokers.length === 0
    ? html`<p class="empty">There is no broker yet. Declare one in a portal file, or over the portal API.</p>`
    : html`${mesh.environments.map((environment) => environmentPart(data, environment))}${unplacedPart(data, mesh.unplaced)}`
}`,
  }
}

export function figuresOf(
  { mesh, figures }: Pick<MeshPageData, 'mesh' | 'figures'>,
  broker: MeshBroker,
): BrokerFigures {
  const { brokerId } = broker
  const { registrations, logins, queues } = figures
  return {
    broker,
    accountPaused: mesh.paused,
    sums: registrations === null ? null : (registrations.get(brokerId) ?? NO_SUMS),
    logins: logins === null ? null : (logins.get(brokerId) ?? new Map()),
    queue: queues?.get(brokerId) ?? null,
  }
}

const WORST_FIRST: readonly Tone[] = ['bad', 'warn', 'busy', 'idle', 'good']

/** `12 brokers: 1 unreachable, 1 drifted, 10 in sync.` */
function summaryOf(brokers: readonly BrokerFigures[]): string {
  const standings = brokers
    .map(standingOf)
    .toSorted((one, other) => WORST_FIRST.indexOf(one.tone) - WORST_FIRST.indexOf(other.tone))
  const counts = new Map<string, number>()
  for (const { words } of standings) counts.set(words, (counts.get(words) ?? 0) + 1)
  const parts = [...counts].map(([words, count]) => `${count} ${words}`)
  return `${counted(brokers.length, 'broker')}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}.`
}

function meshActions({ mesh, isAdministrator }: MeshPageData, brokers: readonly MeshBroker[]): Html {
  const notAllowed = forAdministrators(isAdministrator)
  const managed = brokers.filter((broker) => broker.managed).length
  const nothing = managed === 0 ? 'No broker has complete management settings.' : null
  const pausing = mesh.paused
    ? actionButton({
        id: 'resume-all',
        label: 'Resume everything',
        path: `${CONSOLE}/resume`,
        offBecause: notAllowed,
        asks: {
          question: 'Resume everything?',
          explanation:
            'What was put off is done at once. Brokers and registrations that are paused themselves stay so.',
        },
      })
    : actionButton({
        id: 'pause-all',
        label: 'Pause everything',
        path: `${CONSOLE}/pause`,
        offBecause: notAllowed,
        asks: {
          question: 'Pause everything of this account?',
          explanation:
            'What runs ends; nothing else begins until somebody resumes. New credentials and revocations wait too.',
        },
      })
  if (notAllowed !== null) return html`<p class="why">${notAllowed.replace('do this', 'reconcile or pause')}</p>`
  return html`${actionButton({
    id: 'reconcile-all',
    label: 'Reconcile all',
    path: RECONCILE_PATH,
    values: { back: CONSOLE },
    look: 'primary',
    offBecause: nothing ?? (mesh.paused ? 'Everything is paused; resume it first.' : null),
    asks: {
      question: `Reconcile ${counted(managed, 'broker')} now?`,
      explanation:
        'Each broker is read as a whole, and what differs is repaired as its policy allows. Actions that drop live clients wait as they always do.',
    },
  })}${pausing}`
}

const environmentPart = (data: MeshPageData, { id, name, eventMeshes }: EnvironmentView): Html => html`
<section aria-labelledby="environment-${id}" class="environment" id="in-${id}">
<h2 id="environment-${id}"><span class="kicker">Environment</span> ${name}</h2>
${
  eventMeshes.length === 0
    ? html`<p class="empty">No event mesh is modelled here, so no broker of it is used.</p>`
    : eventMeshes.map((mesh) => eventMeshPart(data, mesh))
}
</section>`

const eventMeshPart = (data: MeshPageData, { id, name, brokers }: EventMeshView): Html => html`
<section class="event-mesh" aria-labelledby="mesh-${id}" id="of-${id}">
<h3 id="mesh-${id}"><span class="kicker">Event mesh</span> ${name} <span class="faint mesh-count">${counted(brokers.length, 'broker')}</span></h3>
${brokers.length === 0 ? html`<p class="empty">No broker belongs to it.</p>` : cards(data, brokers)}
</section>`

const unplacedPart = (data: MeshPageData, brokers: readonly MeshBroker[]): Html =>
  brokers.length === 0
    ? html``
    : html`<section aria-labelledby="unplaced" class="environment" id="in-no-mesh">
<h2 id="unplaced">In no event mesh</h2>
<p class="faint">No product is offered on these brokers until they belong to an event mesh of an environment.</p>
${cards(data, brokers)}
</section>`

const cards = (data: MeshPageData, brokers: readonly MeshBroker[]): Html =>
  html`<ul class="cards">${brokers.map((broker) => card(figuresOf(data, broker), data.nowMs))}</ul>`

function card(figures: BrokerFigures, nowMs: number): Html {
  const { broker, sums, queue } = figures
  const { tone, words } = standingOf(figures)
  return html`<li class="card broker-card edge-${tone}" id="broker-${broker.brokerId}">
<div class="card-head"><h4><a href="${brokerPath(broker.brokerId)}">${broker.name}</a></h4><span class="chips">${chip(tone, words)}${broker.paused && words !== 'paused' ? html` ${chip('idle', 'paused')}` : ''}</span></div>
${broker.name === broker.brokerId ? '' : html`<p class="faint card-id">${broker.brokerId}</p>`}
${broker.reachable === false && broker.error !== null ? html`<p class="card-error">${broker.error}</p>` : ''}
${sums === null ? html`<p class="faint">Registrations are being counted.</p>` : html`${sums.registrations.total === 0 ? '' : sumsBar(sums.registrations)}<p>${partsInWords(sums.registrations)}</p>`}
<dl class="pairs">
<div><dt>Queue</dt><dd>${queueInWords(queue)}</dd></div>
<div><dt>Sweep</dt><dd>${sweepInWords(broker.sweep, sums?.registrations.total ?? null, nowMs)}</dd></div>
</dl>
${protocolList(figures)}
</li>`
}
