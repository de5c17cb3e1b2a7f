import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { brokerId, eventApiId, productId } from '../../domain/ids.ts'
import type { PortalProductVersion } from '../../domain/portal-file.ts'
import { transitionProblem } from '../../domain/product-state.ts'
import { conflict, notFound } from '../../domain/refusals.ts'
import { toPlan } from '../../portal-file/build-portal-file.ts'
import { plan, semanticVersion } from '../../portal-file/portal-file-schema.ts'
import type { CatalogueState, StoredProduct, StoredProductVersion } from '../../store/import-state.ts'
import { productVersionRevision } from '../../store/portal-revisions.ts'
import { viewProducts } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { BASE, CATALOGUE, PORTAL } from './access.ts'
import { edit } from './portal-collection.ts'
import { attributes, description, idParameter, name, reference, shownAttributes } from './portal-schemas.ts'

const STATES = ['DRAFT', 'RELEASED', 'DEPRECATED', 'RETIRED'] as const
const fields = {
  displayName: name.optional(),
  description: description.optional(),
  approvalType: z.enum(['automatic', 'manual']).optional(),
  public: z.boolean().optional().describe('Publicly available.'),
  eventApis: z
    .array(z.strictObject({ id: reference, version: z.string().min(1).max(64) }))
    .max(999)
    .optional(),
  plans: z.array(plan).max(128).optional(),
  brokers: z.array(reference).max(128).optional().describe('The brokers that the version is associated with.'),
  customAttributes: attributes.optional(),
}
const create = z.strictObject({ version: semanticVersion, ...fields })
const change = z.strictObject({
  ...fields,
  state: z.enum(STATES).optional().describe('Forward only: DRAFT, RELEASED, DEPRECATED, RETIRED.'),
})
const shown = z
  .strictObject({
    productId: z.string(),
    version: z.string(),
    displayName: z.string(),
    description: z.string(),
    state: z.enum([...STATES, 'DELETED']).describe('DELETED: kept for the access requests that name it.'),
    approvalType: z.enum(['automatic', 'manual']),
    public: z.boolean(),
    eventApis: z.array(z.strictObject({ id: z.string(), version: z.string() })),
    plans: z.array(
      z.strictObject({
        id: z.string(),
        name: z.string(),
        messageDeliveryMode: z.enum(['direct', 'guaranteed']),
        accessType: z.enum(['exclusive', 'non-exclusive']),
        queueType: z.enum(['combined', 'single']),
        maximumTimeToLive: z.int().describe('Seconds.'),
        maxMsgSpoolUsage: z.int().describe('MB.'),
        unlimitedMsgSpoolUsage: z.boolean(),
      }),
    ),
    brokers: z.array(z.string()),
    customAttributes: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  })
  .meta({ id: 'PortalProductVersion' })

const PATH = `${BASE}/products/:productId/versions`
const ofProduct = z.strictObject({ productId: idParameter })
const params = z.strictObject({ productId: idParameter, version: idParameter })

/** Versions with their states, plans, Event APIs and brokers. */
export async function productVersionRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  readRoutes(app, dependencies)
  createRoute(app, dependencies)
  changeRoute(app, dependencies)
  removeRoute(app, dependencies)
}

function readRoutes(app: App, { db }: HttpDependencies): void {
  app.get(
    PATH,
    {
      config: { access: CATALOGUE.read },
      schema: {
        tags: PORTAL,
        summary: 'List: product versions',
        params: ofProduct,
        querystring: pageQuery,
        response: { 200: listOf(shown) },
      },
    },
    async ({ principal: { accountId }, params: { productId: id }, query }) => {
      const [product] = (await viewProducts(db, accountId, { id })).items
      if (product === undefined) throw notFound('product', id)
      const versions = [...product.versions.values()]
      const start = (query.pageNumber - 1) * query.pageSize
      const page = versions.slice(start, start + query.pageSize)
      return paginate(
        query,
        page.map((version) => show(id, version)),
        versions.length,
      )
    },
  )
  app.get(
    `${PATH}/:version`,
    {
      config: { access: CATALOGUE.read },
      schema: { tags: PORTAL, summary: 'Read: product version', params, response: { 200: oneOf(shown) } },
    },
    async ({ principal: { accountId }, params }, reply) => answer(db, accountId, params, reply),
  )
}

function createRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    PATH,
    {
      config: { access: CATALOGUE.create, audit: 'productVersion.create' },
      schema: {
        tags: PORTAL,
        summary: 'Create: product version, in state DRAFT',
        params: ofProduct,
        body: create,
        response: { 201: oneOf(shown) },
      },
    },
    async (request, reply) => {
      const { productId: id } = request.params
      const { version, ...body } = request.body
      request.auditSubject = `product ${id} ${version}`
      await edit(dependencies, request, async ({ state }) => {
        const product = knownProduct(state, id)
        if (product.versions.has(version)) throw conflict(`Product ${id} has a version ${version} already.`)
        const empty: Omit<PortalProductVersion, 'version' | 'state'> = {
          displayName: product.name,
          description: '',
          approvalType: 'automatic',
          public: false,
          eventApis: [],
          plans: [],
          brokers: [],
          customAttributes: [],
        }
        return put(product, { ...changed(empty, body), version, state: 'DRAFT' })
      })
      reply.code(201)
      return await answer(dependencies.db, request.principal.accountId, { productId: id, version }, reply)
    },
  )
}

