import { sql } from 'kysely'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { settleAccessRequests } from './access-request-states.ts'
import type { Database } from './database.ts'
import { LASTING_RUNS } from './finish-runs.ts'
import { pausedPair } from './pause.ts'

/** A pair that said so a moment ago, or whose own run did, does not say it again. */
const SAID_FOR_MS = 4_000
/** The rest is told of with the next. */
const MOST_AT_ONCE = 2_000

export interface BrokerRest {
  readonly broker: BrokerKey
  readonly atMs: number
  /** When nothing is on record of what the broker said last. */
  readonly message: string
}

/**
 * What waits for a broker that rests says so, though nothing of it is tried: the reason is what the broker said last. It
 * counts as a run that failed, after some of which a person should know. Pairs that somebody is at work on say it themselves.
 */
export async function recordRest(db: Database, { broker, atMs, message }: BrokerRest): Promise<void> {
  const at = new Date(atMs).toISOString()
  const saidBefore = new Date(atMs - SAID_FOR_MS).toISOString()
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ accountId: string; registrationId: string }>`
      with waiting as (
        select p.account_id, p.registration_id, p.broker_id from pairs p
        where p.account_id = ${broker.accountId} and p.broker_id = ${broker.brokerId}
          and p.wanted and p.reached_generation < p.generation and not p.needs_person and not ${pausedPair}
          and (p.lease_until is null or p.lease_until <= now())
          and (p.reconciled_at is null or p.reconciled_at <= ${saidBefore} or p.reconciled_at > ${at})
        order by p.account_id, p.registration_id, p.broker_id limit ${MOST_AT_ONCE}
        for update of p skip locked
      )
      update pairs p set state = 'error', attempts = p.attempts + 1, failing_since = coalesce(p.failing_since, ${at}),
        needs_person = p.attempts + 1 >= ${LASTING_RUNS}, reconciled_at = ${at},
        reason = coalesce((select s.error from broker_status s
          where s.account_id = p.account_id and s.broker_id = p.broker_id), ${message})
      from waiting w
      where p.account_id = w.account_id and p.registration_id = w.registration_id and p.broker_id = w.broker_id
      returning p.account_id as "accountId", p.registration_id as "registrationId"`.execute(trx)
    await settleAccessRequests(trx, rows)
  })
}
