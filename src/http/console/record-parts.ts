import { html } from 'hono/html'
import { OBJECT_KINDS, type ObjectKind } from '../../domain/broker-object.ts'
import { REASONS } from '../../reconcile/reasons.ts'
import { MEMBER_WORDS, OBJECT_WORDS } from '../../reconcile/render.ts'
import type { DriftView } from '../../store/drift-view.ts'
import { CONSOLE } from './access.ts'
import { chip, segment, type Tone, table } from './components.ts'
import type { Html } from './page.ts'

// What pages about drift, runs and plans share.

export const driftPath = (id: number): string => `${CONSOLE}/drift/${id}`
export const runPath = (id: string): string => `${CONSOLE}/runs/${segment(id)}`
export const brokerPath = (id: string): string => `${CONSOLE}/brokers/${segment(id)}`
export const registrationPath = (id: string): string => `${CONSOLE}/registrations/${segment(id)}`
export const productPath = (id: string): string => `${CONSOLE}/catalogue/products/${segment(id)}`
export const eventApiPath = (id: string): string => `${CONSOLE}/catalogue/event-apis/${segment(id)}`

export const brokerLink = (id: string): Html => html`<a href="${brokerPath(id)}">${id}</a>`

/** Null stands for all registrations of the broker. */
export const registrationLink = (id: string | null, nobody = 'shared by registrations'): Html =>
  id === null ? html`<span class="faint">${nobody}</span>` : html`<a href="${registrationPath(id)}">${id}</a>`

/** `10 Mar 2026, 12:34:56 UTC` */
export function moment(atMs: number): Html {
  const iso = new Date(atMs).toISOString()
  return html`<time datetime="${iso}">${dayName(atMs)}, ${iso.slice(11, 19)} UTC</time>`
}

export const dayName = (atMs: number): string =>
  new Date(atMs).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })

const isObjectKind = (kind: string): kind is ObjectKind => OBJECT_KINDS.some((each) => each === kind)

export const kindWords = (kind: string): string => (isObjectKind(kind) ? OBJECT_WORDS[kind] : kind)

/** `client username app-1` */
export const objectName = ({ objectKind, objectName: name }: Pick<DriftView, 'objectKind' | 'objectName'>): Html =>
  html`${kindWords(objectKind)} <code>${name}</code>`

const isReason = (reason: string): reason is keyof typeof REASONS => reason in REASONS

/** The sentence of a reason; the word itself when a newer program wrote it. */
export const reasonSentence = (reason: string): string => (isReason(reason) ? REASONS[reason] : reason)

const KIND_TONES: Readonly<Record<string, Tone>> = {
  missing: 'bad',
  changed: 'warn',
  unexpected: 'warn',
  unsuitable: 'warn',
  conflict: 'bad',
  password: 'bad',
}

export const driftKind = (kind: string): Html => chip(KIND_TONES[kind] ?? 'warn', kind)

/** What became of a difference. */
export function driftOutcome({ action, repairedAtMs }: Pick<DriftView, 'action' | 'repairedAtMs'>): Html {
  if (repairedAtMs !== null) return chip('good', action === 'repaired' ? 'repaired' : 'gone')
  switch (action) {
    case 'held':
      return chip('warn', 'held back')
    case 'failed':
      return chip('bad', 'repair failed')
    default:
      return chip('warn', 'open')
  }
}

export const attributeWords = (name: string): string =>
  Object.hasOwn(MEMBER_WORDS, name) ? `${MEMBER_WORDS[name as keyof typeof MEMBER_WORDS]}s` : name

const value = (item: unknown): Html => {
  if (item === undefined) return html`<span class="faint">not known</span>`
  if (item === null) return html`<span class="faint">not set</span>`
  if (Array.isArray(item)) {
    if (item.length === 0) return html`<span class="faint">none</span>`
    return html`<ul class="members">${item.map((member) => html`<li><code>${plain(member)}</code></li>`)}</ul>`
  }
  return html`<code>${plain(item)}</code>`
}

const plain = (item: unknown): string => (typeof item === 'object' ? JSON.stringify(item) : String(item))

const COLUMNS = {
  state: ['What', 'Found on the broker', 'Should be'],
  logins: ['What', 'Before', 'After the password was written again'],
} as const

/** Before and after side by side, with the column names that suit the kind. */
export function comparison({ id, kind, before, after }: Pick<DriftView, 'id' | 'kind' | 'before' | 'after'>): Html {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  if (names.length === 0) return html`<p class="faint">There is nothing to compare.</p>`
  const wasGone = kind === 'missing'
  return table({
    caption: 'Before and after, side by side',
    columns: COLUMNS[kind === 'password' ? 'logins' : 'state'].map((name) => ({ name })),
    rows: names.map((name, index) => {
      const isMember = Array.isArray(before[name]) || Array.isArray(after[name])
      if (!isMember && name in before && name in after && before[name] === after[name])
        return same(`difference-${id}-${index}`, name, after[name])
      return {
        id: `difference-${id}-${index}`,
        cells: [
          html`${attributeWords(name)}`,
          wasGone ? html`<span class="faint">gone</span>` : sideOf(before[name], isMember ? 'added there' : ''),
          sideOf(after[name], isMember && !wasGone ? 'missing there' : ''),
        ],
      }
    }),
    empty: '',
  })
}

/** A conflict has all attributes, and some do not differ. */
const same = (id: string, name: string, item: unknown) => ({
  id,
  cells: [
    html`<span class="faint same">${attributeWords(name)}</span>`,
    html`<span class="faint">${plain(item)}</span>`,
    html`<span class="faint">the same</span>`,
  ],
})

/** Members that are the same on both sides are not in a difference. */
const sideOf = (item: unknown, note: string): Html => {
  const shown = value(item)
  return note === '' || !Array.isArray(item) || item.length === 0
    ? html`<div>${shown}</div>`
    : html`<div>${shown}<span class="faint">${note}</span></div>`
}

/** One line for a list. */
export function inShort({
  kind,
  before,
  after,
  reason,
}: Pick<DriftView, 'kind' | 'before' | 'after' | 'reason'>): Html {
  if (kind === 'missing') return html`The object was gone.`
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const [first, ...others] = names
  if (kind === 'conflict' || first === undefined) return html`${reasonSentence(reason)}`
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  return html`<span class="change">${attributeWords(first)}: ${oneLine(before[first], 'added')} <span aria-hidden="true">→</span><span class="visually-hidden">, should be</span> ${oneLine(after[first], 'missing')}${more}</span>`
}

const MOST_CHARACTERS = 60

function oneLine(item: unknown, ofMembers: string): Html {
  if (Array.isArray(item)) return html`${item.length} ${ofMembers}`
  if (item === null || item === undefined) return value(item)
  const text = plain(item)
  return html`<code>${text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text}</code>`
}

/** What stands between backticks is code. */
export const withCode = (text: string): readonly Html[] =>
  text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))
