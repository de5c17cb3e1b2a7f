import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import { findPlan, listProductPart } from '../../store/product-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { sendDocument, sendDocuments } from '../document-answer.ts'
import { limitOf, listOf, oneOf, sortedPage } from '../pagination.ts'
import { CATALOGUE_READ, requirePermissions } from '../permissions.ts'
import { EVENT_API_PRODUCTS } from './event-api-products.ts'
import { noQuery, pathId } from './schemas/path-id.ts'
import { plan } from './schemas/plan.ts'

const tags = ['Event API Products']
const PLANS = `${EVENT_API_PRODUCTS}/:eventApiProductId/plans`
export const PLAN = `${PLANS}/:planId`
const ofProduct = z.strictObject({ eventApiProductId: pathId })
export const ofPlan = ofProduct.extend({ planId: pathId })

/** The plans of a visible product. */
export async function planRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    PLANS,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductPlans',
        summary: 'List the plans of an Event API Product',
        params: ofProduct,
        querystring: z.strictObject(sortedPage(['id', 'name'])),
        response: { 200: listOf(plan) },
      },
    },
    async ({ principal, params, query }, reply) => {
      const { eventApiProductId: id } = params
      const page = await listProductPart(db, principal.accountId, id, 'plans', { ...query, ...limitOf(query) })
      if (page === null) throw notFound('Event API Product', id)
      return sendDocuments(reply, dependencies, query, page)
    },
  )
  app.get(
    PLAN,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductPlan',
        summary: 'Read a plan of an Event API Product',
        params: ofPlan,
        querystring: noQuery,
        response: { 200: oneOf(plan) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findPlan(db, principal.accountId, params.eventApiProductId, params.planId)
      if (found === null) throw notFound('plan', params.planId)
      return sendDocument(reply, dependencies, found)
    },
  )
}
