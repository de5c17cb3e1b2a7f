import { z } from 'zod'
import { PERMISSIONS } from '../../domain/permissions.ts'
import {
  type ApiTokenView,
  createApiToken,
  deleteApiToken,
  listApiTokens,
  readApiToken,
  regenerateApiToken,
} from '../../store/api-tokens.ts'
import type { App } from '../app.ts'
import { apiTokenHash, apiTokenText } from '../authentication.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { emptyBody, noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { requireUser } from '../permissions.ts'
import { epochMs, IDENTITY, nameParameter, permissions, tokenName } from './identity-schemas.ts'

const shown = {
  id: z.string(),
  name: z.string(),
  creationTimestamp: epochMs,
  permissions: z.array(z.enum(PERMISSIONS)),
  orgId: z.string().describe('The id of the account.'),
  type: z.literal('apiToken'),
} as const

const apiToken = z.strictObject({ ...shown, expirationTimestamp: epochMs.nullable() })
/** The only answer that ever holds the token. */
const newApiToken = z.strictObject({
  data: z.strictObject({ ...shown, token: z.string().describe('Shown once; it is not stored.') }),
})

const TOKENS = '/api/v0/user/apiTokens'
const params = z.strictObject({ id: nameParameter })

/** API tokens of the user in the account: made and managed with a user token, never with an API token. */
export async function apiTokenRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const access = requireUser()
  app.post(
    TOKENS,
    {
      config: { access, audit: 'apiToken.create' },
      schema: {
        tags: IDENTITY,
        summary: 'Create an API token',
        body: z.strictObject({ name: tokenName, permissions }),
        response: { 201: newApiToken },
      },
    },
    async (request, reply) => {
      const { secret, ...fresh } = newSecret(dependencies)
      const id = dependencies.random.token(11)
      request.auditSubject = id
      const { accountId, userId } = request.principal
      const created = await createApiToken(db, { id, accountId, userId, ...request.body, ...fresh })
      return reply.code(201).send(withToken(created, secret))
    },
  )
  app.get(
    TOKENS,
    {
      config: { access },
      schema: {
        tags: IDENTITY,
        summary: 'List own API tokens',
        querystring: pageQuery,
        response: { 200: listOf(apiToken) },
      },
    },
    async ({ principal, query }) => {
      const { tokens, count } = await listApiTokens(db, principal, limitOf(query))
      return paginate(query, tokens.map(shownOf), count)
    },
  )
  app.get(
    `${TOKENS}/:id`,
    {
      config: { access },
      schema: { tags: IDENTITY, summary: 'Read an API token', params, response: { 200: oneOf(apiToken) } },
    },
    async ({ principal, params }) => one(shownOf(await readApiToken(db, principal, params.id))),
  )
  app.delete(
    `${TOKENS}/:id`,
    {
      config: { access, audit: 'apiToken.delete' },
      schema: { tags: IDENTITY, summary: 'Delete an API token', params, response: { 204: noContent } },
    },
    async (request, reply) => {
      await deleteApiToken(db, request.principal, request.params.id)
      return reply.code(204).send()
    },
  )
  app.post(
    `${TOKENS}/:id/regenerate`,
    {
      config: { access, audit: 'apiToken.regenerate' },
      schema: {
        tags: IDENTITY,
        summary: 'Give an API token a new text; the old one ends at once',
        params,
        body: emptyBody,
        response: { 200: newApiToken },
      },
    },
    async ({ principal, params }) => {
      const { secret, ...fresh } = newSecret(dependencies)
      return withToken(await regenerateApiToken(db, principal, params.id, fresh), secret)
    },
  )
}

/** 43 characters of 62 kinds: 256 random bits. */
function newSecret({ random, now, config }: HttpDependencies) {
  const secret = random.token(43)
  const createdAtMs = now()
  const expiresAtMs = config.apiTokenLifetimeMs === null ? null : createdAtMs + config.apiTokenLifetimeMs
  return { secret, secretHash: apiTokenHash(secret), createdAtMs, expiresAtMs }
}

function shownOf({ id, name, createdAtMs, expiresAtMs, permissions, accountId }: ApiTokenView) {
  return {
    id,
    name,
    creationTimestamp: createdAtMs,
    permissions: [...permissions],
    orgId: accountId,
    type: 'apiToken' as const,
    expirationTimestamp: expiresAtMs,
  }
}

function withToken(view: ApiTokenView, secret: string) {
  const { expirationTimestamp: _shownInLists, ...data } = shownOf(view)
  return { data: { ...data, token: apiTokenText(view.id, secret) } }
}
