import { z } from 'zod'
import type { Plan } from '../../reconcile/plan.ts'
import { renderPlan } from '../../reconcile/render.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { BASE, OPERATIONS, READ } from './access.ts'
import { collectPlans } from './collect-plans.ts'
import { flag, idParameter, plan } from './operations-schemas.ts'

const DEFAULT_PLANS = 20
const MAX_PLANS = 200
/** A broker's objects are read for it: it ends, incomplete, before the handler's own time is over. */
const DEADLINE_MS = 45_000

const planQuery = z.strictObject({
  brokerId: idParameter.optional(),
  registrationId: idParameter.optional(),
  allowDisruptive: flag.default(false).describe('Plan as if actions that drop live clients may run.'),
  limit: z.coerce
    .number('must be a whole number')
    .int()
    .min(1)
    .max(MAX_PLANS)
    .default(DEFAULT_PLANS)
    .describe('At most so many plans.'),
})

const planAnswer = z.strictObject({
  data: z.array(plan),
  meta: z.strictObject({
    complete: z.boolean().describe('False: there is more, or a broker could not be read.'),
    failures: z.array(
      z.strictObject({
        brokerId: z.string(),
        registrationId: z.string().optional(),
        code: z.string(),
        message: z.string(),
      }),
    ),
  }),
})

export async function planRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  app.get(
    `${BASE}/plan`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'What a run would do now',
        description: 'Reads the brokers and changes nothing. Registrations with nothing to do are left out.',
        querystring: planQuery,
        response: { 200: planAnswer },
      },
    },
    async ({ principal: { accountId }, query, signal }) => {
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)])
      const { plans, complete, failures } = await collectPlans(dependencies, accountId, query, deadline)
      return { data: plans.map(shown), meta: { complete, failures: [...failures] } }
    },
  )
}

function shown(found: Plan): z.input<typeof plan> {
  const { accountId: _account, steps, drift, conflicts, notes, ...rest } = found
  return {
    ...rest,
    steps: steps.map((step) => ({ ...step, action: { ...step.action } })),
    drift: drift.map((each) => ({ ...each, object: { ...each.object } })),
    conflicts: conflicts.map((each) => ({ ...each, object: { ...each.object } })),
    notes: [...notes],
    lines: [...renderPlan(found)],
  }
}
