import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { isAdministrator } from '../../domain/permissions.ts'
import {
  type AccessRequestAnswer,
  changeAccessRequestState,
  createAccessRequest,
  deleteAccessRequest,
  readAnswer,
} from '../../store/access-requests.ts'
import { ACCESS_REQUEST_SORT_FIELDS, listAccessRequests } from '../../store/access-requests-list.ts'
import { findRegistration } from '../../store/registrations-change.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, paginate, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { APP_REGISTRATION, enqueueIfTouched, enqueueRevocation, placeOf } from './app-registrations.ts'
import { accessRequestAnswer } from './registration-answers.ts'
import { accessRequest, accessRequestCreation, accessRequestUpdate, ofAccessRequest } from './schemas/access-request.ts'
import { noQuery, where } from './schemas/path-id.ts'
import { ofRegistration } from './schemas/registration-id.ts'

const tags = ['Access Requests']
const ACCESS_REQUESTS = `${APP_REGISTRATION}/accessRequests`
export const ACCESS_REQUEST = `${ACCESS_REQUESTS}/:accessRequestId`
const access = requirePermissions(...REGISTRATIONS)

/** What a registration asks for: a product on a plan. */
export async function accessRequestRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addCreateRoute(app, dependencies)
  addChangeRoutes(app, dependencies)
}

export const requestWriterOf = ({ db, random, now, config }: HttpDependencies) => ({
  db,
  random,
  nowMs: now(),
  maxTopics: config.maxTopics,
})

function answered(reply: FastifyReply, { view, revision }: AccessRequestAnswer) {
  setEtag(reply, revision)
  return one(accessRequestAnswer(view))
}

function addReadRoutes(app: App, dependencies: HttpDependencies): void {
  app.get(
    ACCESS_REQUESTS,
    {
      config: { access },
      schema: {
        tags,
        operationId: 'getAppRegistrationAccessRequests',
        summary: 'List the access requests of a registration',
        params: ofRegistration,
        querystring: z.strictObject({ where, ...sortedPage(ACCESS_REQUEST_SORT_FIELDS) }),
        response: { 200: listOf(accessRequest) },
      },
    },
    async ({ principal, params, query }) => {
      const place = placeOf(principal.accountId, params)
      const order = { ...query, ...limitOf(query) }
      const { items, count } = await listAccessRequests(requestWriterOf(dependencies), place, order)
      return paginate(query, items.map(accessRequestAnswer), count)
    },
  )
  app.get(
    ACCESS_REQUEST,
    {
      config: { access },
      schema: {
        tags,
        operationId: 'getAppRegistrationAccessRequest',
        summary: 'Read an access request',
        params: ofAccessRequest,
        querystring: noQuery,
        response: { 200: oneOf(accessRequest) },
      },
    },
    async ({ principal, params }, reply) => {
      const place = { ...placeOf(principal.accountId, params), accessRequestId: params.accessRequestId }
      const registration = await findRegistration(dependencies.db, place)
      return answered(reply, await readAnswer(requestWriterOf(dependencies), place, registration))
    },
  )
}

function addCreateRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    ACCESS_REQUESTS,
    {
      config: { access, audit: 'accessRequest.create' },
      schema: {
        tags,
        operationId: 'createAppRegistrationAccessRequest',
        summary: 'Ask for access to an Event API Product',
        description:
          'For the version that is shown now, which stays that of the request. APPROVED at once, or PENDING_APPROVAL, ' +
          'as the product says.',
        params: ofRegistration,
        querystring: noQuery,
        body: accessRequestCreation,
        response: { 200: oneOf(accessRequest) },
      },
    },
    async (request, reply) => {
      const { accessRequestId, eventApiProductId: productId, planId } = request.body
      const place = { ...placeOf(request.principal.accountId, request.params), accessRequestId }
      const created = await createAccessRequest(requestWriterOf(dependencies), place, { productId, planId })
      await enqueueIfTouched(dependencies, place, created)
      return answered(reply, created.result)
    },
  )
}

function addChangeRoutes(app: App, dependencies: HttpDependencies): void {
  app.patch(
    ACCESS_REQUEST,
    {
      config: { access, audit: 'accessRequest.update' },
      schema: {
        tags,
        operationId: 'updateAppRegistrationAccessRequest',
        summary: 'Decide on an access request, or withdraw it',
        description:
          'Administrators approve (APPROVED) and reject (REJECTED); everybody may withdraw (REVOKED) and ask again ' +
          '(PENDING_APPROVAL). LIVE and ERROR say what brokers did and cannot be set.',
        params: ofAccessRequest,
        querystring: noQuery,
        body: accessRequestUpdate,
        response: { 200: oneOf(accessRequest) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const place = { ...placeOf(principal.accountId, params), accessRequestId: params.accessRequestId }
      const changed = await changeAccessRequestState(requestWriterOf(dependencies), place, body.state, {
        mayDecide: isAdministrator(principal.roles),
        check: ifMatch(headers['if-match'], 'access request', params.accessRequestId),
      })
      if (changed.touched && body.state === 'REVOKED') await enqueueRevocation(dependencies, place)
      else await enqueueIfTouched(dependencies, place, changed)
      return answered(reply, changed.result)
    },
  )
  app.delete(
    ACCESS_REQUEST,
    {
      config: { access, audit: 'accessRequest.delete' },
      schema: {
        tags,
        operationId: 'deleteAppRegistrationAccessRequest',
        summary: 'Delete an access request',
        description: 'What it has on brokers is withdrawn.',
        params: ofAccessRequest,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const place = { ...placeOf(principal.accountId, params), accessRequestId: params.accessRequestId }
      const check = ifMatch(headers['if-match'], 'access request', params.accessRequestId)
      await enqueueIfTouched(dependencies, place, await deleteAccessRequest(dependencies.db, place, check))
      return reply.code(204).send()
    },
  )
}
