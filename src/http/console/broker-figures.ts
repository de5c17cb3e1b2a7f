import { html } from 'hono/html'
import type { Protocol } from '../../domain/catalogue.ts'
import type { JobCounts } from '../../queue/job-queue.ts'
import type { ProtocolLogins } from '../../store/logins-view.ts'
import type { MeshBroker, MeshSweep } from '../../store/mesh-view.ts'
import type { BrokerSums, RegistrationSums } from '../../store/registration-sums.ts'
import { counted, number, type Tone, when } from './components.ts'
import type { Html } from './page.ts'

// What the mesh and a broker's own page both show of a broker.

/** A broker with what was counted of it; null: not counted yet. */
export interface BrokerFigures {
  readonly broker: MeshBroker
  readonly accountPaused: boolean
  readonly sums: BrokerSums | null
  readonly logins: ReadonlyMap<Protocol, ProtocolLogins> | null
  readonly queue: JobCounts | null
}

export interface Standing {
  readonly tone: Tone
  readonly words: string
}

/** The one state that matters most. */
export function standingOf({ broker, accountPaused, sums }: BrokerFigures): Standing {
  if (!broker.managed) return { tone: 'idle', words: 'not managed' }
  if (broker.reachable === false) return { tone: 'bad', words: 'unreachable' }
  if (accountPaused || broker.paused) return { tone: 'idle', words: 'paused' }
  if (sums === null) return { tone: 'idle', words: 'counting' }
  const { error, conflict, refused, held, drifted, lagging, total } = sums.registrations
  if (error + conflict + refused > 0) return { tone: 'bad', words: 'error' }
  if (drifted + held > 0) return { tone: 'warn', words: 'drifted' }
  if (lagging > 0) return { tone: 'busy', words: 'lagging' }
  if (broker.reachable === null) return { tone: 'idle', words: 'not tried yet' }
  return total === 0 ? { tone: 'idle', words: 'no registrations' } : { tone: 'good', words: 'in sync' }
}

const PARTS = [
  { tone: 'good', words: 'in sync', of: ({ inSync }) => inSync },
  { tone: 'busy', words: 'lagging', of: ({ lagging }) => lagging },
  { tone: 'warn', words: 'drifted', of: ({ drifted }) => drifted },
  { tone: 'warn', words: 'held', of: ({ held }) => held },
  { tone: 'bad', words: 'in conflict', of: ({ conflict }) => conflict },
  { tone: 'bad', words: 'refused', of: ({ refused }) => refused },
  { tone: 'bad', words: 'in error', of: ({ error }) => error },
] as const satisfies readonly { tone: Tone; words: string; of: (sums: RegistrationSums) => number }[]

/** What there is of each state, without those of which there is none. */
export const partsOf = (sums: RegistrationSums) =>
  PARTS.map(({ tone, words, of }) => ({ tone, words, count: of(sums) })).filter(({ count }) => count > 0)

export const partsInWords = (sums: RegistrationSums): string =>
  sums.total === 0
    ? 'No registrations'
    : partsOf(sums)
        .map(({ count, words }) => `${number(count)} ${words}`)
        .join(', ')

const LEAST_SHARE = 1.5

/** How registrations stand, as one bar; what is rare is wide enough to be seen. */
export function sumsBar(sums: RegistrationSums): Html {
  const parts = partsOf(sums)
  const raised = parts.map((part) => ({ ...part, share: Math.max(LEAST_SHARE, (part.count / sums.total) * 100) }))
  const whole = raised.reduce((sum, { share }) => sum + share, 0)
  let left = 0
  const rects = raised.map(({ tone, share }) => {
    const width = (share / whole) * 100
    const rect = html`<rect class="fill-${tone}" x="${left.toFixed(2)}%" width="${width.toFixed(2)}%" height="100%"/>`
    left += width
    return rect
  })
  return html`<svg class="bar" role="img" aria-label="${partsInWords(sums)}">${rects}</svg>`
}

