import { codeOf, errorLine } from '../../domain/errors.ts'
import type { AccountId } from '../../domain/ids.ts'
import { notFound } from '../../domain/refusals.ts'
import type { Plan } from '../../reconcile/plan.ts'
import { isEmpty } from '../../reconcile/render.ts'
import { pairsOfRegistration } from '../../store/pairs.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { knownRegistration, managedBrokers } from './known-objects.ts'

type Dependencies = Pick<HttpDependencies, 'db' | 'engine'>

export interface PlansQuery {
  readonly brokerId?: string | undefined
  readonly registrationId?: string | undefined
  /** As if actions that drop live clients may run. */
  readonly allowDisruptive: boolean
  /** At most so many plans. */
  readonly limit: number
}

export interface PlanFailure {
  readonly brokerId: string
  readonly registrationId?: string
  readonly code: string
  readonly message: string
}

export interface CollectedPlans {
  /** Those with something to do. */
  readonly plans: readonly Plan[]
  /** False: there is more, or a broker could not be read. */
  readonly complete: boolean
  readonly failures: readonly PlanFailure[]
}

/**
 * What runs would do now. Reads the brokers and changes nothing; a sick broker is told of beside the plans of the others.
 * Ends, incomplete, with the signal. Throws NOT_FOUND for names that the account does not have.
 */
export async function collectPlans(
  dependencies: Dependencies,
  accountId: AccountId,
  query: PlansQuery,
  signal: AbortSignal,
): Promise<CollectedPlans> {
  const targets = await findTargets(dependencies, accountId, query)
  const { allowDisruptive, limit } = query
  const plans: Plan[] = []
  const failures: PlanFailure[] = []
  for (const { brokerId, registrationId, plansOf } of targets) {
    const named = registrationId === undefined ? { brokerId } : { brokerId, registrationId }
    try {
      for await (const found of plansOf({ signal, allowDisruptive })) {
        if (found === null || isEmpty(found)) continue
        if (plans.length === limit) return { plans, complete: false, failures }
        plans.push(found)
      }
    } catch (error) {
      if (signal.aborted) return { plans, complete: false, failures }
      failures.push({ ...named, code: codeOf(error), message: errorLine(error) })
    }
  }
  return { plans, complete: failures.length === 0, failures }
}

interface PlanOptions {
  readonly signal: AbortSignal
  readonly allowDisruptive: boolean
}

interface Target {
  readonly brokerId: string
  readonly registrationId?: string
  readonly plansOf: (options: PlanOptions) => AsyncIterable<Plan | null>
}

async function findTargets(
  { db, engine }: Dependencies,
  accountId: AccountId,
  query: PlansQuery,
): Promise<readonly Target[]> {
  if (query.registrationId === undefined) {
    return (await managedBrokers(db, accountId, query.brokerId)).map((broker) => ({
      brokerId: broker.brokerId,
      plansOf: (options) => engine.planBroker({ accountId, brokerId: broker.brokerId }, options),
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
    async *plansOf(options) {
      yield await engine.planPair(pair, options)
    },
  }))
}
