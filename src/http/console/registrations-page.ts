import { html } from 'hono/html'
import type { RegistrationStateFilter, RegistrationSummary } from '../../store/registrations-overview.ts'
import { CONSOLE } from './access.ts'
import { chip, counted, number, pageHead, pager, table } from './components.ts'
import type { Html, Page } from './page.ts'
import { brokerChoices, choices, type NamedBroker } from './record-filters.ts'
import { registrationPath } from './record-parts.ts'

export const REGISTRATIONS_PATH = `${CONSOLE}/registrations`

export interface RegistrationsPageData {
  readonly query: RegistrationsQuery
  readonly brokers: readonly NamedBroker[]
  readonly registrations: readonly RegistrationSummary[]
  readonly count: number
  readonly pageSize: number
}

export interface RegistrationsQuery {
  readonly search?: string | undefined
  readonly state?: RegistrationStateFilter | undefined
  readonly broker?: string | undefined
  readonly page: number
}

const STATES: readonly (readonly [RegistrationStateFilter, string])[] = [
  ['astray', 'Not in sync'],
  ['waiting', 'Waiting for a decision'],
  ['failing', 'With a request in error'],
  ['paused', 'Paused'],
]

/** All registrations of the account, to be searched. */
export function registrationsPage(data: RegistrationsPageData): Page {
  const { query, registrations, count, pageSize } = data
  const { search, state, broker, page } = query
  const isSearch = search !== undefined || state !== undefined || broker !== undefined
  return {
    title: 'Registrations',
    section: 'registrations',
    live: `${counted(count, 'registration')}${isSearch ? ' found' : ''}.`,
    content: html`${pageHead({
      title: 'Registrations',
      lede: 'Applications, what they may use, and how they stand on their brokers.',
    })}
${filters(data)}
${table({
  caption: 'Registrations',
  columns: [
    { name: 'Registration' },
    { name: 'State' },
    { name: 'Access requests' },
    { name: 'Credentials', numeric: true },
    { name: 'Brokers', numeric: true },
  ],
  rows: registrations.map((each) => ({
    id: `registration-${each.registrationId}`,
    cells: [nameOf(each), stateOf(each), requestsOf(each), number(each.credentials), number(each.brokers)],
  })),
  empty: isSearch
    ? html`No registration matches. <a href="${REGISTRATIONS_PATH}">Show all</a>`
    : 'There is no registration yet. Portals make them over the APIM API, and portal files declare them.',
})}
${pager({
  path: REGISTRATIONS_PATH,
  query: { search, state, broker },
  pageNumber: page,
  pageSize,
  count,
  words: ['registration', 'registrations'],
})}`,
  }
}

function filters({ query, brokers }: RegistrationsPageData): Html {
  return html`<form class="filters" method="get" action="${REGISTRATIONS_PATH}" role="search" aria-label="Registrations">
<div class="wide"><label for="search">Name, id, owner or client username</label>
<input id="search" name="search" type="search" value="${query.search ?? ''}" autocapitalize="none" autocomplete="off" spellcheck="false" maxlength="200"></div>
<div><label for="state">State</label><select id="state" name="state">${choices('Any', STATES, query.state)}</select></div>
<div><label for="broker">Broker</label><select id="broker" name="broker">${brokerChoices('Any', brokers, query.broker)}</select></div>
<button type="submit">Search</button>
</form>`
}

const nameOf = ({ registrationId, name, sourceOwner }: RegistrationSummary): Html =>
  html`<a href="${registrationPath(registrationId)}">${name}</a> <span class="faint">${registrationId}${sourceOwner === null ? '' : ` · ${sourceOwner}`}</span>`

function stateOf({ brokers, astray, paused }: RegistrationSummary): Html {
  const standing =
    astray > 0
      ? chip('warn', `not in sync on ${number(astray)}`)
      : brokers === 0
        ? chip('idle', 'on no broker')
        : chip('good', 'in sync')
  return html`${standing}${paused ? html` ${chip('idle', 'paused')}` : ''}`
}

function requestsOf({ accessRequests, waiting, failing }: RegistrationSummary): Html {
  const notes = html`${waiting > 0 ? html` ${chip('warn', counted(waiting, 'waits', 'wait'))}` : ''}${failing > 0 ? html` ${chip('bad', `${number(failing)} in error`)}` : ''}`
  return html`${number(accessRequests)}${notes}`
}
