import { z } from 'zod'
import {
  DELIVERY_STATES,
  listDeliveries,
  readDelivery,
  resendDead,
  resendDelivery,
} from '../../store/notification-deliveries.ts'
import { notificationPayload } from '../../store/notification-payload.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { limitOf, listOf, one, oneOf, pageParameters, paginate } from '../pagination.ts'
import { BASE, CHANGE, OPERATIONS, READ } from './access.ts'
import { delivery, deliveryWithPayload } from './notification-schemas.ts'
import { idParameter } from './operations-schemas.ts'
import { present } from './present.ts'

const params = z.strictObject({ deliveryId: idParameter })
const endpointParams = z.strictObject({ endpointId: idParameter })
const DELIVERIES = `${BASE}/notifications/deliveries`

const query = z.strictObject({
  ...pageParameters,
  endpointId: idParameter.optional(),
  state: z.enum(DELIVERY_STATES).optional().describe('dead: the dead letters.'),
})

export function deliveryRoutes(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  app.get(
    DELIVERIES,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Deliveries to notification endpoints, newest first',
        querystring: query,
        response: { 200: listOf(delivery) },
      },
    },
    async ({ principal: { accountId }, query: asked }) => {
      const { endpointId, state } = asked
      const filter = { accountId, ...present({ endpointId, state }) }
      const { deliveries, count } = await listDeliveries(db, filter, limitOf(asked))
      return paginate(asked, deliveries, count)
    },
  )
  app.get(
    `${DELIVERIES}/:deliveryId`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'One delivery, with what it tells',
        params,
        response: { 200: oneOf(deliveryWithPayload) },
      },
    },
    async ({ principal: { accountId }, params: { deliveryId } }) => {
      const { body, ...view } = await readDelivery(db, accountId, deliveryId)
      return one({ ...view, payload: notificationPayload.parse(JSON.parse(body)) })
    },
  )
  resendRoutes(app, dependencies)
}

function resendRoutes(app: App, { db, now, config, enqueue }: HttpDependencies): void {
  const { retryMs } = config.notifications
  app.post(
    `${DELIVERIES}/:deliveryId/resend`,
    {
      config: { access: CHANGE, audit: 'notificationDelivery.resend' },
      schema: {
        tags: OPERATIONS,
        summary: 'Send a delivery again, with the same id and body',
        params,
        response: { 202: oneOf(delivery) },
      },
    },
    async ({ principal: { accountId }, params: { deliveryId } }, reply) => {
      const view = await resendDelivery(db, accountId, deliveryId, { nowMs: now(), retryMs })
      await enqueue.notifications([{ accountId, endpointId: view.endpointId }])
      reply.code(202)
      return one(view)
    },
  )
  app.post(
    `${BASE}/notifications/endpoints/:endpointId/resendDead`,
    {
      config: { access: CHANGE, audit: 'notificationDelivery.resendDead' },
      schema: {
        tags: OPERATIONS,
        summary: 'Send all dead letters of a notification endpoint again',
        params: endpointParams,
        response: { 202: oneOf(z.strictObject({ count: z.int() })) },
      },
    },
    async ({ principal: { accountId }, params: { endpointId } }, reply) => {
      const place = { accountId, endpointId }
      const count = await resendDead(db, place, { nowMs: now(), retryMs })
      if (count > 0) await enqueue.notifications([place])
      reply.code(202)
      return one({ count })
    },
  )
}
