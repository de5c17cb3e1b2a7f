import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { notFound } from '../../domain/refusals.ts'
import { changePolicy, policyRevision, readPolicy } from '../../store/policies.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { one, oneOf } from '../pagination.ts'
import { BASE, CHANGE, OPERATIONS, READ } from './access.ts'
import { enqueueRaised } from './enqueueing.ts'
import { idParameter } from './operations-schemas.ts'
import { fromPolicyBody, policyChangeSchema, policySchema, toPolicyBody, WINDOW_MISSING } from './policy-schema.ts'

const params = z.strictObject({ brokerId: idParameter })
const PATH = `${BASE}/brokers/:brokerId/policy`
const response = { 200: oneOf(policySchema) }

export async function policyRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  app.get(
    PATH,
    {
      config: { access: READ },
      schema: { tags: OPERATIONS, summary: 'How much may be changed on a broker', params, response },
    },
    async ({ principal: { accountId }, params: { brokerId } }, reply) => {
      const policy = await readPolicy(db, accountId, brokerId)
      if (policy === null) throw notFound('broker', brokerId)
      setEtag(reply, policyRevision(policy))
      return one(toPolicyBody(policy))
    },
  )
  app.patch(
    PATH,
    {
      config: { access: CHANGE, audit: 'broker.setPolicy' },
      schema: {
        tags: OPERATIONS,
        summary: 'Change how much may be changed on a broker',
        description: 'What is left out stays. Every registration of the broker is planned anew.',
        params,
        body: policyChangeSchema,
        response,
      },
    },
    async ({ principal: { accountId }, params: { brokerId }, body, headers }, reply) => {
      const { policy, raised } = await changePolicy(db, {
        accountId,
        brokerId,
        check: ifMatch(headers['if-match'], 'policy of broker', brokerId),
        change: (stored) => {
          const wanted = { ...toPolicyBody(stored), ...body }
          if (wanted.disruptive === 'window' && wanted.window === null) {
            throw new InvalidInputError('The request', [WINDOW_MISSING])
          }
          return fromPolicyBody(wanted)
        },
      })
      await enqueueRaised(dependencies, accountId, raised)
      setEtag(reply, policyRevision(policy))
      return one(toPolicyBody(policy))
    },
  )
}
