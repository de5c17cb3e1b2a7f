import { z } from 'zod'
import { OBJECT_KINDS } from '../../domain/broker-object.ts'
import { InvalidInputError } from '../../domain/errors.ts'
import { notFound } from '../../domain/refusals.ts'
import { confirmWithdrawals, recordAdoption, requestPasswords } from '../../store/pairs.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { one, oneOf } from '../pagination.ts'
import { BASE, CHANGE, CREATE, OPERATIONS } from './access.ts'
import { enqueuePairs } from './enqueueing.ts'
import { knownBroker } from './known-objects.ts'
import { enqueued, idParameter } from './operations-schemas.ts'
import { reconcileNow, subjectOf } from './reconcile-now.ts'

const brokerParams = z.strictObject({ brokerId: idParameter })
const accepted = { 202: oneOf(enqueued) }

const reconcileBody = z
  .strictObject({
    brokerId: idParameter.optional().describe('Only this broker.'),
    registrationId: idParameter.optional().describe('Only this registration.'),
    allowDisruptive: z
      .boolean()
      .default(false)
      .describe('The next run of what waits may drop live clients, if it comes within an hour.'),
  })
  .nullable()
  .describe('Without a body: all.')

const reapplyBody = z.strictObject({
  registrationId: idParameter.optional().describe('The passwords of all its credentials.'),
  consumerKey: idParameter.optional().describe('The password of this client username.'),
  brokerId: idParameter.optional().describe('Only on this broker.'),
})

const adoption = z.strictObject({
  kind: z.enum(OBJECT_KINDS),
  name: z.string().min(1).max(512).describe('Its name on the broker.'),
})

/** What an operator asks for; the answer does not wait for brokers. */
export async function actionRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  reconcileRoute(app, dependencies)
  reapplyRoute(app, dependencies)
  withdrawalRoute(app, dependencies)
  adoptionRoute(app, dependencies)
}

function reconcileRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    `${BASE}/reconcile`,
    {
      config: { access: CHANGE, audit: 'reconcile' },
      schema: {
        tags: OPERATIONS,
        summary: 'Make the brokers match now: all, one broker, or one registration',
        body: reconcileBody,
        response: accepted,
      },
    },
    async (request, reply) => {
      const asked = request.body ?? { allowDisruptive: false }
      request.auditSubject = subjectOf(asked)
      reply.code(202)
      return one(await reconcileNow(dependencies, request.principal.accountId, asked))
    },
  )
}

function reapplyRoute(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  app.post(
    `${BASE}/reapply`,
    {
      config: { access: CHANGE, audit: 'reapply' },
      schema: {
        tags: OPERATIONS,
        summary: 'Write stored passwords to the brokers again, whatever the ledger says',
        description: 'The password is the same one: clients that use it stay connected.',
        body: reapplyBody,
        response: accepted,
      },
    },
    async (request, reply) => {
      const { accountId } = request.principal
      const { registrationId, consumerKey, brokerId } = request.body
      if (registrationId === undefined && consumerKey === undefined) {
        throw new InvalidInputError('The request', [
          { path: 'registrationId', message: 'give it, or a consumerKey, or both' },
        ])
      }
      const subject = registrationId ?? consumerKey ?? ''
      request.auditSubject = subject
      const pairs = await requestPasswords(db, {
        accountId,
        ...(brokerId === undefined ? {} : { brokerId }),
        ...(registrationId === undefined ? {} : { registrationId }),
        ...(consumerKey === undefined ? {} : { consumerKey }),
      })
      if (pairs.length === 0) throw notFound('client username on a broker that belongs to', subject)
      reply.code(202)
      return one(await enqueuePairs(dependencies, pairs))
    },
  )
}

function withdrawalRoute(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  app.post(
    `${BASE}/brokers/:brokerId/confirmWithdrawals`,
    {
      config: { access: CHANGE, audit: 'withdrawals.confirm' },
      schema: {
        tags: OPERATIONS,
        summary: 'Accept the withdrawals that were refused because there were too many at once',
        params: brokerParams,
        response: accepted,
      },
    },
    async ({ principal: { accountId }, params }, reply) => {
      const brokerId = await knownBroker(db, accountId, params.brokerId)
      const pairs = await confirmWithdrawals(db, { accountId, brokerId })
      reply.code(202)
      return one(await enqueuePairs(dependencies, pairs))
    },
  )
}

function adoptionRoute(app: App, { db }: HttpDependencies): void {
  app.post(
    `${BASE}/brokers/:brokerId/adoptions`,
    {
      config: { access: CREATE, audit: 'object.adopt' },
      schema: {
        tags: OPERATIONS,
        summary: 'Take over an existing broker object that stands in conflict with one of ours',
        description:
          'The next run changes the object to what Keymesh wants; for a client username it also writes the stored password, which locks out whoever used it before.',
        params: brokerParams,
        body: adoption,
        response: { 201: oneOf(adoption.extend({ brokerId: z.string() })) },
      },
    },
    async (request, reply) => {
      const { accountId, userName } = request.principal
      const { kind, name } = request.body
      const brokerId = await knownBroker(db, accountId, request.params.brokerId)
      request.auditSubject = `${kind} ${name} on ${brokerId}`
      await recordAdoption(db, { accountId, brokerId }, { kind, name }, userName)
      reply.code(201)
      return one({ brokerId, kind, name })
    },
  )
}