export function queueInWords(queue: JobCounts | null): Html {
  if (queue === null) return html`<span class="faint">not known</span>`
  const { waiting, active, delayed, failed } = queue
  const parts = [
    ...(waiting > 0 ? [`${number(waiting)} waiting`] : []),
    ...(active > 0 ? [`${number(active)} running`] : []),
    ...(delayed > 0 ? [`${number(delayed)} later`] : []),
  ]
  return html`${parts.length === 0 ? 'empty' : parts.join(', ')}${failed > 0 ? html` <span class="faint">(${number(failed)} given up this week)</span>` : ''}`
}

const SWEEP_WORDS: Readonly<Record<string, string>> = {
  done: 'all well',
  'with-errors': 'with errors',
  failed: 'failed',
  interrupted: 'interrupted',
}

/** Of a sweep that runs how many registrations it has behind it; `total` of how many. */
export function sweepInWords(sweep: MeshSweep | null, total: number | null, nowMs: number): Html {
  if (sweep === null) return html`<span class="faint">none yet</span>`
  if (sweep.outcome !== 'running') {
    const words = SWEEP_WORDS[sweep.outcome] ?? sweep.outcome
    return html`${when(sweep.finishedAtMs, nowMs)}, ${words}`
  }
  const { phase, done } = sweep.progress ?? { phase: 'starting', done: 0 }
  const isCounted = phase === 'reconciling' && total !== null && total > 0
  const bar = isCounted
    ? html`<progress value="${Math.min(done, total)}" max="${total}" aria-label="Progress of the sweep"></progress>`
    : html`<progress aria-label="The sweep runs"></progress>`
  return html`${phase}${done > 0 ? html`, ${number(done)} done` : ''} ${bar}`
}

export function protocolTone(logins: ProtocolLogins | undefined): Tone {
  if (logins === undefined) return 'idle'
  if (logins.rejected > 0) return 'bad'
  if (logins.acceptsAnything || logins.notVerified > 0) return 'warn'
  return logins.accepted > 0 ? 'good' : 'idle'
}

export function protocolInWords(logins: ProtocolLogins | undefined): string {
  if (logins === undefined) return 'no login was tried'
  if (logins.acceptsAnything) return 'accepts any password, so nothing is proved'
  const { accepted, rejected, notVerified } = logins
  const parts = [
    ...(rejected > 0 ? [`${counted(rejected, 'login')} rejected`] : []),
    ...(notVerified > 0 ? [`${number(notVerified)} not verified`] : []),
    ...(accepted > 0 ? [`${number(accepted)} accepted`] : []),
  ]
  return parts.length === 0 ? 'no login was tried' : parts.join(', ')
}

/** The same in a word or two, beside the numbers. */
export function protocolVerdict(logins: ProtocolLogins | undefined): string {
  if (logins === undefined) return 'not tried'
  if (logins.rejected > 0) return 'rejected'
  if (logins.acceptsAnything) return 'accepts any password'
  if (logins.notVerified > 0) return 'not verified'
  return logins.accepted > 0 ? 'accepted' : 'not tried'
}

const SIGNS: Readonly<Record<Tone, string>> = { good: '✓', bad: '✕', warn: '!', busy: '…', idle: '–' }

/** Every protocol that the broker exposes, with what logins over it came to. */
export function protocolList({ broker, logins }: BrokerFigures): Html {
  if (broker.protocols.length === 0) return html`<p class="faint">Exposes no protocol.</p>`
  return html`<ul class="protocols" aria-label="Protocols">${broker.protocols.map((protocol) => {
    const sums = logins?.get(protocol)
    const words = logins === null ? 'being counted' : protocolInWords(sums)
    const tone = protocolTone(sums)
    return html`<li class="${tone}" title="${protocol}: ${words}"><span aria-hidden="true">${SIGNS[tone]}</span> ${protocol}<span class="visually-hidden">: ${words}</span></li>`
  })}</ul>`
}
