import { sql } from 'kysely'
import type { ObjectRef } from '../domain/broker-object.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

/** Of these objects, those that the ledger does not know. */
export async function notInLedger(
  db: Database,
  broker: BrokerKey,
  refs: readonly ObjectRef[],
): Promise<readonly ObjectRef[]> {
  const { rows } = await sql<{ kind: ObjectRef['kind']; name: string }>`
    select w.kind, w.name from jsonb_to_recordset(${JSON.stringify(refs)}::jsonb) as w(kind text, name text)
    where not exists (select 1 from ledger l where l.account_id = ${broker.accountId} and l.broker_id = ${broker.brokerId}
      and l.kind = w.kind and l.name = w.name)`.execute(db)
  return rows
}

/** What a sweep saw of objects that look like ours and are not. */
export interface Lookalikes {
  readonly count: number
  /** True when there are more than in the sweep before: somebody makes them. */
  readonly growing: boolean
  readonly examples: readonly string[]
}

const EXAMPLES = 5

/** What is on record after it. */
export async function recordLookalikes(
  db: Database,
  broker: BrokerKey,
  orphans: readonly ObjectRef[],
): Promise<Lookalikes> {
  const examples = orphans.slice(0, EXAMPLES).map(({ kind, name }) => `${kind} ${name}`)
  const { rows } = await sql<{ lookalikes: Lookalikes }>`
    update broker_status set lookalikes = jsonb_build_object('count', ${orphans.length}::integer,
      'growing', lookalikes is not null and (lookalikes ->> 'count')::integer < ${orphans.length}::integer,
      'examples', ${JSON.stringify(examples)}::jsonb)
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}
    returning lookalikes`.execute(db)
  return rows[0]?.lookalikes ?? { count: orphans.length, growing: false, examples }
}
