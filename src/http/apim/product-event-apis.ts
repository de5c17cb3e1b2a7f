import { notFound } from '../../domain/refusals.ts'
import { findEventApiSource, listPlanEventApis } from '../../store/product-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { sendDocuments } from '../document-answer.ts'
import { listOf } from '../pagination.ts'
import { CATALOGUE_READ, requirePermissions } from '../permissions.ts'
import { documentAnswer, documentQuery, sendAsyncApiDocument } from './asyncapi-document.ts'
import { ofPlan, PLAN } from './plans.ts'
import { noQuery, pathId } from './schemas/path-id.ts'
import { eventApiVersion } from './schemas/product.ts'

const tags = ['Event API Products']

/** The Event APIs of a plan, all on one page, and their AsyncAPI documents. */
export async function productEventApiRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    `${PLAN}/eventApis`,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductPlanApis',
        summary: 'List the Event APIs of a plan',
        description: 'All on one page.',
        params: ofPlan,
        querystring: noQuery,
        response: { 200: listOf(eventApiVersion) },
      },
    },
    async ({ principal, params }, reply) => {
      const { eventApiProductId, planId } = params
      const found = await listPlanEventApis(db, principal.accountId, eventApiProductId, planId)
      if (found === null) throw notFound('plan', planId)
      return sendDocuments(reply, dependencies, { pageNumber: 1, pageSize: Math.max(found.count, 1) }, found)
    },
  )
  app.get(
    `${PLAN}/eventApis/:eventApiId`,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductPlanApi',
        summary: 'Read the AsyncAPI document of an Event API on a plan',
        params: ofPlan.extend({ eventApiId: pathId }),
        querystring: documentQuery,
        response: documentAnswer,
      },
    },
    async ({ principal, params, query }, reply) => {
      const { eventApiProductId: productId, planId, eventApiId } = params
      const place = { accountId: principal.accountId, productId, planId, eventApiId }
      const source = await findEventApiSource(db, place)
      if (source === null) throw notFound('Event API', eventApiId)
      return sendAsyncApiDocument(reply, { productId, eventApiId }, source, query)
    },
  )
}
