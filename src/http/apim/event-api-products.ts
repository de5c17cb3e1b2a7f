import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import type { ProductSortField } from '../../store/product-fields.ts'
import { findProduct, findProductVersion, listProducts, listProductVersions } from '../../store/product-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { sendDocument, sendDocuments } from '../document-answer.ts'
import { limitOf, listOf, oneOf, sortedPage } from '../pagination.ts'
import { CATALOGUE_READ, requirePermissions } from '../permissions.ts'
import { noQuery, pathId, where } from './schemas/path-id.ts'
import { eventApiProduct, eventApiProductSummary } from './schemas/product.ts'

export const EVENT_API_PRODUCTS = '/api/v2/apim/eventApiProducts'
const tags = ['Event API Products']

const SORT_FIELDS = [
  'id',
  'name',
  'displayName',
  'description',
  'version',
  'state',
  'applicationDomainId',
  'applicationDomainName',
  'approvalType',
  'brokerType',
  'createdTime',
  'updatedTime',
  'createdBy',
  'changedBy',
] as const satisfies readonly ProductSortField[]

const params = z.strictObject({ eventApiProductId: pathId })
const listQuery = z.strictObject({ where, ...sortedPage(SORT_FIELDS) })
const historyQuery = z.strictObject(sortedPage(['version', 'displayName', 'state']))

/** The catalogue: visible products in the newest version, and the versions that were published. */
export async function eventApiProductRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    EVENT_API_PRODUCTS,
    {
      config,
      schema: {
        tags,
        operationId: 'listEventApiProducts',
        summary: 'List the visible Event API Products',
        description: 'Each in its newest RELEASED version.',
        querystring: listQuery,
        response: { 200: listOf(eventApiProduct) },
      },
    },
    async ({ principal, query }, reply) => {
      const page = await listProducts(db, principal.accountId, { ...query, ...limitOf(query) })
      return sendDocuments(reply, dependencies, query, page)
    },
  )
  app.get(
    `${EVENT_API_PRODUCTS}/:eventApiProductId`,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProduct',
        summary: 'Read an Event API Product',
        description: 'In its newest RELEASED version.',
        params,
        querystring: noQuery,
        response: { 200: oneOf(eventApiProduct) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findProduct(db, principal.accountId, params.eventApiProductId)
      if (found === null) throw notFound('Event API Product', params.eventApiProductId)
      return sendDocument(reply, dependencies, found)
    },
  )
  addHistoryRoutes(app, dependencies)
}

function addHistoryRoutes(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    `${EVENT_API_PRODUCTS}/:eventApiProductId/history`,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductHistory',
        summary: 'List the versions of an Event API Product',
        description:
          'Those that were published: RELEASED, DEPRECATED and RETIRED ones, the newest first unless sorted.',
        params,
        querystring: historyQuery,
        response: { 200: listOf(eventApiProductSummary) },
      },
    },
    async ({ principal, params, query }, reply) => {
      const { eventApiProductId } = params
      const page = await listProductVersions(db, principal.accountId, eventApiProductId, {
        ...query,
        ...limitOf(query),
      })
      if (page === null) throw notFound('Event API Product', eventApiProductId)
      return sendDocuments(reply, dependencies, query, page)
    },
  )
  app.get(
    `${EVENT_API_PRODUCTS}/:eventApiProductId/history/:version`,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductRevision',
        summary: 'Read a version of an Event API Product',
        params: params.extend({ version: z.string().min(1).max(256) }),
        querystring: noQuery,
        response: { 200: oneOf(eventApiProduct) },
      },
    },
    async ({ principal, params }, reply) => {
      const { eventApiProductId, version } = params
      const found = await findProductVersion(db, principal.accountId, eventApiProductId, version)
      if (found === null) throw notFound('version of the Event API Product', version)
      return sendDocument(reply, dependencies, found)
    },
  )
}
