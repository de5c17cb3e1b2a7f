import { z } from 'zod'
import { findRegistration } from '../../store/registrations-change.ts'
import { createWebhook, deleteWebhook, requireWebhook, updateWebhook } from '../../store/webhooks.ts'
import { readWebhooks } from '../../store/webhooks-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { listOf, one, oneOf, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { APP_REGISTRATION, placeOf } from './app-registrations.ts'
import { webhookAnswer } from './registration-answers.ts'
import { pageOf } from './registration-pages.ts'
import { noQuery } from './schemas/path-id.ts'
import { ofRegistration } from './schemas/registration-id.ts'
import { ofWebhook, webhook, webhookCreation, webhookSummary, webhookUpdate } from './schemas/webhook.ts'

const tags = ['Webhooks']
const WEBHOOKS = `${APP_REGISTRATION}/webhooks`
const WEBHOOK = `${WEBHOOKS}/:webhookId`
const access = requirePermissions(...REGISTRATIONS)

/** What is called when messages arrive for a registration. Its name is the id of a webhook. */
export async function webhookRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addCreateRoute(app, dependencies)
  addChangeRoutes(app, dependencies)
}

function addReadRoutes(app: App, dependencies: HttpDependencies): void {
  app.get(
    WEBHOOKS,
    {
      config: { access },
      schema: {
        tags,
        operationId: 'listAppRegistrationWebhooks',
        summary: 'List the webhooks of a registration',
        params: ofRegistration,
        querystring: z.strictObject(sortedPage(['name', 'uri'])),
        response: { 200: listOf(webhookSummary) },
      },
    },
    async ({ principal, params, query }) => {
      const place = placeOf(principal.accountId, params)
      await findRegistration(dependencies.db, place)
      const webhooks = (await readWebhooks(dependencies, place.accountId, [place.registrationId])).get(
        place.registrationId,
      )
      const lines = (webhooks ?? []).map(({ name, definition }) => ({ uri: definition.uri, name }))
      return pageOf(lines, query, (line, field) => line[field])
    },
  )
  app.get(
    WEBHOOK,
    {
      config: { access, audit: 'webhook.read' },
      schema: {
        tags,
        operationId: 'getAppRegistrationWebhook',
        summary: 'Read a webhook',
        description: 'With what it authenticates itself with.',
        params: ofWebhook,
        querystring: noQuery,
        response: { 200: oneOf(webhook) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await requireWebhook(dependencies, placeOf(principal.accountId, params), params.webhookId)
      setEtag(reply, found.revision)
      return one(webhookAnswer(found))
    },
  )
}

/** What a body says, as it is stored: what may be secret apart from the rest. */
function partsOf(body: z.output<typeof webhookUpdate>) {
  const { name, authentication, requestHeaders, tlsOptions, ...rest } = body
  const definition = { ...rest, tlsTrustedCommonNames: tlsOptions?.tlsTrustedCommonNames }
  return { name, definition, secrets: { authentication, requestHeaders } }
}

function addCreateRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    WEBHOOKS,
    {
      config: { access, audit: 'webhook.create' },
      schema: {
        tags,
        operationId: 'createAppRegistrationWebhook',
        summary: 'Add a webhook to a registration',
        description: 'It is kept and shown here; brokers do not call it yet.',
        params: ofRegistration,
        querystring: noQuery,
        body: webhookCreation,
        response: { 201: oneOf(webhook) },
      },
    },
    async ({ principal, params, body }, reply) => {
      const { uri, method, mode } = body
      const { name = null, definition, secrets } = partsOf(body)
      const given = { name, definition: { ...definition, uri, method, mode }, secrets }
      const created = await createWebhook(dependencies, placeOf(principal.accountId, params), given)
      setEtag(reply, created.revision)
      return reply.code(201).send(one(webhookAnswer(created)))
    },
  )
}

function addChangeRoutes(app: App, dependencies: HttpDependencies): void {
  app.patch(
    WEBHOOK,
    {
      config: { access, audit: 'webhook.update' },
      schema: {
        tags,
        operationId: 'updateAppRegistrationWebhook',
        summary: 'Change a webhook',
        description: 'The answer is the webhook itself, not inside of `data`.',
        params: ofWebhook,
        querystring: noQuery,
        body: webhookUpdate,
        response: { 200: webhook },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const place = { ...placeOf(principal.accountId, params), name: params.webhookId }
      const check = ifMatch(headers['if-match'], 'webhook', params.webhookId)
      const changed = await updateWebhook(dependencies, place, partsOf(body), check)
      setEtag(reply, changed.revision)
      return webhookAnswer(changed)
    },
  )
  app.delete(
    WEBHOOK,
    {
      config: { access, audit: 'webhook.delete' },
      schema: {
        tags,
        operationId: 'deleteAppRegistrationWebhook',
        summary: 'Remove a webhook from a registration',
        params: ofWebhook,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const place = { ...placeOf(principal.accountId, params), name: params.webhookId }
      await deleteWebhook(dependencies.db, place, ifMatch(headers['if-match'], 'webhook', params.webhookId))
      return reply.code(204).send()
    },
  )
}
