import { type RawBuilder, sql } from 'kysely'
import { KeymeshError } from '../domain/errors.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

// While something is paused, no run takes a lease there: what runs ends, and nothing begins. Generations rise meanwhile.

export const pausedAccount = (accountId: RawBuilder<unknown>) =>
  sql<boolean>`exists (select 1 from pauses x where x.account_id = ${accountId} and x.scope = 'account')`

/** Of a row `p` of `pairs`: its account, its broker or its registration is paused. */
export const pausedPair = sql<boolean>`(
  exists (select 1 from pauses x where x.account_id = p.account_id and x.scope = 'account')
  or exists (select 1 from pauses x where x.account_id = p.account_id and x.scope = 'registration' and x.id = p.registration_id)
  or exists (select 1 from broker_status x where x.account_id = p.account_id and x.broker_id = p.broker_id and x.paused))`

/** The pause of a broker lives here; its queue follows. */
export async function setBrokerPaused(db: Database, broker: BrokerKey, paused: boolean): Promise<void> {
  await sql`
    insert into broker_status (account_id, broker_id, paused) values (${broker.accountId}, ${broker.brokerId}, ${paused})
    on conflict (account_id, broker_id) do update set paused = excluded.paused`.execute(db)
}

export interface PauseTarget {
  readonly accountId: string
  /** Null: everything of the account. */
  readonly registrationId: string | null
}

const keyOf = ({ accountId, registrationId }: PauseTarget) =>
  ({
    account_id: accountId,
    scope: registrationId === null ? 'account' : 'registration',
    id: registrationId ?? '',
  }) as const

/** Who paused first stays on record. */
export async function pause(db: Database, target: PauseTarget, pausedBy: string): Promise<void> {
  await db
    .insertInto('pauses')
    .values({ ...keyOf(target), paused_by: pausedBy })
    .onConflict((on) => on.doNothing())
    .execute()
}

export async function resume(db: Database, target: PauseTarget): Promise<void> {
  const { account_id, scope, id } = keyOf(target)
  await db
    .deleteFrom('pauses')
    .where('account_id', '=', account_id)
    .where('scope', '=', scope)
    .where('id', '=', id)
    .execute()
}

export interface PauseView {
  readonly scope: 'account' | 'broker' | 'registration'
  /** Null for the account. */
  readonly id: string | null
  /** Null for a broker. */
  readonly pausedBy: string | null
  /** Epoch milliseconds; null for a broker. */
  readonly pausedAtMs: number | null
}

/** The account first, then brokers, then registrations. */
export async function readPauses(
  db: Database,
  accountId: string,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly pauses: readonly PauseView[]; readonly count: number }> {
  const all = sql`
    select scope, nullif(id, '') as id, paused_by as "pausedBy", paused_at as "pausedAt" from pauses
    where account_id = ${accountId}
    union all
    select 'broker', broker_id, null, null from broker_status where account_id = ${accountId} and paused`
  const { rows } = await sql<Omit<PauseView, 'pausedAtMs'> & { readonly pausedAt: Date | null }>`
    select * from (${all}) as every order by scope, id limit ${page.limit} offset ${page.offset}`.execute(db)
  const counted = await sql<{ count: number }>`select count(*) as count from (${all}) as every`.execute(db)
  return {
    pauses: rows.map(({ pausedAt, ...row }) => ({ ...row, pausedAtMs: pausedAt?.getTime() ?? null })),
    count: counted.rows[0]?.count ?? 0,
  }
}

/** Throws PAUSED when nothing may be done for the pair. */
export async function refusePausedPair(db: Database, pair: Pair): Promise<void> {
  const { rows } = await sql`
    select 1 from pairs p where p.account_id = ${pair.accountId} and p.broker_id = ${pair.brokerId}
      and p.registration_id = ${pair.registrationId} and ${pausedPair}`.execute(db)
  if (rows.length > 0) throw paused(`Registration ${pair.registrationId} on broker ${pair.brokerId}`)
}

/** Throws PAUSED when the broker or its account is. */
export async function refusePausedBroker(db: Database, broker: BrokerKey): Promise<void> {
  const { rows } = await sql`
    select 1 where ${pausedAccount(sql`${broker.accountId}::text`)}
      or exists (select 1 from broker_status s where s.account_id = ${broker.accountId}
        and s.broker_id = ${broker.brokerId} and s.paused)`.execute(db)
  if (rows.length > 0) throw paused(`Broker ${broker.brokerId}`)
}

const paused = (what: string): KeymeshError =>
  new KeymeshError({
    code: 'PAUSED',
    fate: 'stop',
    message: `${what} is paused; nothing was done.`,
    hint: 'Resume it, its broker or the account, whichever is paused.',
  })
