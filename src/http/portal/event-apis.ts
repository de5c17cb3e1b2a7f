import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { eventApiId } from '../../domain/ids.ts'
import type { JsonObject, PortalEventApi } from '../../domain/portal-file.ts'
import { conflict, notFound } from '../../domain/refusals.ts'
import { readAsyncApiText } from '../../portal-file/asyncapi-document.ts'
import { eventApiVersion } from '../../portal-file/portal-file-schema.ts'
import { versionedId } from '../../store/import-changes.ts'
import type { StoredEventApi } from '../../store/import-state.ts'
import type { StoredCatalogue } from '../../store/portal-change.ts'
import { eventApiRevision } from '../../store/portal-revisions.ts'
import { readEventApiDocument, viewEventApi, viewEventApis } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { BASE, CATALOGUE, PORTAL } from './access.ts'
import { edit } from './portal-collection.ts'
import {
  attributes,
  description,
  GENERATED_ID_LENGTH,
  idParameter,
  name,
  newId,
  reference,
  shownAttributes,
} from './portal-schemas.ts'

/** A document of 4 MiB, written as a JSON string. */
const BODY_LIMIT_BYTES = 10 * 1024 * 1024

const document = z
  .union([z.string().min(1), z.record(z.string(), z.unknown())])
  .describe('AsyncAPI 2.0 to 2.6: YAML or JSON as text, or JSON as it is. It holds all that it refers to.')
const fields = {
  name: name.optional(),
  displayName: name.optional(),
  description: description.optional(),
  applicationDomainId: reference.nullable().optional(),
  viewpoint: z.enum(['client', 'provider']).optional().describe('Overrides what the document says; only with one.'),
  customAttributes: attributes.optional(),
}
const create = z.strictObject({ id: newId.optional(), version: eventApiVersion, ...fields, document })
const change = z.strictObject({ ...fields, document: document.optional() })
const shown = z
  .strictObject({
    id: z.string(),
    version: z.string(),
    name: z.string(),
    displayName: z.string(),
    description: z.string(),
    applicationDomainId: z.string().nullable(),
    viewpoint: z.enum(['client', 'provider']),
    channels: z
      .array(
        z
          .strictObject({
            name: z.string(),
            clientMayPublish: z.boolean(),
            clientMaySubscribe: z.boolean(),
            parameterEnums: z.record(z.string(), z.array(z.string()).readonly()).readonly(),
          })
          .readonly(),
      )
      .readonly(),
    customAttributes: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  })
  .meta({ id: 'PortalEventApi' })

const PATH = `${BASE}/eventApis`
const ONE = `${PATH}/:id/versions/:version`
const params = z.strictObject({ id: idParameter, version: idParameter })
type Key = z.output<typeof params>

/** Event APIs, each version an object of its own with its document. */
export async function eventApiRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  readRoutes(app, dependencies)
  createRoute(app, dependencies)
  changeRoute(app, dependencies)
  removeRoute(app, dependencies)
}

function readRoutes(app: App, { db }: HttpDependencies): void {
  const config = { access: CATALOGUE.read }
  app.get(
    PATH,
    {
      config,
      schema: { tags: PORTAL, summary: 'List: Event APIs', querystring: pageQuery, response: { 200: listOf(shown) } },
    },
    async ({ principal: { accountId }, query }) => {
      const { items, count } = await viewEventApis(db, accountId, limitOf(query))
      return paginate(query, items.map(show), count)
    },
  )
  app.get(
    ONE,
    { config, schema: { tags: PORTAL, summary: 'Read: Event API', params, response: { 200: oneOf(shown) } } },
    async ({ principal: { accountId }, params }, reply) => answer(db, accountId, params, reply),
  )
  app.get(
    `${ONE}/document`,
    {
      config,
      schema: {
        tags: PORTAL,
        summary: 'Read: the document of an Event API, as it is stored',
        params,
        response: { 200: z.record(z.string(), z.unknown()) },
      },
    },
    async ({ principal: { accountId }, params: { id, version } }) => {
      const stored = await readEventApiDocument(db, accountId, id, version)
      if (stored === null) throw notFound('Event API version', versionedId(id, version))
      return stored.json as Record<string, unknown>
    },
  )
}

function createRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    PATH,
    {
      bodyLimit: BODY_LIMIT_BYTES,
      config: { access: CATALOGUE.create, audit: 'eventApi.create' },
      schema: { tags: PORTAL, summary: 'Create: Event API version', body: create, response: { 201: oneOf(shown) } },
    },
    async (request, reply) => {
      const { body } = request
      const key = { id: body.id ?? dependencies.random.token(GENERATED_ID_LENGTH), version: body.version }
      request.auditSubject = `Event API ${versionedId(key.id, key.version)}`
      const read = await readBodyDocument(body.document, body.viewpoint)
      const title = body.name ?? read.document.title
      if (title === '') throw new InvalidInputError('The request', [{ path: 'name', message: 'must be given' }])
      await edit(dependencies, request, async ({ state }) => {
        if (state.eventApis.has(versionedId(key.id, key.version))) {
          throw conflict(`There is an Event API ${key.id} of version ${key.version} already.`)
        }
        const eventApi: PortalEventApi = {
          id: eventApiId(key.id),
          version: key.version,
          name: title,
          displayName: body.displayName ?? title,
          description: body.description ?? '',
          applicationDomainId: body.applicationDomainId ?? null,
          customAttributes: body.customAttributes ?? [],
          ...read,
        }
        return { put: { eventApis: [eventApi] } }
      })
      reply.code(201)
      return await answer(dependencies.db, request.principal.accountId, key, reply)
    },
  )
}

