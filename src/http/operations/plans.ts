import { z } from 'zod'
import { codeOf, errorLine } from '../../domain/errors.ts'
import type { AccountId } from '../../domain/ids.ts'
import { notFound } from '../../domain/refusals.ts'
import type { Plan } from '../../reconcile/plan.ts'
import { isEmpty, renderPlan } from '../../reconcile/render.ts'
import { pairsOfRegistration } from '../../store/pairs.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { BASE, OPERATIONS, READ } from './access.ts'
import { knownRegistration, managedBrokers } from './known-objects.ts'
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
      const targets = await findTargets(dependencies, accountId, query)
      return await collect(targets, { deadline, allowDisruptive: query.allowDisruptive, limit: query.limit })
    },
  )
}

interface PlanOptions {
  readonly signal: AbortSignal
  readonly allowDisruptive: boolean
}

interface Target {
  readonly brokerId: string
  readonly registrationId?: string
  readonly plans: (options: PlanOptions) => AsyncIterable<Plan | null>
}

async function findTargets(
  { db, engine }: HttpDependencies,
  accountId: AccountId,
  query: z.output<typeof planQuery>,
): Promise<readonly Target[]> {
  if (query.registrationId === undefined) {
    return (await managedBrokers(db, accountId, query.brokerId)).map((broker) => ({
      brokerId: broker.brokerId,
      plans: (options) => engine.planBroker({ accountId, brokerId: broker.brokerId }, options),
    }))
  }
  const registrationId = await knownRegistration(db, accountId, query.registrationId)
  const pairs = await pairsOfRegistration(db, accountId, registrationId)
  const selected = pairs.filter((pair) => query.brokerId === undefined || pair.brokerId === query.brokerId)
  if (selected.length === 0 && query.brokerId !== undefined)
    throw notFound('broker of the registration', query.brokerId)
  return selected.map((pair) => ({
    brokerId: pair.brokerId,
    registrationId,
    async *plans(options) {
      yield await engine.planPair(pair, options)
    },
  }))
}

interface Collecting {
  readonly deadline: AbortSignal
  readonly allowDisruptive: boolean
  readonly limit: number
}

/** A sick broker is told of beside the plans of the others. */
async function collect(targets: readonly Target[], { deadline, allowDisruptive, limit }: Collecting) {
  const data: z.input<typeof plan>[] = []
  const failures: z.input<typeof planAnswer>['meta']['failures'] = []
  for (const { brokerId, registrationId, plans } of targets) {
    const named = registrationId === undefined ? { brokerId } : { brokerId, registrationId }
    try {
      for await (const found of plans({ signal: deadline, allowDisruptive })) {
        if (found === null || isEmpty(found)) continue
        if (data.length === limit) return { data, meta: { complete: false, failures } }
        data.push(shown(found))
      }
    } catch (error) {
      if (deadline.aborted) return { data, meta: { complete: false, failures } }
      failures.push({ ...named, code: codeOf(error), message: errorLine(error) })
    }
  }
  return { data, meta: { complete: failures.length === 0, failures } }
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
