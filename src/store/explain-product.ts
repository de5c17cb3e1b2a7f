import type { ProductState } from '../domain/catalogue.ts'
import {
  type BrokerExplanation,
  type BrokerFactsForUse,
  explainBroker,
  explainVisibility,
  type VisibilityExplanation,
} from '../domain/visibility.ts'
import type { Database } from './database.ts'

export interface ProductExplanation {
  readonly id: string
  readonly name: string
  /** Newest first by creation, all that the store holds. */
  readonly versions: readonly VersionExplanation[]
}

export interface VersionExplanation extends VisibilityExplanation {
  readonly version: string
  readonly state: ProductState
  readonly brokers: readonly NamedBrokerExplanation[]
}

export interface NamedBrokerExplanation extends BrokerExplanation {
  readonly id: string
}

/** Which rule makes each version of a product visible or not; null when the account has no such product. */
export async function explainProduct(
  db: Database,
  accountId: string,
  productId: string,
): Promise<ProductExplanation | null> {
  const product = await db
    .selectFrom('products')
    .select(['id', 'name', 'shared'])
    .where('account_id', '=', accountId)
    .where('id', '=', productId)
    .executeTakeFirst()
  if (product === undefined) return null
  const versions = await db
    .selectFrom('product_versions')
    .select(['version', 'state', 'publicly_available'])
    .where('account_id', '=', accountId)
    .where('product_id', '=', productId)
    .orderBy('created_at', 'desc')
    .orderBy('version', 'desc')
    .execute()
  const plans = await db
    .selectFrom('plans')
    .select(['version', 'name'])
    .where('account_id', '=', accountId)
    .where('product_id', '=', productId)
    .orderBy('position')
    .execute()
  const associations = await db
    .selectFrom('product_version_brokers')
    .select(['version', 'broker_id'])
    .where('account_id', '=', accountId)
    .where('product_id', '=', productId)
    .orderBy('broker_id')
    .execute()
  const brokers = await readBrokerFacts(db, accountId, [...new Set(associations.map((row) => row.broker_id))])
  return {
    id: product.id,
    name: product.name,
    versions: versions.map(({ version, state, publicly_available }) => {
      const associated = associations
        .filter((row) => row.version === version)
        .flatMap((row) => brokers.get(row.broker_id) ?? [])
      const explanation = explainVisibility({
        shared: product.shared,
        state,
        public: publicly_available,
        planNames: plans.filter((plan) => plan.version === version).map(({ name }) => name),
        brokers: associated,
      })
      return { version, state, ...explanation, brokers: associated.map(namedExplanation) }
    }),
  }
}

/** Whether products can use a broker, and what it lacks; null when the account has no such broker. */
export async function explainBrokerUse(
  db: Database,
  accountId: string,
  brokerId: string,
): Promise<NamedBrokerExplanation | null> {
  const facts = (await readBrokerFacts(db, accountId, [brokerId])).get(brokerId)
  return facts === undefined ? null : namedExplanation(facts)
}

export const namedExplanation = (facts: BrokerFactsForUse): NamedBrokerExplanation => ({
  id: facts.id,
  ...explainBroker(facts),
})

/** Of those of these ids that the account has. */
export async function readBrokerFacts(
  db: Database,
  accountId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, BrokerFactsForUse>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('brokers')
    .leftJoin('event_meshes', (join) =>
      join
        .onRef('event_meshes.account_id', '=', 'brokers.account_id')
        .onRef('event_meshes.id', '=', 'brokers.event_mesh_id'),
    )
    .leftJoin('environments', (join) =>
      join
        .onRef('environments.account_id', '=', 'event_meshes.account_id')
        .onRef('environments.id', '=', 'event_meshes.environment_id'),
    )
    .select(['brokers.id', 'event_meshes.name as meshName', 'environments.name as environmentName'])
    .select(['brokers.management', 'brokers.management_password', 'brokers.messaging'])
    .where('brokers.account_id', '=', accountId)
    .where('brokers.id', 'in', ids)
    .execute()
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        eventMeshName: row.meshName,
        environmentName: row.environmentName,
        managementIsComplete: row.management !== null && row.management_password !== null,
        messaging: row.messaging,
      },
    ]),
  )
}
