import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { receiverProblem } from '../../domain/notifications.ts'
import { parseNetworks } from '../../domain/refused-addresses.ts'
import { Secret } from '../../domain/secret.ts'
import { readDelivery } from '../../store/notification-deliveries.ts'
import { makeTest } from '../../store/notification-digest.ts'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  rotateSigningSecret,
} from '../../store/notification-endpoints.ts'
import { listEndpoints, requireEndpoint } from '../../store/notification-endpoints-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { BASE, CHANGE, CHANGE_ENDPOINTS, OPERATIONS, READ } from './access.ts'
import { deliveryRoutes } from './notification-deliveries.ts'
import {
  delivery,
  endpoint,
  endpointChange,
  endpointWithSecret,
  newEndpoint,
  rotation,
} from './notification-schemas.ts'
import { idParameter } from './operations-schemas.ts'
import { present } from './present.ts'

const params = z.strictObject({ endpointId: idParameter })
const ENDPOINTS = `${BASE}/notifications/endpoints`
const ENDPOINT = `${ENDPOINTS}/:endpointId`
const KIND = 'notification endpoint'

/** Who is told what, where. The other webhooks, those of registrations, belong to the APIM API. */
export async function notificationRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  listRoutes(app, dependencies)
  changeRoutes(app, dependencies)
  secretRoute(app, dependencies)
  testRoute(app, dependencies)
  deliveryRoutes(app, dependencies)
}

/** Throws InvalidInputError when nothing may be sent there. */
function urlOf(text: string, { config }: HttpDependencies): Secret {
  const { allowHttp, allowedNetworks } = config.notifications
  const problem = receiverProblem(new URL(text), { allowHttp, allowed: parseNetworks(allowedNetworks) })
  if (problem !== null) throw new InvalidInputError('The request', [{ path: 'url', message: problem }])
  return new Secret(text)
}

function listRoutes(app: App, { db }: HttpDependencies): void {
  app.get(
    ENDPOINTS,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Where operators are notified',
        querystring: pageQuery,
        response: { 200: listOf(endpoint) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { endpoints, count } = await listEndpoints(db, accountId, limitOf(query))
      return paginate(query, endpoints, count)
    },
  )
  app.get(
    ENDPOINT,
    {
      config: { access: READ },
      schema: { tags: OPERATIONS, summary: 'A notification endpoint', params, response: { 200: oneOf(endpoint) } },
    },
    async ({ principal: { accountId }, params: { endpointId } }, reply) => {
      const { view, revision } = await requireEndpoint(db, { accountId, endpointId })
      setEtag(reply, revision)
      return one(view)
    },
  )
}

function changeRoutes(app: App, dependencies: HttpDependencies): void {
  app.post(
    ENDPOINTS,
    {
      config: { access: CHANGE_ENDPOINTS, audit: 'notificationEndpoint.create' },
      schema: {
        tags: OPERATIONS,
        summary: 'Notify operators at a URL',
        description: 'Posts are signed as Standard Webhooks describes; the answer holds the secret, once.',
        body: newEndpoint,
        response: { 201: oneOf(endpointWithSecret) },
      },
    },
    async (request, reply) => {
      const { url, ...given } = request.body
      const secretUrl = urlOf(url, dependencies)
      request.auditSubject = `${KIND} ${given.name}`
      const { accountId } = request.principal
      const { view, revision, signingSecret } = await createEndpoint(dependencies, accountId, {
        ...given,
        url: secretUrl,
      })
      reply.code(201)
      setEtag(reply, revision)
      return one({ ...view, signingSecret: signingSecret.reveal() })
    },
  )
  app.patch(
    ENDPOINT,
    {
      config: { access: CHANGE_ENDPOINTS, audit: 'notificationEndpoint.change' },
      schema: {
        tags: OPERATIONS,
        summary: 'Change a notification endpoint',
        description: 'What is left out stays. One that is switched off is told of nothing that happens meanwhile.',
        params,
        body: endpointChange,
        response: { 200: oneOf(endpoint) },
      },
    },
    async ({ principal: { accountId }, params: { endpointId }, body: { url, ...given }, headers }, reply) => {
      const change = { ...present(given), ...(url === undefined ? {} : { url: urlOf(url, dependencies) }) }
      const check = ifMatch(headers['if-match'], KIND, endpointId)
      const { view, revision } = await changeEndpoint(dependencies, { accountId, endpointId }, change, check)
      setEtag(reply, revision)
      return one(view)
    },
  )
  app.delete(
    ENDPOINT,
    {
      config: { access: CHANGE_ENDPOINTS, audit: 'notificationEndpoint.delete' },
      schema: {
        tags: OPERATIONS,
        summary: 'Delete a notification endpoint, with its deliveries',
        params,
        response: { 204: noContent },
      },
    },
    async ({ principal: { accountId }, params: { endpointId }, headers }, reply) => {
      const check = ifMatch(headers['if-match'], KIND, endpointId)
      await deleteEndpoint(dependencies.db, { accountId, endpointId }, check)
      return reply.code(204).send()
    },
  )
}

function secretRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    `${ENDPOINT}/rotateSecret`,
    {
      config: { access: CHANGE_ENDPOINTS, audit: 'notificationEndpoint.rotateSecret' },
      schema: {
        tags: OPERATIONS,
        summary: 'Sign with a new secret',
        description: 'Posts carry a signature by the older one too, until the overlap is over.',
        params,
        body: rotation,
        response: { 200: oneOf(endpointWithSecret) },
      },
    },
    async ({ principal: { accountId }, params: { endpointId }, body: { overlapSeconds } }, reply) => {
      const times = { nowMs: dependencies.now(), overlapMs: overlapSeconds * 1000 }
      const rotated = await rotateSigningSecret(dependencies, { accountId, endpointId }, times)
      setEtag(reply, rotated.revision)
      return one({ ...rotated.view, signingSecret: rotated.signingSecret.reveal() })
    },
  )
}

function testRoute(app: App, dependencies: HttpDependencies): void {
  const { db, now, random, enqueue } = dependencies
  app.post(
    `${ENDPOINT}/test`,
    {
      config: { access: CHANGE, audit: 'notificationEndpoint.test' },
      schema: {
        tags: OPERATIONS,
        summary: 'Send a test to a notification endpoint, once',
        description: 'A worker sends it; the delivery says what came of it.',
        params,
        response: { 202: oneOf(delivery) },
      },
    },
    async ({ principal: { accountId, userName }, params: { endpointId } }, reply) => {
      const place = { accountId, endpointId }
      const id = await makeTest(db, place, { nowMs: now(), requestedBy: userName, random })
      await enqueue.notifications([place])
      reply.code(202)
      const { body: _body, ...view } = await readDelivery(db, accountId, id)
      return one(view)
    },
  )
}
