import fastifySwagger, { type SwaggerTransform } from '@fastify/swagger'
import fastifySwaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { errorAnswer } from './errors.ts'
import type { Access } from './permissions.ts'

export const OPENAPI_PATH = '/api/v2/apim/openapi.json'
export const DOCUMENTATION_PATH = '/api/v2/apim/docs'

const DESCRIPTION = `The catalogue of Event API Products, application registrations and their credentials, and what
operates the brokers behind them. Every call but the health checks and the sign-in carries a token:
\`Authorization: Bearer …\`. Errors have one shape everywhere; the \`errorId\` finds the log line.`

/** The pages of the reader load nothing from elsewhere. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Gathers the schemas of all routes that are registered after it. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.0.3',
      info: { title: 'Keymesh', description: DESCRIPTION, version: '2.0.0' },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          BearerAuth: { type: 'http', scheme: 'bearer', description: 'An API token or a user token.' },
        },
      },
    },
    transform: describeRoute,
    transformObject: jsonSchemaTransformObject,
  })
}

/** Serves what was gathered, for programs and for people. */
export async function serveOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwaggerUi, {
    routePrefix: DOCUMENTATION_PATH,
    staticCSP: PAGE_POLICY,
    uiConfig: { url: OPENAPI_PATH, docExpansion: 'none', validatorUrl: null },
    theme: { title: 'Keymesh API' },
  })
  let published: string | undefined
  app.get(OPENAPI_PATH, { config: { access: 'public' }, schema: { hide: true } }, async (_request, reply) => {
    published ??= JSON.stringify(app.swagger())
    return reply
      .type('application/json; charset=utf-8')
      .serializer((text: string) => text)
      .send(published)
  })
}

/** What every route has is said once: the error answer, and from `config.access` who may call. */
const describeRoute: SwaggerTransform = (document) => {
  const { schema, route } = document
  if (schema === undefined || schema.hide === true) return { schema: { hide: true }, url: document.url }
  const access = route.config?.access
  const response = { ...(schema.response as object | undefined), default: { description: 'An error', ...errorSchema } }
  const described = { ...schema, response, ...(access === undefined ? {} : accessOf(access, schema.description)) }
  return (jsonSchemaTransform as SwaggerTransform)({ ...document, schema: described })
}

const errorSchema = { content: { 'application/json': { schema: errorAnswer } } }

function accessOf(access: Access, description = '') {
  if (access === 'public') return { security: [] }
  const { token, permissions, administrator } = access
  const needs = [
    TOKEN_NEED[token],
    ...(administrator ? ['whose user is an administrator of the account'] : []),
    ...(permissions.length === 0 ? [] : [`with ${permissions.map((name) => `\`${name}\``).join(', ')}`]),
  ]
  return { description: `${description}\n\nNeeds ${needs.join(' ')}.`.trim(), security: [{ BearerAuth: [] }] }
}

const TOKEN_NEED = {
  apiToken: 'an API token',
  user: 'a user token of the account',
  signIn: 'a user token',
  any: 'a user token of the account, or an API token',
} as const

/** For answers without a body. */
export const noContent = z.undefined().describe('Done; no body.')

/** For calls that take none; clients send nothing, `{}` or `null`. */
export const emptyBody = z.strictObject({}).nullish()
