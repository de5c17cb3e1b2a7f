import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawServerDefault,
  type RouteOptions,
} from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { InvalidInputError, KeymeshError } from '../domain/errors.ts'
import { notFound } from '../domain/refusals.ts'
import { findApiTokens } from '../store/api-tokens.ts'
import { batched } from '../store/batched.ts'
import { eventApiProductRoutes } from './apim/event-api-products.ts'
import { gatewayRoutes } from './apim/gateways.ts'
import { planRoutes } from './apim/plans.ts'
import { productAttributeRoutes } from './apim/product-attributes.ts'
import { productEventApiRoutes } from './apim/product-event-apis.ts'
import { registrationRoutes } from './apim/registration-routes.ts'
import { recordInTrail } from './audit-trail.ts'
import { authenticate, type Principal, type SignedIn } from './authentication.ts'
import { answerBrokenRequest, expectAnswer } from './broken-requests.ts'
import { consoleRoutes } from './console/console-routes.ts'
import type { HttpDependencies } from './dependencies.ts'
import { answerError, failureOf } from './errors.ts'
import { healthRoutes } from './health.ts'
import { accountRoutes } from './identity/accounts.ts'
import { apiTokenRoutes } from './identity/api-tokens.ts'
import { auditRoutes } from './identity/audit.ts'
import { ownPasswordRoutes } from './identity/own-password.ts'
import { signInRoutes } from './identity/sign-in.ts'
import { userRoutes } from './identity/users.ts'
import { whoamiRoutes } from './identity/whoami.ts'
import { metricsRoute } from './metrics-route.ts'
import { notFoundLimit } from './not-found-limit.ts'
import { observeRequests } from './observe-requests.ts'
import { collectOpenapi, DOCUMENTATION_PATH, serveOpenapi } from './openapi.ts'
import { operationsRoutes } from './operations/operations-routes.ts'
import type { Access } from './permissions.ts'
import { portalRoutes } from './portal/portal-routes.ts'
import { refuseUnstorableText } from './storable-text.ts'

/** The application, as routes see it: zod schemas give the types of body, query, params and answer. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call; every route says it. */
    access?: Access
    /** The name in the audit trail. Reads are recorded only with one: those that show a secret have it. */
    audit?: string
  }
}

/** One function per group of routes, in `src/http/{identity,apim,portal,operations,console}/`. */
type RegisterRoutes = (app: App, dependencies: HttpDependencies) => Promise<void>

const ROUTES: readonly RegisterRoutes[] = [
  signInRoutes,
  whoamiRoutes,
  ownPasswordRoutes,
  apiTokenRoutes,
  userRoutes,
  accountRoutes,
  auditRoutes,
  eventApiProductRoutes,
  productAttributeRoutes,
  planRoutes,
  productEventApiRoutes,
  gatewayRoutes,
  registrationRoutes,
  portalRoutes,
  operationsRoutes,
  consoleRoutes,
]

export const BODY_LIMIT_BYTES = 1024 * 1024
/** Longer than any id that a path may hold, percent-encoded. */
const MAX_PARAM_LENGTH = 2048
/** For a request to arrive whole. */
const REQUEST_TIMEOUT_MS = 30_000
/** For an answer; a route that takes longer says so. */
const HANDLER_TIMEOUT_MS = 60_000
const KEEP_ALIVE_TIMEOUT_MS = 72_000
const MINUTE_MS = 60_000

/** `health`: /healthz, /readyz and /metrics alone, for anybody who reaches the port. */
export type Surface = 'api' | 'health'

/** Builds the application; `inject` and `listen` work on what it answers. Close it when done. */
export async function createApp(dependencies: HttpDependencies, surface: Surface = 'api'): Promise<App> {
  const { config, log, observe } = dependencies
  const app: App = fastify({
    loggerInstance: log as FastifyBaseLogger,
    // The line of an answer is our own, with the route's pattern instead of the address.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestIdOf,
    trustProxy: config.trustedProxies.length === 0 ? false : [...config.trustedProxies],
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    handlerTimeout: HANDLER_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Node's own refusal has no body; ours is in the hook.
    http: { requireHostHeader: false },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: answerError,
    clientErrorHandler: answerBrokenRequest,
  }).withTypeProvider<ZodTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(dependencies.checkAnswers === true ? serializerCompiler : () => JSON.stringify)
  app.setErrorHandler(answerError)
  // An expectation that is not known is no reason to refuse; Node would, without a body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  acceptJsonOnly(app)
  if (observe !== undefined) observeRequests(app, observe)
  addHooks(app, dependencies)
  await addProtection(app, dependencies)
  askWhoCalls(app, dependencies)
  await collectOpenapi(app)
  await healthRoutes(app, dependencies, watchForStop(app))
  const metricsFor = surface === 'health' ? 'public' : config.metrics
  if (metricsFor !== 'off') await metricsRoute(app, dependencies, metricsFor)
  if (surface === 'health') return app
  for (const register of ROUTES) await register(app, dependencies)
  await serveOpenapi(app)
  return app
}

