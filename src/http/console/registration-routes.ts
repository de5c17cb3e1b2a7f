import { z } from 'zod'
import type { AccountId } from '../../domain/ids.ts'
import { isAdministrator } from '../../domain/permissions.ts'
import { notFound } from '../../domain/refusals.ts'
import { readAuditOfRegistration } from '../../store/audit.ts'
import { readDrift } from '../../store/drift-view.ts'
import { explainRegistration } from '../../store/explain-registration.ts'
import { readAccessRequestQueue } from '../../store/portal-access-requests.ts'
import { findRegistration } from '../../store/registrations-change.ts'
import {
  isRegistrationPaused,
  listCredentialFacts,
  REGISTRATION_FILTERS,
  searchRegistrations,
} from '../../store/registrations-overview.ts'
import { readRunsAfter } from '../../store/runs-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { pauseScope, resumeScope } from '../operations/pause-requests.ts'
import { decide } from '../portal/access-requests.ts'
import { CHANGE, HIDDEN, LOOK } from './access.ts'
import { namedBrokers } from './broker-standing.ts'
import { leaveNotice } from './notices.ts'
import { resumedNotice } from './pause-notice.ts'
import { registrationPath } from './record-parts.ts'
import { named, oneOfThese } from './record-queries.ts'
import { historyOf } from './registration-history.ts'
import { registrationPage } from './registration-page.ts'
import { registrationsPage } from './registrations-page.ts'
import { seeOther, sendPage } from './send-page.ts'

const PAGE_SIZE = 50
const HISTORY_LENGTH = 25
const MAX_REQUESTS = 500
const MAX_PAGE = 100_000

const listQuery = z.object({
  search: named,
  state: oneOfThese(REGISTRATION_FILTERS),
  broker: named,
  page: z.coerce.number().int().min(1).max(MAX_PAGE).catch(1),
})
const id = z.string().min(1).max(256)
const params = z.object({ registrationId: id })
const requestParams = z.object({ registrationId: id, accessRequestId: id })

/** The registrations of the account, and what can be decided about them. */
export async function registrationPages(console: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  console.get(
    '/registrations',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: listQuery } },
    async (request, reply) => {
      const { accountId } = request.principal
      const { query } = request
      const [found, brokers] = await Promise.all([
        searchRegistrations(
          db,
          { accountId, text: query.search, state: query.state, brokerId: query.broker },
          { limit: PAGE_SIZE, offset: (query.page - 1) * PAGE_SIZE },
        ),
        namedBrokers(db, accountId),
      ])
      return await sendPage(request, reply, registrationsPage({ query, brokers, ...found, pageSize: PAGE_SIZE }))
    },
  )
  console.get(
    '/registrations/:registrationId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params } },
    async (request, reply) => {
      const { accountId, roles } = request.principal
      const { registrationId } = request.params
      const seen = { nowMs: dependencies.now(), isAdministrator: isAdministrator(roles) }
      const found = await readRegistration(dependencies, accountId, registrationId, seen.isAdministrator)
      return await sendPage(request, reply, registrationPage({ registrationId, ...found, ...seen }))
    },
  )
  pauses(console, dependencies)
  decisions(console, dependencies)
}

/** Everything of a registration but its secrets. The trail of calls is for administrators. */
async function readRegistration(
  { db }: HttpDependencies,
  accountId: AccountId,
  registrationId: string,
  withCalls: boolean,
) {
  const explained = await explainRegistration(db, accountId, registrationId)
  if (explained === null) throw notFound('registration', registrationId)
  const [registration, requests, credentials, isPaused, calls, runs, drift] = await Promise.all([
    findRegistration(db, { accountId, registrationId }),
    readAccessRequestQueue(db, { accountId, registrationId }, { limit: MAX_REQUESTS, offset: 0 }),
    listCredentialFacts(db, accountId, registrationId),
    isRegistrationPaused(db, accountId, registrationId),
    withCalls ? readAuditOfRegistration(db, accountId, registrationId, HISTORY_LENGTH) : [],
    readRunsAfter(db, { accountId, registrationId }, { after: null, limit: HISTORY_LENGTH }),
    readDrift(db, { accountId, registrationId, limit: HISTORY_LENGTH }),
  ])
  const explanations = new Map(explained.accessRequests.map(({ id: request, explanation }) => [request, explanation]))
  return {
    registration,
    brokers: explained.brokers,
    accessRequests: requests.items.map((item) => ({
      ...item,
      explanation: explanations.get(item.accessRequestId) ?? '',
    })),
    credentials,
    isPaused,
    history: historyOf({ calls, runs, drift }, HISTORY_LENGTH),
  }
}

function pauses(console: App, dependencies: HttpDependencies): void {
  const schema = { ...HIDDEN, params }
  console.post(
    '/registrations/:registrationId/pause',
    { config: { access: CHANGE, audit: 'registration.pause' }, schema },
    async (request, reply) => {
      const { accountId, userName } = request.principal
      const { registrationId } = request.params
      await pauseScope(dependencies, { accountId, scope: 'registration', id: registrationId }, userName)
      const text = 'The registration is paused. What runs ends; nothing else begins for it.'
      leaveNotice(request, reply, { tone: 'good', text })
      return seeOther(reply, registrationPath(registrationId))
    },
  )
  console.post(
    '/registrations/:registrationId/resume',
    { config: { access: CHANGE, audit: 'registration.resume' }, schema },
    async (request, reply) => {
      const { registrationId } = request.params
      const target = { accountId: request.principal.accountId, scope: 'registration', id: registrationId } as const
      leaveNotice(request, reply, resumedNotice(await resumeScope(dependencies, target)))
      return seeOther(reply, registrationPath(registrationId))
    },
  )
}

const DECISIONS = [
  { verb: 'approve', state: 'APPROVED', text: 'Approved. Its brokers are being changed.' },
  { verb: 'decline', state: 'REJECTED', text: 'Declined.' },
] as const

function decisions(console: App, dependencies: HttpDependencies): void {
  for (const { verb, state, text } of DECISIONS) {
    console.post(
      `/registrations/:registrationId/access-requests/:accessRequestId/${verb}`,
      { config: { access: CHANGE, audit: `accessRequest.${verb}` }, schema: { ...HIDDEN, params: requestParams } },
      async (request, reply) => {
        const { registrationId, accessRequestId } = request.params
        const place = { accountId: request.principal.accountId, registrationId, accessRequestId }
        await decide(dependencies, place, state)
        leaveNotice(request, reply, { tone: 'good', text })
        return seeOther(reply, registrationPath(registrationId))
      },
    )
  }
}
