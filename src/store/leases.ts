import { sql } from 'kysely'
import type { Lease, Pair } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'
import { pausedPair } from './pause.ts'

/**
 * Leases live on the pair's row and run on the database's clock, so that workers need not agree on the time.
 * A token grows with every holder: what a former holder still sends is refused by comparison.
 */
export interface LeaseRequest {
  readonly pair: Pair
  readonly holder: string
  readonly ttlMs: number
}

/**
 * A lease that ends this many times its length from now was taken before the database's clock was set back; its holder may
 * be long gone. Were it not, its token would stop it.
 */
const FAR = sql`interval '10 milliseconds'`

const pairKey = (pair: Pair): string => JSON.stringify([pair.accountId, pair.brokerId, pair.registrationId])

export async function acquireLeases(
  db: Database,
  requests: readonly LeaseRequest[],
): Promise<readonly (Lease | null)[]> {
  // Two requests for one pair in one batch: the first one gets it.
  const first = new Map<string, number>()
  requests.forEach(({ pair }, index) => {
    const key = pairKey(pair)
    if (!first.has(key)) first.set(key, index)
  })
  const rows = requests.map(({ pair, holder, ttlMs }, index) => ({ ...pair, holder, ttlMs, index }))
  const wanted = rows.filter((row) => first.get(pairKey(row)) === row.index)
  const { rows: granted } = await sql<{ index: number; token: number }>`
    with wanted as (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb)
        as w("accountId" text, "brokerId" text, "registrationId" text, holder text, "ttlMs" bigint, index integer)
    ), free as (
      select p.account_id, p.broker_id, p.registration_id, w.index, w.holder, w."ttlMs" from pairs p
      join wanted w on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
      where (p.lease_until is null or p.lease_until < now() or p.lease_until > now() + w."ttlMs" * ${FAR})
        and not ${pausedPair}
      order by p.account_id, p.registration_id, p.broker_id
      for update of p skip locked
    )
    update pairs p
    set lease_holder = free.holder, lease_token = p.lease_token + 1,
        lease_until = clock_timestamp() + free."ttlMs" * interval '1 millisecond'
    from free
    where p.account_id = free.account_id and p.broker_id = free.broker_id and p.registration_id = free.registration_id
    returning free.index, p.lease_token as token`.execute(db)
  const tokens = new Map(granted.map((row) => [row.index, row.token]))
  return requests.map(({ pair, holder }, index) => {
    const token = tokens.get(index)
    return token === undefined ? null : { pair, holder, token }
  })
}

export interface LeaseCheck {
  readonly lease: Lease
  readonly generation: number
  readonly ttlMs: number
}

/** True where the lease is still held and the generation is still the same. Renews what runs out soon. */
export async function checkLeases(db: Database, checks: readonly LeaseCheck[]): Promise<readonly boolean[]> {
  const rows = checks.map(({ lease, generation, ttlMs }, index) => ({
    ...lease.pair,
    token: lease.token,
    generation,
    ttlMs,
    index,
  }))
  const { rows: held } = await sql<{ index: number; ends: boolean }>`
    select w.index, p.lease_until < now() + w."ttlMs" * interval '0.5 millisecond' as ends
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, token bigint, generation bigint, "ttlMs" bigint, index integer)
    join pairs p on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
    where p.lease_token = w.token and p.lease_until > now() and p.generation = w.generation`.execute(db)
  const ending = held.filter((row) => row.ends).flatMap((row) => rows[row.index] ?? [])
  if (ending.length > 0) await renew(db, ending)
  const allowed = new Set(held.map((row) => row.index))
  return checks.map((_, index) => allowed.has(index))
}

async function renew(db: Database, rows: readonly object[]): Promise<void> {
  await sql`
    update pairs p set lease_until = clock_timestamp() + w."ttlMs" * interval '1 millisecond'
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, token bigint, "ttlMs" bigint)
    where p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
      and p.lease_token = w.token and p.lease_until > now()`.execute(db)
}