function changeRoute(app: App, dependencies: HttpDependencies): void {
  app.patch(
    ONE,
    {
      bodyLimit: BODY_LIMIT_BYTES,
      config: { access: CATALOGUE.change, audit: 'eventApi.change' },
      schema: {
        tags: PORTAL,
        summary: 'Change: Event API version',
        description: 'What is left out stays.',
        params,
        body: change,
        response: { 200: oneOf(shown) },
      },
    },
    async (request, reply) => {
      const { params, body } = request
      const id = versionedId(params.id, params.version)
      const check = ifMatch(request.headers['if-match'], 'Event API version', id)
      if (body.viewpoint !== undefined && body.document === undefined) {
        throw new InvalidInputError('The request', [{ path: 'viewpoint', message: 'needs a document beside it' }])
      }
      const read = body.document === undefined ? null : await readBodyDocument(body.document, body.viewpoint)
      await edit(dependencies, request, async (catalogue) => {
        const stored = catalogue.state.eventApis.get(id)
        if (stored === undefined) throw notFound('Event API version', id)
        check(eventApiRevision(stored))
        const { documentRevision: _revision, ...kept } = stored
        const eventApi: PortalEventApi = {
          ...kept,
          name: body.name ?? stored.name,
          displayName: body.displayName ?? stored.displayName,
          description: body.description ?? stored.description,
          applicationDomainId:
            body.applicationDomainId === undefined ? stored.applicationDomainId : body.applicationDomainId,
          customAttributes: body.customAttributes ?? stored.customAttributes,
          ...(read ?? { document: await keptDocument(catalogue, params) }),
        }
        return { put: { eventApis: [eventApi] } }
      })
      return await answer(dependencies.db, request.principal.accountId, params, reply)
    },
  )
}

function removeRoute(app: App, dependencies: HttpDependencies): void {
  app.delete(
    ONE,
    {
      config: { access: CATALOGUE.change, audit: 'eventApi.delete' },
      schema: { tags: PORTAL, summary: 'Remove: Event API version', params, response: { 204: noContent } },
    },
    async (request, reply) => {
      const { id, version } = request.params
      const check = ifMatch(request.headers['if-match'], 'Event API version', versionedId(id, version))
      await edit(dependencies, request, async ({ state }) => {
        const stored = state.eventApis.get(versionedId(id, version))
        if (stored !== undefined) check(eventApiRevision(stored))
        return { remove: { kind: 'eventApi', id, version } }
      })
      return reply.code(204).send()
    },
  )
}

type ReadDocument = Pick<PortalEventApi, 'channels' | 'viewpoint' | 'document'>

/** By the rules of the file import. Problems name the field `document` and the line in it. */
async function readBodyDocument(
  given: z.output<typeof document>,
  viewpoint: 'client' | 'provider' | undefined,
): Promise<ReadDocument> {
  const sent = typeof given === 'string' ? given : JSON.stringify(given, null, 2)
  try {
    const read = await readAsyncApiText('document', sent, viewpoint === undefined ? {} : { viewpoint })
    const { file, version: asyncApiVersion, title, document: json } = read
    return { channels: read.channels, viewpoint: read.viewpoint, document: { file, asyncApiVersion, title, json } }
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error
    const problems = error.problems.map(({ message, path = '', line }) => {
      const place = [path, line === undefined ? '' : `line ${line}`].filter((part) => part !== '').join(', ')
      return { path: 'document', message: place === '' ? message : `${place}: ${message}` }
    })
    throw new InvalidInputError('The request', problems)
  }
}

async function keptDocument({ db, state }: StoredCatalogue, { id, version }: Key): Promise<PortalEventApi['document']> {
  const stored = await readEventApiDocument(db, state.accountId, id, version)
  if (stored === null) throw notFound('Event API version', versionedId(id, version))
  const { asyncApiVersion, title, json } = stored
  return { file: 'document', asyncApiVersion, title, json: json as JsonObject }
}

async function answer(db: HttpDependencies['db'], accountId: string, { id, version }: Key, reply: FastifyReply) {
  const stored = await viewEventApi(db, accountId, id, version)
  if (stored === null) throw notFound('Event API version', versionedId(id, version))
  setEtag(reply, eventApiRevision(stored))
  return one(show(stored))
}

function show(stored: StoredEventApi): z.output<typeof shown> {
  const { documentRevision: _revision, customAttributes, ...rest } = stored
  return { ...rest, customAttributes: shownAttributes(customAttributes) }
}
