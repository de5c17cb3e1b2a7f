import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import { findGateway, listGateways } from '../../store/gateway-view.ts'
import type { GatewaySortField } from '../../store/product-fields.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { sendDocument, sendDocuments } from '../document-answer.ts'
import { limitOf, listOf, oneOf, sortedPage } from '../pagination.ts'
import { CATALOGUE_READ, requirePermissions } from '../permissions.ts'
import { messagingService } from './schemas/messaging-service.ts'
import { noQuery, pathId, where } from './schemas/path-id.ts'

const GATEWAYS = '/api/v2/apim/gateways'
const tags = ['Gateways']
const SORT_FIELDS = [
  'id',
  'name',
  'brokerType',
  'environmentName',
  'eventMeshName',
  'solaceCloudMessagingServiceId',
  'vendorCloudMessagingServiceId',
] as const satisfies readonly GatewaySortField[]

/** The brokers that products can use, with the addresses of their protocols. */
export async function gatewayRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    GATEWAYS,
    {
      config,
      schema: {
        tags,
        operationId: 'listGateways',
        summary: 'List the gateways',
        description: 'Brokers in a modelled event mesh whose management and messaging settings are complete.',
        querystring: z.strictObject({ where, ...sortedPage(SORT_FIELDS) }),
        response: { 200: listOf(messagingService) },
      },
    },
    async ({ principal, query }, reply) => {
      const page = await listGateways(db, principal.accountId, { ...query, ...limitOf(query) })
      return sendDocuments(reply, dependencies, query, page)
    },
  )
  app.get(
    `${GATEWAYS}/:messagingServiceId`,
    {
      config,
      schema: {
        tags,
        operationId: 'getGateway',
        summary: 'Read a gateway',
        params: z.strictObject({ messagingServiceId: pathId }),
        querystring: noQuery,
        response: { 200: oneOf(messagingService) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findGateway(db, principal.accountId, params.messagingServiceId)
      if (found === null) throw notFound('gateway', params.messagingServiceId)
      return sendDocument(reply, dependencies, found)
    },
  )
}
