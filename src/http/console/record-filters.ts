import { html } from 'hono/html'
import type { Html } from './page.ts'

export interface NamedBroker {
  readonly id: string
  readonly name: string
}

/** The options of a select; the first stands for no choice. */
export function choices(
  all: string,
  options: readonly (readonly [value: string, name: string])[],
  chosen: string | undefined,
): Html {
  const known = options.some(([value]) => value === chosen)
  // What an address asks for stays visible, though the list does not have it.
  const given: readonly (readonly [string, string])[] =
    chosen === undefined || known ? options : [...options, [chosen, chosen]]
  return html`<option value="">${all}</option>${given.map(
    ([value, name]) => html`<option value="${value}"${value === chosen ? html` selected` : ''}>${name}</option>`,
  )}`
}

/** Brokers by name; the id is shown where the name is another. */
export const brokerChoices = (all: string, brokers: readonly NamedBroker[], chosen: string | undefined): Html =>
  choices(
    all,
    brokers.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`]),
    chosen,
  )

export interface OlderLink {
  /** The cursor of the next page; null at the end. */
  readonly older: string | null
  /** The cursor of this page; undefined on the first. */
  readonly after: string | undefined
  readonly pathOf: (after: string | undefined) => string
  readonly names?: readonly [first: string, next: string]
}

/** The way through a list that has no end in sight: on, and back to its beginning. */
export function olderLink({ older, after, pathOf, names = ['Newest', 'Older'] }: OlderLink): Html {
  if (older === null && after === undefined) return html``
  const [first, next] = names
  return html`<nav class="pager" aria-label="Pages"><span class="pager-links">${
    after === undefined ? '' : html`<a href="${pathOf(undefined)}">${first}</a>`
  }</span><span class="pager-links">${older === null ? html`<span>No more</span>` : html`<a href="${pathOf(older)}" rel="next">${next}</a>`}</span></nav>`
}
