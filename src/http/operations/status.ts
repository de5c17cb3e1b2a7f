import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import { explainBrokerUse, explainProduct } from '../../store/explain-product.ts'
import { explainRegistration } from '../../store/explain-registration.ts'
import { readPairs } from '../../store/pairs-view.ts'
import { ACCESS_REQUEST_STATES } from '../../store/portal-access-requests.ts'
import { countBrokers, readStatus } from '../../store/status-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { limitOf, listOf, one, oneOf, pageParameters, pageQuery, paginate } from '../pagination.ts'
import { BASE, OPERATIONS, READ } from './access.ts'
import { brokerStatus, idParameter, loginOfPair, PAIR_STATES, pairStatus } from './operations-schemas.ts'

const brokerParams = z.strictObject({ brokerId: idParameter })
const productParams = z.strictObject({ productId: idParameter })
const registrationParams = z.strictObject({ registrationId: idParameter })

const rules = z
  .array(
    z
      .strictObject({
        rule: z.string(),
        holds: z.boolean(),
        explanation: z.string(),
        fix: z.string().nullable().describe('What to do about it; null when the rule holds.'),
      })
      .readonly(),
  )
  .readonly()
const brokerUse = z.strictObject({ id: z.string(), usable: z.boolean(), rules }).readonly()
const productUse = z.strictObject({
  id: z.string(),
  name: z.string(),
  versions: z
    .array(
      z
        .strictObject({
          version: z.string(),
          state: z.string(),
          visible: z.boolean(),
          rules,
          brokers: z.array(brokerUse).readonly(),
        })
        .readonly(),
    )
    .readonly(),
})

const registrationUse = z.strictObject({
  id: z.string(),
  name: z.string(),
  accessRequests: z
    .array(
      z
        .strictObject({
          id: z.string(),
          productId: z.string(),
          productVersion: z.string(),
          state: z.enum(ACCESS_REQUEST_STATES),
          explanation: z.string(),
        })
        .readonly(),
    )
    .readonly(),
  brokers: z
    .array(
      pairStatus
        .omit({ registrationId: true })
        .extend({ logins: z.array(loginOfPair.readonly()).readonly() })
        .readonly(),
    )
    .readonly(),
})

export async function statusRoutes(app: App, { db }: HttpDependencies): Promise<void> {
  app.get(
    `${BASE}/status`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'How each broker stands',
        querystring: pageQuery,
        response: { 200: listOf(brokerStatus) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const brokers = await readStatus(db, accountId, undefined, limitOf(query))
      return paginate(query, brokers, await countBrokers(db, accountId))
    },
  )
  app.get(
    `${BASE}/brokers/:brokerId/status`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'How a broker stands',
        params: brokerParams,
        response: { 200: oneOf(brokerStatus) },
      },
    },
    async ({ principal: { accountId }, params: { brokerId } }) => {
      const [broker] = await readStatus(db, accountId, brokerId)
      if (broker === undefined) throw notFound('broker', brokerId)
      return one(broker)
    },
  )
  app.get(
    `${BASE}/registrations/status`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'How registrations stand, each on each of its brokers',
        querystring: z.strictObject({
          ...pageParameters,
          brokerId: idParameter.optional(),
          registrationId: idParameter.optional(),
          state: z.enum(PAIR_STATES).optional(),
        }),
        response: { 200: listOf(pairStatus) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { brokerId, registrationId, state } = query
      const filter = {
        accountId,
        ...(brokerId === undefined ? {} : { brokerId }),
        ...(registrationId === undefined ? {} : { registrationId }),
        ...(state === undefined ? {} : { state }),
      }
      const { pairs, count } = await readPairs(db, filter, limitOf(query))
      return paginate(query, pairs, count)
    },
  )
  explanationRoutes(app, db)
}

function explanationRoutes(app: App, db: HttpDependencies['db']): void {
  app.get(
    `${BASE}/products/:productId/explanation`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Which rule makes each version of a product visible or not',
        params: productParams,
        response: { 200: oneOf(productUse) },
      },
    },
    async ({ principal: { accountId }, params: { productId } }) => {
      const product = await explainProduct(db, accountId, productId)
      if (product === null) throw notFound('product', productId)
      return one(product)
    },
  )
  app.get(
    `${BASE}/brokers/:brokerId/explanation`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Which rule lets products use a broker or not',
        params: brokerParams,
        response: { 200: oneOf(brokerUse) },
      },
    },
    async ({ principal: { accountId }, params: { brokerId } }) => {
      const broker = await explainBrokerUse(db, accountId, brokerId)
      if (broker === null) throw notFound('broker', brokerId)
      return one(broker)
    },
  )
  app.get(
    `${BASE}/registrations/:registrationId/explanation`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Why each access request of a registration is in its state, and how each broker stands',
        params: registrationParams,
        response: { 200: oneOf(registrationUse) },
      },
    },
    async ({ principal: { accountId }, params: { registrationId } }) => {
      const registration = await explainRegistration(db, accountId, registrationId)
      if (registration === null) throw notFound('registration', registrationId)
      return one(registration)
    },
  )
}
