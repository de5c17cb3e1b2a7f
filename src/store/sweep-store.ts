import { sql } from 'kysely'
import { registrationId } from '../domain/ids.ts'
import type { RegistrationFacts } from '../reconcile/plan-registration.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey, SweepStore } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'
import { loadRegistrationFacts } from './registration-facts.ts'

const CHUNK = 250

/** Keyset pages over the pairs of a broker: memory does not grow with the broker. */
export function createSweepStore(db: Database): SweepStore {
  return {
    settled: (broker, signal) => settled(db, broker, signal),
    unsettled: (broker, signal) => pages(db, broker, UNSETTLED, signal),
  }
}

const HAS_OBJECTS = sql`exists (select from ledger l where l.account_id = p.account_id and l.broker_id = p.broker_id
  and l.registration_id = p.registration_id)`
/** A withdrawn registration counts while its grace period lasts: what was switched off must stay so. */
const SETTLED = sql`p.reached_generation = p.generation and p.state = 'in-sync' and (p.wanted or ${HAS_OBJECTS})`
/** In sync and due again: a grace period is over, and bulk reads see nothing of that. */
const UNSETTLED = sql`(not (p.reached_generation = p.generation and p.state = 'in-sync') or p.due_at <= now())`

async function* settled(
  db: Database,
  broker: BrokerKey,
  signal?: AbortSignal,
): AsyncIterable<readonly RegistrationFacts[]> {
  for await (const pairs of pages(db, broker, SETTLED, signal)) {
    const facts = await loadRegistrationFacts(db, pairs)
    yield facts.filter((each) => each !== null)
  }
}

async function* pages(
  db: Database,
  broker: BrokerKey,
  condition: ReturnType<typeof sql>,
  signal?: AbortSignal,
): AsyncIterable<readonly Pair[]> {
  let after = ''
  for (;;) {
    signal?.throwIfAborted()
    const { rows } = await sql<{ id: string }>`
      select p.registration_id as id from pairs p
      where p.account_id = ${broker.accountId} and p.broker_id = ${broker.brokerId} and p.registration_id > ${after}
        and ${condition}
      order by p.registration_id limit ${CHUNK}`.execute(db)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(({ id }) => ({ ...broker, registrationId: registrationId(id) }))
    after = last.id
  }
}
