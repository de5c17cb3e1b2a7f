import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { notFound } from '../../domain/refusals.ts'
import {
  countCatalogueProducts,
  countProductUses,
  findCatalogueEventApi,
  findCatalogueProduct,
  listCatalogueEventApis,
  listCatalogueProducts,
} from '../../store/catalogue-view.ts'
import { readEventApiDocument } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { idParameter } from '../operations/operations-schemas.ts'
import { present } from '../operations/present.ts'
import { HIDDEN, LOOK } from './access.ts'
import { cataloguePage, eventApisPage } from './catalogue-page.ts'
import { eventApiPage, productPage } from './product-page.ts'
import { named, oneOfThese, pageOf } from './record-queries.ts'
import { sendPage } from './send-page.ts'

const PAGE_SIZE = 50

const productsQuery = z.object({ search: named, shown: oneOfThese(['visible', 'hidden']), after: named })
const eventApisQuery = z.object({ search: named, after: z.string().max(600).optional() })

/** Products, plans, Event APIs, and why one is not visible. */
export async function cataloguePages(console: App, { db }: HttpDependencies): Promise<void> {
  console.get(
    '/catalogue',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: productsQuery } },
    async (request, reply) => {
      const { search, shown, after } = request.query
      const visible = shown === undefined ? undefined : shown === 'visible'
      const filter = { accountId: request.principal.accountId, ...present({ search, visible }) }
      const [counts, products] = await Promise.all([
        countCatalogueProducts(db, filter),
        listCatalogueProducts(db, filter, { after: after ?? null, limit: PAGE_SIZE + 1 }),
      ])
      const page = pageOf(products, PAGE_SIZE)
      const next = page.last?.id ?? null
      return sendPage(request, reply, cataloguePage({ query: request.query, counts, products: page.shown, next }))
    },
  )
  console.get(
    '/catalogue/products/:productId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params: z.object({ productId: idParameter }) } },
    async (request, reply) => {
      const { accountId } = request.principal
      const { productId } = request.params
      const [product, uses] = await Promise.all([
        findCatalogueProduct(db, accountId, productId),
        countProductUses(db, accountId, productId),
      ])
      if (product === null) throw notFound('product', productId)
      return sendPage(request, reply, productPage({ product, uses }))
    },
  )
  eventApiRoutes(console, db)
  documentRoute(console, db)
}

function eventApiRoutes(console: App, db: HttpDependencies['db']): void {
  console.get(
    '/catalogue/event-apis',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: eventApisQuery } },
    async (request, reply) => {
      const { search, after } = request.query
      const filter = { accountId: request.principal.accountId, ...present({ search }) }
      const found = await listCatalogueEventApis(db, filter, { after: parseAfter(after), limit: PAGE_SIZE + 1 })
      const { shown, last } = pageOf(found, PAGE_SIZE)
      const next = last === null ? null : JSON.stringify([last.id, last.version])
      return sendPage(request, reply, eventApisPage({ query: request.query, eventApis: shown, next }))
    },
  )
  console.get(
    '/catalogue/event-apis/:eventApiId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params: z.object({ eventApiId: idParameter }) } },
    async (request, reply) => {
      const { eventApiId } = request.params
      const [newest, ...others] = await findCatalogueEventApi(db, request.principal.accountId, eventApiId)
      if (newest === undefined) throw notFound('Event API', eventApiId)
      return sendPage(request, reply, eventApiPage([newest, ...others]))
    },
  )
}

function documentRoute(console: App, db: HttpDependencies['db']): void {
  console.get(
    '/catalogue/event-apis/:eventApiId/documents/:version',
    {
      config: { access: LOOK },
      schema: { ...HIDDEN, params: z.object({ eventApiId: idParameter, version: idParameter }) },
    },
    async (request, reply) => {
      const { eventApiId, version } = request.params
      const document = await readEventApiDocument(db, request.principal.accountId, eventApiId, version)
      if (document === null) throw notFound('Event API version', `${eventApiId} ${version}`)
      const name = `${eventApiId}-${version}`.replaceAll(/[^\w.-]/g, '_')
      reply.header('content-disposition', `attachment; filename="${name}.json"`)
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(document.json, null, 2))
    },
  )
}

const place = z.tuple([z.string(), z.string()])

function parseAfter(text: string | undefined): { readonly id: string; readonly version: string } | null {
  if (text === undefined || text === '') return null
  const parsed = place.safeParse(jsonOf(text)).data
  if (parsed !== undefined) return { id: parsed[0], version: parsed[1] }
  throw new InvalidInputError('The address', [
    { path: 'after', message: 'is no place in this list; begin at its first page' },
  ])
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
