import { z } from 'zod'
import { PROTOCOLS } from '../../domain/catalogue.ts'
import { conflict } from '../../domain/refusals.ts'
import { VERDICT_OUTCOMES } from '../../domain/verdict.ts'
import { type LoginsFilter, viewLogins } from '../../store/logins-view.ts'
import { pairsOfRegistration } from '../../store/pairs.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { limitOf, listOf, one, oneOf, pageParameters, paginate } from '../pagination.ts'
import { BASE, CHANGE, OPERATIONS, READ } from './access.ts'
import { knownBroker, knownRegistration, managedBrokers } from './known-objects.ts'
import { idParameter, login, verifying } from './operations-schemas.ts'
import { present } from './present.ts'

const loginQuery = z.strictObject({
  ...pageParameters,
  brokerId: idParameter.optional(),
  registrationId: idParameter.optional(),
  protocol: z.enum(PROTOCOLS).optional(),
  outcome: z.enum(VERDICT_OUTCOMES).optional(),
})

const verifyBody = z
  .strictObject({
    brokerId: idParameter.optional().describe('Only on this broker.'),
    registrationId: idParameter.optional().describe('Only with credentials of this registration.'),
    protocol: z.enum(PROTOCOLS).optional().describe('Only over this protocol.'),
  })
  .nullable()
  .describe('Without a body: everything.')

/** Whether credentials log in. */
export async function loginRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  app.get(
    `${BASE}/logins`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'What the last login with each credential came to, on each broker over each protocol',
        querystring: loginQuery,
        response: { 200: listOf(login) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { pageSize: _size, pageNumber: _number, ...given } = query
      const filter: LoginsFilter = { ...present(given), accountId }
      const { logins, count } = await viewLogins(db, filter, limitOf(query))
      return paginate(query, logins, count)
    },
  )
  verifyRoute(app, dependencies)
}

function verifyRoute(app: App, { db, enqueue, config }: HttpDependencies): void {
  app.post(
    `${BASE}/verify`,
    {
      config: { access: CHANGE, audit: 'verify' },
      schema: {
        tags: OPERATIONS,
        summary:
          'Log in now with every credential that a broker has confirmed, and try a wrong password over each protocol',
        description:
          'The answer does not wait for the logins; the list of logins shows what they came to. A paused broker has its turn when it is resumed.',
        body: verifyBody,
        response: { 202: oneOf(verifying) },
      },
    },
    async (request, reply) => {
      const { accountId } = request.principal
      const { brokerId, registrationId, protocol } = request.body ?? {}
      request.auditSubject =
        [registrationId, brokerId, protocol].filter((id) => id !== undefined).join(' on ') || 'all brokers'
      if (config.logins === null) throw conflict('Logins are switched off.', 'Set KEYMESH_LOGINS to true.')
      const registration =
        registrationId === undefined ? undefined : await knownRegistration(db, accountId, registrationId)
      if (registration !== undefined && brokerId !== undefined) await knownBroker(db, accountId, brokerId)
      const brokers =
        registration === undefined
          ? await managedBrokers(db, accountId, brokerId)
          : (await pairsOfRegistration(db, accountId, registration)).filter(
              (pair) => brokerId === undefined || pair.brokerId === brokerId,
            )
      const what = { ...(registration && { registrationId: registration }), ...(protocol && { protocol }) }
      const queued = await Promise.all(
        brokers.map((broker) => enqueue.verify({ accountId, brokerId: broker.brokerId }, what)),
      )
      reply.code(202)
      return one({ brokers: brokers.map((broker) => broker.brokerId), queued: queued.every((each) => each) })
    },
  )
}
