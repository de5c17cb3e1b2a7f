import { z } from 'zod'
import { registrationId as toRegistrationId } from '../../domain/ids.ts'
import { changeAccessRequestState } from '../../store/access-requests.ts'
import { ACCESS_REQUEST_STATES, readAccessRequestQueue } from '../../store/portal-access-requests.ts'
import type { RegistrationPlace, RevisionCheck } from '../../store/registrations-change.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { limitOf, listOf, one, oneOf, pageParameters, paginate } from '../pagination.ts'
import { BASE, DECISIONS, PORTAL } from './access.ts'
import { idParameter } from './portal-schemas.ts'

const shown = z
  .strictObject({
    registrationId: z.string(),
    registrationName: z.string(),
    accessRequestId: z.string(),
    productId: z.string(),
    productName: z.string().nullable().describe('Null: the product is gone.'),
    productVersion: z.string(),
    planId: z.string(),
    state: z.enum(ACCESS_REQUEST_STATES),
    reason: z.string().nullable(),
    createdTime: z.int().describe('Epoch milliseconds.'),
  })
  .meta({ id: 'PortalAccessRequest' })
const decision = z.strictObject({
  registrationId: z.string(),
  accessRequestId: z.string(),
  state: z.enum(ACCESS_REQUEST_STATES),
})

const PATH = `${BASE}/appRegistrations/:registrationId/accessRequests/:accessRequestId`
const params = z.strictObject({ registrationId: idParameter, accessRequestId: idParameter })

/** What waits for a decision, and the decisions. */
export async function accessRequestDecisionRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  app.get(
    `${BASE}/accessRequests`,
    {
      config: { access: DECISIONS },
      schema: {
        tags: PORTAL,
        summary: 'List: access requests of all registrations, oldest first',
        querystring: z.strictObject({
          ...pageParameters,
          state: z.enum(ACCESS_REQUEST_STATES).optional(),
          productId: idParameter.optional(),
          registrationId: idParameter.optional(),
        }),
        response: { 200: listOf(shown) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { items, count } = await readAccessRequestQueue(db, { accountId, ...query }, limitOf(query))
      return paginate(query, items, count)
    },
  )
  decisionRoute(app, dependencies, { verb: 'approve', state: 'APPROVED' })
  decisionRoute(app, dependencies, { verb: 'decline', state: 'REJECTED' })
}

/** Decides on an access request, and has its registration brought to its brokers. Throws NOT_FOUND, CONFLICT. */
export async function decide(
  { db, random, now, config, enqueue }: HttpDependencies,
  place: RegistrationPlace & { readonly accessRequestId: string },
  state: Decision['state'],
  check: RevisionCheck = () => undefined,
) {
  const writer = { db, random, nowMs: now(), maxTopics: config.maxTopics }
  const { result, touched } = await changeAccessRequestState(writer, place, state, { mayDecide: true, check })
  if (touched) await enqueue.registration(place.accountId, toRegistrationId(place.registrationId))
  return result
}

interface Decision {
  readonly verb: 'approve' | 'decline'
  readonly state: 'APPROVED' | 'REJECTED'
}

function decisionRoute(app: App, dependencies: HttpDependencies, { verb, state }: Decision): void {
  app.post(
    `${PATH}/${verb}`,
    {
      config: { access: DECISIONS, audit: `accessRequest.${verb}` },
      schema: {
        tags: PORTAL,
        summary: verb === 'approve' ? 'Approve an access request' : 'Decline an access request',
        params,
        response: { 200: oneOf(decision) },
      },
    },
    async ({ principal: { accountId }, params: { registrationId, accessRequestId }, headers }, reply) => {
      const place = { accountId, registrationId, accessRequestId }
      const check = ifMatch(headers['if-match'], 'access request', accessRequestId)
      const result = await decide(dependencies, place, state, check)
      setEtag(reply, result.revision)
      return one({ registrationId, accessRequestId, state: result.view.state })
    },
  )
}
