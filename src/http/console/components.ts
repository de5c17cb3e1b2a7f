import { html } from 'hono/html'
import type { Html } from './page.ts'

/** good: as it should be. busy: on its way. warn: look at it. bad: it needs somebody. idle: nothing to say. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle'

/** One state in one or two words; the colour says nothing that the words do not. */
export const chip = (tone: Tone, words: string): Html => html`<span class="chip ${tone}">${words}</span>`

export interface PageHead {
  readonly title: string
  /** From the section down to the page above this one. */
  readonly above?: readonly { readonly name: string; readonly path: string }[]
  /** Chips beside the title. */
  readonly beside?: Html
  /** A sentence below the title. */
  readonly lede?: Html | string
  /** Buttons on the right. */
  readonly actions?: Html
}

/** The beginning of every page's content: the page's only `h1`. */
export function pageHead({ title, above = [], beside, lede, actions }: PageHead): Html {
  return html`<div class="page-head">
<div>
${
  above.length === 0
    ? ''
    : html`<nav aria-label="Above this page"><ol class="crumbs">${above.map(({ name, path }) => html`<li><a href="${path}">${name}</a></li>`)}</ol></nav>`
}
<h1>${title}${beside === undefined ? '' : html` <span class="beside">${beside}</span>`}</h1>
${lede === undefined ? '' : html`<p class="lede">${lede}</p>`}
</div>
${actions === undefined ? '' : html`<div class="actions">${actions}</div>`}
</div>`
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `3 min ago`, `in 2 h`; the whole time in UTC when pointed at. */
export function when(atMs: number | null, nowMs: number, never = 'never'): Html {
  if (atMs === null) return html`<span class="faint">${never}</span>`
  const iso = new Date(atMs).toISOString()
  const shown = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
  return html`<time datetime="${iso}" title="${shown}">${distance(atMs - nowMs)}</time>`
}

function distance(ms: number): string {
  if (Math.abs(ms) < MINUTE) return ms > 0 ? 'in a moment' : 'just now'
  return ms < 0 ? `${duration(-ms)} ago` : `in ${duration(ms)}`
}

/** `45 s`, `3 min`, `5 h`, `12 d`. */
export function duration(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.round(ms / 1000))} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`
  return `${Math.floor(ms / DAY)} d`
}

export const number = (value: number): string => value.toLocaleString('en')

/** `1 broker`, `2,000 brokers`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

/** A definition list: what, and how it is. */
export function facts(entries: readonly (readonly [term: string, value: Html | string])[]): Html {
  return html`<dl class="facts">${entries.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`
}

export interface Table {
  /** Says what the rows are; for screen readers. */
  readonly caption: string
  readonly columns: readonly { readonly name: string; readonly numeric?: boolean }[]
  /** The first cell names the row. An id keeps a row the same while the page is renewed. */
  readonly rows: readonly { readonly id: string; readonly cells: readonly (Html | string)[] }[]
  /** What is said instead of a table without rows. */
  readonly empty: Html | string
}

/** On a narrow screen each row is a card, and each cell says its column. */
export function table({ caption, columns, rows, empty }: Table): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`
  const numeric = (index: number): string => (columns[index]?.numeric === true ? 'numeric' : '')
  return html`<table class="rows">
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${columns.map(({ name }, index) => html`<th scope="col" class="${numeric(index)}">${name}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ({ id, cells }) => html`<tr id="${id}">${cells.map((cell, index) => {
    const label = columns[index]?.name ?? ''
    return index === 0
      ? html`<th scope="row" data-label="${label}">${cell}</th>`
      : html`<td class="${numeric(index)}" data-label="${label}">${cell}</td>`
  })}</tr>
`,
)}
</tbody>
</table>`
}

export interface Pager {
  readonly path: string
  /** What else is asked for, such as `{ search: 'app' }`; what is undefined or empty is left out. */
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly pageNumber: number
  readonly pageSize: number
  readonly count: number
  /** Of one item, and of many. */
  readonly words: readonly [one: string, many: string]
}

/** How many there are, and the way to the pages before and after. */
export function pager({ path, query = {}, pageNumber, pageSize, count, words }: Pager): Html {
  const pages = Math.max(1, Math.ceil(count / pageSize))
  const link = (to: number, name: string): Html =>
    to < 1 || to > pages
      ? html`<span class="faint" aria-hidden="true">${name}</span>`
      : html`<a href="${withQuery(path, { ...query, page: to === 1 ? undefined : String(to) })}">${name}</a>`
  const position = pages === 1 ? '' : `, page ${number(pageNumber)} of ${number(pages)}`
  return html`<nav class="pager" aria-label="Pages"><span>${counted(count, ...words)}${position}</span>${
    pages === 1
      ? ''
      : html`<span class="pager-links">${link(pageNumber - 1, 'Before')} ${link(pageNumber + 1, 'Next')}</span>`
  }</nav>`
}

/** What is undefined or empty is left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** One segment of a path, or a part of an `id`. */
export const segment = encodeURIComponent
