import { sql } from 'kysely'
import { registrationId } from '../domain/ids.ts'
import { OneAtATime } from '../reconcile/one-at-a-time.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey, SweepStore } from '../reconcile/sweep-port.ts'
import { confirmedLogins } from './confirmed-logins.ts'
import type { Database } from './database.ts'
import { dueLogins } from './due-logins.ts'
import { makeRefusedDue, recordLogins } from './login-verdicts.ts'
import { type StandBack, settledRegistrations } from './settled-facts.ts'

const CHUNK = 250

/** Keyset pages over the pairs of a broker: memory does not grow with the broker. */
export function createSweepStore(db: Database, standBack: StandBack = async () => undefined): SweepStore {
  const turns = new OneAtATime()
  return {
    settled: (broker, signal) => settledRegistrations({ db, turns, standBack }, broker, signal),
    unsettled: (broker, signal) => unsettled(db, broker, signal),
    dueLogins: (broker, request) => dueLogins(db, broker, request),
    confirmedLogins: (broker, registration, signal) => confirmedLogins(db, broker, registration, signal),
    recordLogins: async (logins) => {
      await db.transaction().execute((trx) => recordLogins(trx, logins))
      // After it: runs lock their pairs before they lock what verdicts change. A sweep finds what a crash leaves undone.
      await makeRefusedDue(db, logins)
    },
  }
}

/** In sync and due again: a grace period is over, and bulk reads see nothing of that. */
const UNSETTLED = sql`(not (p.reached_generation = p.generation and p.state = 'in-sync') or p.due_at <= now() or p.suspected_at is not null)`

async function* unsettled(db: Database, broker: BrokerKey, signal?: AbortSignal): AsyncIterable<readonly Pair[]> {
  let after = ''
  for (;;) {
    signal?.throwIfAborted()
    const { rows } = await sql<{ id: string }>`
      select p.registration_id as id from pairs p
      where p.account_id = ${broker.accountId} and p.broker_id = ${broker.brokerId} and p.registration_id > ${after}
        and ${UNSETTLED}
      order by p.registration_id limit ${CHUNK}`.execute(db)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(({ id }) => ({ ...broker, registrationId: registrationId(id) }))
    after = last.id
  }
}
