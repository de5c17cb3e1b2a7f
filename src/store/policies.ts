import { sql } from 'kysely'
import type { BrokerPolicy } from '../domain/catalogue.ts'
import { notFound } from '../domain/refusals.ts'
import { inCatalogueTransaction } from './catalogue-transaction.ts'
import type { Database } from './database.ts'
import { raiseGenerations, touchedRegistrations } from './generations.ts'
import { brokerContent, canonicalJson, revisionOf } from './import-content.ts'

/** Null when the account has no such broker. */
export async function readPolicy(db: Database, accountId: string, brokerId: string): Promise<BrokerPolicy | null> {
  const row = await db
    .selectFrom('brokers')
    .select('policy')
    .where('account_id', '=', accountId)
    .where('id', '=', brokerId)
    .executeTakeFirst()
  return row?.policy ?? null
}

export interface PolicyChange {
  readonly accountId: string
  readonly brokerId: string
  readonly change: (policy: BrokerPolicy) => BrokerPolicy
  /** Given the revision of the stored policy; throws when the caller knew another one. */
  readonly check: (revision: string) => void
}

export interface ChangedPolicy {
  readonly policy: BrokerPolicy
  /** Registrations whose generation was raised. */
  readonly raised: readonly string[]
}

export const policyRevision = (policy: BrokerPolicy): string => revisionOf(policy)

/** Every registration of the broker is planned anew. Throws NOT_FOUND, or what `check` throws. */
export function changePolicy(
  db: Database,
  { accountId, brokerId, change, check }: PolicyChange,
): Promise<ChangedPolicy> {
  return inCatalogueTransaction(db, accountId, async (trx) => {
    const row = await trx
      .selectFrom('brokers')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('id', '=', brokerId)
      .forUpdate()
      .executeTakeFirst()
    if (row === undefined) throw notFound('broker', brokerId)
    check(policyRevision(row.policy))
    const policy = change(row.policy)
    if (canonicalJson(policy) === canonicalJson(row.policy)) return { policy, raised: [] }
    const { name, kind, event_mesh_id: eventMeshId, management, messaging } = row
    await trx
      .updateTable('brokers')
      .set({
        policy: JSON.stringify(policy),
        revision: revisionOf(brokerContent({ name, kind, eventMeshId, management, messaging, policy })),
        updated_at: sql`now()`,
      })
      .where('account_id', '=', accountId)
      .where('id', '=', brokerId)
      .execute()
    const touched = { registrations: [], productVersions: [], eventApis: [], brokers: [brokerId] }
    const raised = await touchedRegistrations(trx, accountId, touched)
    await raiseGenerations(trx, accountId, raised)
    return { policy, raised }
  })
}