/** A caller's own id is taken over when it is harmless in a log line. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID()
}

/** Many clients send the content type of JSON with no body at all. */
function acceptJsonOnly(app: App): void {
  app.removeAllContentTypeParsers()
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    if (text.length === 0) done(null, undefined)
    else parse(request, text.toString(), done)
  })
}

function addHooks(app: App, dependencies: HttpDependencies): void {
  app.decorateRequest('caller', null)
  app.decorateRequest('auditSubject', null)
  app.decorateRequest('principal', {
    getter(this: FastifyRequest): Principal {
      return known(this.caller?.principal, this)
    },
  })
  app.decorateRequest('signedIn', {
    getter(this: FastifyRequest): SignedIn {
      return known(this.caller?.signedIn, this)
    },
  })
  app.addHook('onRequest', async (request, reply) => {
    expectAnswer(request.raw, reply.raw)
    refuseWithoutHost(request.raw)
    reply.header('x-request-id', request.id)
    // Answers hold what only this caller may see.
    reply.header('cache-control', 'no-store')
  })
  app.addHook('preValidation', async (request) => refuseUnstorableText(request))
  app.addHook('onSend', async (request, reply, payload) => {
    try {
      await recordInTrail(dependencies, request, reply)
      return payload
    } catch (error) {
      return answerUnrecorded(error, request, reply, payload)
    }
  })
  app.addHook('onResponse', async (request, reply) => logAnswer(request, reply))
}

/** As RFC 9112 demands of HTTP/1.1. */
function refuseWithoutHost({ httpVersion, headers }: IncomingMessage): void {
  if (httpVersion !== '1.1' || headers.host !== undefined) return
  throw new InvalidInputError('The request', [{ path: 'Host', message: 'must be given' }])
}

function known<Value>(value: Value | null | undefined, request: FastifyRequest): Value {
  if (value == null) throw new Error(`${request.routeOptions.url} asks who calls, which its access rule does not give`)
  return value
}

/** A secret that was not recorded is not shown; a change that was made is made, and the log says what is missing. */
function answerUnrecorded(error: unknown, request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  const { answer, status } = failureOf(error)
  request.log.error({ event: 'audit.missed', errorId: answer.errorId, err: error }, 'The audit trail lacks a call')
  if (request.method !== 'GET') return payload
  reply.code(Math.max(status, 500)).type('application/json; charset=utf-8').removeHeader('etag')
  return JSON.stringify(answer)
}

/** The route's pattern instead of the address, which may hold anything. */
function logAnswer(request: FastifyRequest, reply: FastifyReply): void {
  const { principal } = request.caller ?? {}
  request.log.info(
    {
      event: 'http.answered',
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      ...(principal == null ? {} : { accountId: principal.accountId, userId: principal.userId }),
    },
    'A request was answered',
  )
}

async function addProtection(app: App, { config }: HttpDependencies): Promise<void> {
  await app.register(helmet, {
    // Whoever ends TLS in front knows whether all of the host is served over it.
    strictTransportSecurity: false,
    contentSecurityPolicy: { useDefaults: false, directives: { 'default-src': "'none'", 'frame-ancestors': "'none'" } },
  })
  const limited = config.rateLimitPerMinute > 0
  await app.register(rateLimit, {
    global: limited,
    max: config.rateLimitPerMinute,
    timeWindow: MINUTE_MS,
    errorResponseBuilder: (_request, { after }) =>
      new KeymeshError({
        code: 'TOO_MANY_REQUESTS',
        fate: 'retry',
        message: `Too many requests from this address; try again in ${after}.`,
      }),
  })
  app.setNotFoundHandler(notFoundLimit(app, config), (request) => {
    throw notFound('resource', `${request.method} ${request.url.split('?')[0]}`)
  })
}

/** After the rate limits and before anything is read of the body. */
function askWhoCalls(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  // Calls that arrive while a look-up is under way share the next one; none is answered by an older look-up.
  const findApiToken = batched((ids: readonly string[]) => findApiTokens(db, ids))
  app.addHook('onRoute', (route: RouteOptions) => {
    const access = accessOf(route)
    if (access === 'public') return
    const before = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [
      ...before,
      async (request: FastifyRequest) => {
        request.caller = await authenticate({ ...dependencies, findApiToken }, request, access)
      },
    ]
  })
}

function accessOf(route: RouteOptions): Access {
  const ofTheReader = route.url === DOCUMENTATION_PATH || route.url.startsWith(`${DOCUMENTATION_PATH}/`)
  const access = ofTheReader ? 'public' : route.config?.access
  if (access === undefined) throw new Error(`the route ${String(route.method)} ${route.url} does not say who may call`)
  return access
}

function watchForStop(app: App): { readonly stopping: boolean } {
  const state = { stopping: false }
  app.addHook('preClose', async () => {
    state.stopping = true
  })
  return state
}