function changeRoute(app: App, dependencies: HttpDependencies): void {
  app.patch(
    `${PATH}/:version`,
    {
      config: { access: CATALOGUE.change, audit: 'productVersion.change' },
      schema: {
        tags: PORTAL,
        summary: 'Change: product version, its state, plans and associations',
        description: 'What is left out stays; a list is replaced as a whole.',
        params,
        body: change,
        response: { 200: oneOf(shown) },
      },
    },
    async (request, reply) => {
      const { productId: id, version } = request.params
      const { state: wanted, ...body } = request.body
      const check = ifMatch(request.headers['if-match'], 'product version', version)
      const change = async ({ state }: { readonly state: CatalogueState }) => {
        const product = knownProduct(state, id)
        const stored = product.versions.get(version)
        if (stored === undefined) throw notFound('product version', version)
        check(productVersionRevision(stored))
        const problem = transitionProblem(stored.state, wanted ?? stored.state)
        if (problem !== null) throw conflict(problem)
        if (stored.state === 'DELETED') throw conflict(`Version ${version} of product ${id} is deleted.`)
        return put(product, { ...changed(stored, body), version, state: wanted ?? stored.state })
      }
      await edit(dependencies, request, change, [id])
      return await answer(dependencies.db, request.principal.accountId, request.params, reply)
    },
  )
}

function removeRoute(app: App, dependencies: HttpDependencies): void {
  app.delete(
    `${PATH}/:version`,
    {
      config: { access: CATALOGUE.change, audit: 'productVersion.delete' },
      schema: {
        tags: PORTAL,
        summary: 'Remove: product version that is in state DRAFT or RETIRED',
        params,
        response: { 204: noContent },
      },
    },
    async (request, reply) => {
      const { productId: id, version } = request.params
      const check = ifMatch(request.headers['if-match'], 'product version', version)
      const remove = async ({ state }: { readonly state: CatalogueState }) => {
        const stored = knownProduct(state, id).versions.get(version)
        if (stored !== undefined) check(productVersionRevision(stored))
        return { remove: { kind: 'productVersion', id, version } } as const
      }
      await edit(dependencies, request, remove, [id])
      return reply.code(204).send()
    },
  )
}

function knownProduct(state: CatalogueState, id: string): StoredProduct {
  const product = state.products.get(id)
  if (product === undefined) throw notFound('product', id)
  return product
}

/** One version; the others and the product stay. */
function put({ versions: _versions, ...product }: StoredProduct, version: PortalProductVersion) {
  return { put: { products: [{ ...product, versions: [version] }] } }
}

type Content = Omit<PortalProductVersion, 'version' | 'state'>

function changed(stored: Content, body: z.output<z.ZodObject<typeof fields>>): Content {
  const { displayName, description, approvalType, customAttributes } = body
  return {
    displayName: displayName ?? stored.displayName,
    description: description ?? stored.description,
    approvalType: approvalType ?? stored.approvalType,
    public: body.public ?? stored.public,
    eventApis: body.eventApis?.map(({ id, version }) => ({ id: eventApiId(id), version })) ?? stored.eventApis,
    plans: body.plans?.map(toPlan) ?? stored.plans,
    brokers: body.brokers?.map(brokerId) ?? stored.brokers,
    customAttributes: customAttributes ?? stored.customAttributes,
  }
}

async function answer(
  db: HttpDependencies['db'],
  accountId: string,
  { productId: id, version }: z.output<typeof params>,
  reply: FastifyReply,
) {
  const [product] = (await viewProducts(db, accountId, { id })).items
  if (product === undefined) throw notFound('product', id)
  const stored = product.versions.get(version)
  if (stored === undefined) throw notFound('product version', version)
  setEtag(reply, productVersionRevision(stored))
  return one(show(productId(id), stored))
}

function show(id: string, stored: StoredProductVersion): z.output<typeof shown> {
  const { version, displayName, description, state, approvalType } = stored
  return {
    productId: id,
    version,
    displayName,
    description,
    state,
    approvalType,
    public: stored.public,
    eventApis: stored.eventApis.map((each) => ({ id: each.id, version: each.version })),
    plans: stored.plans.map(({ id: planId, name: planName, classOfServicePolicy }) => ({
      id: planId,
      name: planName,
      ...classOfServicePolicy,
      unlimitedMsgSpoolUsage: classOfServicePolicy.maxMsgSpoolUsage === 0,
    })),
    brokers: [...stored.brokers],
    customAttributes: shownAttributes(stored.customAttributes),
  }
}
