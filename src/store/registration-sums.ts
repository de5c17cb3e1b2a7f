import { sql } from 'kysely'
import type { Database } from './database.ts'

/** How the registrations of a broker stand. */
export interface RegistrationSums {
  readonly total: number
  readonly inSync: number
  readonly lagging: number
  readonly drifted: number
  readonly held: number
  readonly conflict: number
  readonly refused: number
  readonly error: number
  /** Of all these, those that do not heal by themselves. */
  readonly needPerson: number
}

export const NO_REGISTRATIONS: RegistrationSums = {
  total: 0,
  inSync: 0,
  lagging: 0,
  drifted: 0,
  held: 0,
  conflict: 0,
  refused: 0,
  error: 0,
  needPerson: 0,
}

export interface BrokerSums {
  readonly registrations: RegistrationSums
  /** The longest a registration has lagged. */
  readonly oldestLagMs: number | null
  /** Why registrations are not in sync: the most common reasons first. */
  readonly reasons: readonly ReasonCount[]
}

export interface ReasonCount {
  readonly reason: string
  readonly count: number
}

export const NO_SUMS: BrokerSums = { registrations: NO_REGISTRATIONS, oldestLagMs: null, reasons: [] }

const REASONS_OF_A_BROKER = 3

interface Row extends RegistrationSums {
  readonly broker: string
  readonly oldestLagMs: number | null
}

/**
 * By broker id, of these brokers; of all when none are given. A broker without registrations is not in it. One pass over the
 * pairs: a look-up for each broker or pair costs seconds where this costs a tenth of one.
 */
export async function sumRegistrations(
  db: Database,
  account: string,
  brokers: readonly string[] | null,
): Promise<ReadonlyMap<string, BrokerSums>> {
  const { rows } = await sql<Row>`
    with open as materialized (
      select distinct broker_id, registration_id from drift
      where account_id = ${account} and repaired_at is null and registration_id is not null
    )
    select p.broker_id as broker, count(*) as total,
      count(*) filter (where p.state = 'in-sync' and p.reached_generation = p.generation and d.broker_id is null) as "inSync",
      count(*) filter (where p.reached_generation < p.generation and p.state in ('lagging', 'in-sync')) as lagging,
      count(*) filter (where d.broker_id is not null and p.state = 'in-sync' and p.reached_generation = p.generation) as drifted,
      count(*) filter (where p.state = 'held') as held,
      count(*) filter (where p.state = 'conflict') as conflict,
      count(*) filter (where p.state = 'refused') as refused,
      count(*) filter (where p.state = 'error') as error,
      count(*) filter (where p.needs_person) as "needPerson",
      (extract(epoch from now() - min(p.changed_at) filter (where p.reached_generation < p.generation)) * 1000)::bigint as "oldestLagMs"
    from pairs p left join open d on d.broker_id = p.broker_id and d.registration_id = p.registration_id
    where p.account_id = ${account} and (${brokers}::text[] is null or p.broker_id = any(${brokers}::text[]))
    group by p.broker_id`.execute(db)
  const reasons = await readReasons(db, account, brokers)
  return new Map(
    rows.map(({ broker, oldestLagMs, ...registrations }) => [
      broker,
      { registrations, oldestLagMs, reasons: reasons.get(broker) ?? [] },
    ]),
  )
}

async function readReasons(
  db: Database,
  account: string,
  brokers: readonly string[] | null,
): Promise<ReadonlyMap<string, readonly ReasonCount[]>> {
  const { rows } = await sql<ReasonCount & { readonly broker: string }>`
    select broker, reason, count from (
      select broker_id as broker, reason, count(*) as count,
        row_number() over (partition by broker_id order by count(*) desc, reason) as place
      from pairs
      where account_id = ${account} and reason is not null and (state <> 'in-sync' or reached_generation < generation)
        and (${brokers}::text[] is null or broker_id = any(${brokers}::text[]))
      group by broker_id, reason) counted
    where place <= ${REASONS_OF_A_BROKER} order by broker, place`.execute(db)
  const found = new Map<string, ReasonCount[]>()
  for (const { broker, reason, count } of rows) found.set(broker, [...(found.get(broker) ?? []), { reason, count }])
  return found
}
