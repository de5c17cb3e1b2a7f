import { html } from 'hono/html'
import type { CatalogueCounts, CatalogueProduct, CatalogueVersion, ListedEventApi } from '../../store/catalogue-view.ts'
import { CONSOLE } from './access.ts'
import { chip, counted, number, pageHead, segment, type Tone, table, withQuery } from './components.ts'
import type { Html, Page } from './page.ts'
import { choices, olderLink } from './record-filters.ts'
import { eventApiPath, productPath } from './record-parts.ts'

export const CATALOGUE_PATH = `${CONSOLE}/catalogue`
export const EVENT_APIS_PATH = `${CATALOGUE_PATH}/event-apis`

export interface CatalogueQuery {
  readonly search?: string | undefined
  readonly shown?: 'visible' | 'hidden' | undefined
  /** Where the list goes on. */
  readonly after?: string | undefined
}

export interface CataloguePageData {
  readonly query: CatalogueQuery
  readonly counts: CatalogueCounts
  readonly products: readonly CatalogueProduct[]
  /** The cursor of the next page; null at the end. */
  readonly next: string | null
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  DRAFT: 'idle',
  RELEASED: 'good',
  DEPRECATED: 'warn',
  RETIRED: 'idle',
  DELETED: 'idle',
}

export const stateChip = (state: string): Html => chip(STATE_TONES[state] ?? 'idle', state.toLowerCase())

export const visibilityChip = (visible: boolean): Html =>
  visible ? chip('good', 'visible') : chip('warn', 'not visible')

export function cataloguePage({ query, counts, products, next }: CataloguePageData): Page {
  const { visible, hidden } = counts
  const standing = `${counted(visible + hidden, 'product')}, ${number(visible)} visible.`
  return {
    title: 'Catalogue',
    section: 'catalogue',
    ...(query.after === undefined ? { live: standing } : {}),
    content: html`${pageHead({
      title: 'Catalogue',
      lede: 'Event API Products with their plans and Event APIs, as the APIM API shows them, and why it does not show one.',
    })}
${tabs('products')}
<form class="filters" method="get" action="${CATALOGUE_PATH}" role="search" aria-label="Filter products">
<div class="wide"><label for="search">Product</label>
<input id="search" name="search" type="search" value="${query.search ?? ''}" placeholder="Part of an id or a name" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="256"></div>
<div><label for="shown">Which</label>
<select id="shown" name="shown">${choices(
      `All (${number(visible + hidden)})`,
      [
        ['visible', `Visible (${number(visible)})`],
        ['hidden', `Not visible (${number(hidden)})`],
      ],
      query.shown,
    )}</select></div>
<button type="submit">Filter</button>
${query.search === undefined && query.shown === undefined ? '' : html`<a class="button" href="${CATALOGUE_PATH}">Clear</a>`}
</form>
${productTable(products)}
${olderLink({ older: next, after: query.after, names: ['First', 'Next'], pathOf: (after) => withQuery(CATALOGUE_PATH, { ...query, after }) })}`,
  }
}

export function tabs(current: 'products' | 'event-apis'): Html {
  const tab = (name: typeof current, words: string, path: string): Html => {
    const here = name === current ? html` aria-current="page"` : ''
    return html`<li><a href="${path}"${here}>${words}</a></li>`
  }
  return html`<nav aria-label="Catalogue"><ul class="switch tabs">${tab('products', 'Products', CATALOGUE_PATH)}${tab('event-apis', 'Event APIs', EVENT_APIS_PATH)}</ul></nav>`
}

function productTable(products: readonly CatalogueProduct[]): Html {
  return table({
    caption: 'Products, by id',
    columns: [
      { name: 'Product' },
      { name: 'Version' },
      { name: 'Visibility' },
      { name: 'Plans' },
      { name: 'Event APIs', numeric: true },
      { name: 'Brokers', numeric: true },
    ],
    rows: products.map((product) => {
      const shown = shownVersion(product)
      return {
        id: `product-${segment(product.id)}`,
        cells: [
          html`<a href="${productPath(product.id)}">${product.name}</a> <span class="faint">${product.id}</span>`,
          shown === undefined ? html`<span class="faint">none</span>` : versionCell(product, shown),
          visibilityCell(shown),
          shown === undefined || shown.plans.length === 0
            ? html`<span class="faint">none</span>`
            : shown.plans.map(({ name }) => name).join(', '),
          number(shown?.eventApis.length ?? 0),
          number(shown?.brokers.length ?? 0),
        ],
      }
    }),
    empty: 'No product is like that.',
  })
}

/** What the API shows of the product; the newest when it shows nothing. */
export const shownVersion = ({ versions }: CatalogueProduct): CatalogueVersion | undefined =>
  versions.find(({ visible }) => visible) ?? versions[0]

function versionCell({ versions }: CatalogueProduct, shown: CatalogueVersion): Html {
  const others = versions.length - 1
  return html`<div>${shown.version} ${stateChip(shown.state)}${others === 0 ? '' : html` <span class="faint">and ${counted(others, 'other')}</span>`}</div>`
}

function visibilityCell(shown: CatalogueVersion | undefined): Html {
  if (shown === undefined)
    return html`<div>${visibilityChip(false)} <span class="faint">It has no version.</span></div>`
  const broken = shown.rules.filter(({ holds }) => !holds)
  const [first] = broken
  if (first === undefined) return visibilityChip(true)
  const more = broken.length === 1 ? '' : ` And ${counted(broken.length - 1, 'more reason')}.`
  return html`<div>${visibilityChip(false)} <span class="faint">${first.explanation}${more}</span></div>`
}

export interface EventApisPageData {
  readonly query: Pick<CatalogueQuery, 'search' | 'after'>
  readonly eventApis: readonly ListedEventApi[]
  /** The cursor of the next page; null at the end. */
  readonly next: string | null
}

export function eventApisPage({ query, eventApis, next }: EventApisPageData): Page {
  return {
    title: 'Event APIs',
    section: 'catalogue',
    content: html`${pageHead({ title: 'Event APIs', lede: 'Each version with its channels and the products that hold it.' })}
${tabs('event-apis')}
<form class="filters" method="get" action="${EVENT_APIS_PATH}" role="search" aria-label="Filter Event APIs">
<div class="wide"><label for="search">Event API</label>
<input id="search" name="search" type="search" value="${query.search ?? ''}" placeholder="Part of an id or a name" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="256"></div>
<button type="submit">Filter</button>
${query.search === undefined ? '' : html`<a class="button" href="${EVENT_APIS_PATH}">Clear</a>`}
</form>
${table({
  caption: 'Event APIs, by id and version',
  columns: [
    { name: 'Event API' },
    { name: 'Version' },
    { name: 'Channels', numeric: true },
    { name: 'In product versions', numeric: true },
  ],
  rows: eventApis.map(({ id, version, name, channels, products }) => ({
    id: `event-api-${segment(id)}-${segment(version)}`,
    cells: [
      html`<a href="${eventApiPath(id)}#v${version}">${name}</a> <span class="faint">${id}</span>`,
      version,
      number(channels),
      products === 0 ? html`<span class="faint">none</span>` : number(products),
    ],
  })),
  empty: 'No Event API is like that.',
})}
${olderLink({ older: next, after: query.after, names: ['First', 'Next'], pathOf: (after) => withQuery(EVENT_APIS_PATH, { ...query, after }) })}`,
  }
}
