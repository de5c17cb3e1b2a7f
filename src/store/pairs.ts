import { sql } from 'kysely'
import { accountId, brokerId, registrationId } from '../domain/ids.ts'
import { REST_CAP_MS } from '../reconcile/broker-health.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'
import { pausedPair } from './pause.ts'

interface PairRow {
  readonly account: string
  readonly broker: string
  readonly registration: string
}

const toPair = (row: PairRow): Pair => ({
  accountId: accountId(row.account),
  brokerId: brokerId(row.broker),
  registrationId: registrationId(row.registration),
})

const columns = sql`p.account_id as account, p.broker_id as broker, p.registration_id as registration`

/**
 * Level-triggered: every pair that lags or is due, or that a sweep suspected and left, whatever the queue remembers, on
 * brokers that can be reached at all, are not paused and do not rest: a rest that ends later than any lasts was begun
 * before the clock was set back. Longest waiting first.
 */
export async function laggingPairs(db: Database, limit: number): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    select ${columns} from pairs p
    join brokers b on b.account_id = p.account_id and b.id = p.broker_id
      and b.management is not null and b.management_password is not null
    where ((p.reached_generation < p.generation and (p.due_at is null or p.due_at <= now())) or p.due_at <= now()
        or p.suspected_at <= now() - interval '10 minutes')
      and not ${pausedPair}
      and not exists (select from broker_status s where s.account_id = p.account_id and s.broker_id = p.broker_id
        and s.health = 'open' and s.retry_at > now() and s.retry_at <= now() + ${REST_CAP_MS} * interval '1 millisecond')
    order by coalesce(p.due_at, p.changed_at) limit ${limit}`.execute(db)
  return rows.map(toPair)
}

/**
 * Those of them on which a client username may still be on though its credential ended; of registrations that stay on
 * the broker, since many that leave it at once may be an accident.
 */
export async function revokedPairs(db: Database, limit: number): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    select ${columns} from pairs p
    where p.reached_generation < p.generation and p.wanted and (p.due_at is null or p.due_at <= now())
      and not ${pausedPair}
      and exists (
        select 1 from ledger l
        where l.account_id = p.account_id and l.broker_id = p.broker_id and l.registration_id = p.registration_id
          and l.kind = 'clientUsername' and l.withdrawn_at is null
          and not exists (select 1 from credentials c
            where c.account_id = l.account_id and c.registration_id = l.registration_id and c.consumer_key = l.name
              and c.retired_at is null))
    order by p.changed_at limit ${limit}`.execute(db)
  return rows.map(toPair)
}

/** What lags or is due of a filter, after a pause: as the poll would find it. */
export async function lagsOf(db: Database, filter: PairFilter, limit: number): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    select ${columns} from pairs p
    where ${matches(filter)} and (p.reached_generation < p.generation or p.due_at <= now()) and not ${pausedPair}
    order by p.changed_at limit ${limit}`.execute(db)
  return rows.map(toPair)
}

export async function pairsOfRegistration(
  db: Database,
  account: string,
  registration: string,
): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    select ${columns} from pairs p
    where p.account_id = ${account} and p.registration_id = ${registration} order by p.broker_id`.execute(db)
  return rows.map(toPair)
}

export interface PairFilter {
  readonly accountId: string
  readonly brokerId?: string
  readonly registrationId?: string
  readonly consumerKey?: string
}

const matches = (filter: PairFilter) => sql`p.account_id = ${filter.accountId}
  and (${filter.brokerId ?? null}::text is null or p.broker_id = ${filter.brokerId ?? null})
  and (${filter.registrationId ?? null}::text is null or p.registration_id = ${filter.registrationId ?? null})`

/** Marks passwords to be written again whatever the ledger says; answers the pairs to reconcile. */
export async function requestPasswords(db: Database, filter: PairFilter): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    with due as (
      update ledger p set password_due = true
      where ${matches(filter)} and p.kind = 'clientUsername' and p.withdrawn_at is null
        and (${filter.consumerKey ?? null}::text is null or p.name = ${filter.consumerKey ?? null})
      returning p.account_id, p.broker_id, p.registration_id
    )
    update pairs p set due_at = now() from due
    where p.account_id = due.account_id and p.broker_id = due.broker_id and p.registration_id = due.registration_id
    returning ${columns}`.execute(db)
  return rows.map(toPair)
}

export interface RunRequest {
  readonly accountId: string
  readonly brokerId?: string
  readonly registrationId?: string
  /** Only pairs that wait for a person. */
  readonly heldOnly?: boolean
  /** Until then the next run may drop live clients; null: as policy says. */
  readonly disruptiveUntilMs: number | null
}

/** Makes pairs due, so that a lost job costs time only; answers them. */
export async function requestRuns(db: Database, request: RunRequest): Promise<readonly Pair[]> {
  const until = request.disruptiveUntilMs === null ? null : new Date(request.disruptiveUntilMs)
  const { rows } = await sql<PairRow>`
    update pairs p set due_at = now(), disruptive_allowed_until = coalesce(${until}::timestamptz, p.disruptive_allowed_until)
    where ${matches(request)} and (not ${request.heldOnly ?? false} or p.state = 'held')
    returning ${columns}`.execute(db)
  return rows.map(toPair)
}

/** Pairs of these registrations, at most `limit`: what is beyond it is left to the poll. */
export async function pairsOfRegistrations(
  db: Database,
  account: string,
  registrations: readonly string[],
  limit: number,
): Promise<readonly Pair[]> {
  if (registrations.length === 0) return []
  const { rows } = await sql<PairRow>`
    select ${columns} from pairs p
    where p.account_id = ${account} and p.registration_id = any(${registrations})
    order by p.registration_id, p.broker_id limit ${limit}`.execute(db)
  return rows.map(toPair)
}

/** A person looked at a refused plan and accepts the withdrawals that wait on the broker. */
export async function confirmWithdrawals(db: Database, broker: BrokerKey): Promise<readonly Pair[]> {
  const { rows } = await sql<PairRow>`
    update pairs p set withdrawal_confirmed = true, due_at = now()
    where p.account_id = ${broker.accountId} and p.broker_id = ${broker.brokerId} and p.state = 'refused'
    returning ${columns}`.execute(db)
  return rows.map(toPair)
}

export async function recordAdoption(
  db: Database,
  broker: BrokerKey,
  object: { readonly kind: string; readonly name: string },
  askedBy: string,
): Promise<void> {
  await sql`
    insert into adoptions (account_id, broker_id, kind, name, asked_by)
    values (${broker.accountId}, ${broker.brokerId}, ${object.kind}, ${object.name}, ${askedBy})
    on conflict do nothing`.execute(db)
}
