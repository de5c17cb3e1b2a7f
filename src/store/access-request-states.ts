import { sql, type Transaction } from 'kysely'
import { counted } from './generations.ts'
import type { Schema } from './schema.ts'

interface Registration {
  readonly accountId: string
  readonly registrationId: string
}

/** Of a pair `p`: the broker refused the last login with a live credential in its present version. */
const loginsFail = sql<boolean>`exists (select 1 from login_verdicts lv
  join credentials c on c.account_id = lv.account_id and c.registration_id = lv.registration_id
    and c.consumer_key = lv.consumer_key and c.secret_version = lv.credential_version and c.retired_at is null
  where lv.account_id = p.account_id and lv.registration_id = p.registration_id and lv.broker_id = p.broker_id
    and lv.outcome in ('rejected', 'disabled'))`

/** Of a pair `p`: the broker has all that the registration wants. What waits for a window is still in effect. */
const fine = sql<boolean>`(p.reached_generation >= p.generation and p.state in ('in-sync', 'held') and not ${loginsFail})`

/** Of a pair `p` and a request `a`: one that is in ERROR stays there until the failure is over, and names the last one. */
const failing = sql<boolean>`(p.needs_person or (a.state = 'ERROR' and p.state in ('error', 'conflict', 'refused')))`

/**
 * LIVE when every broker of the request's product has reached the registration's generation, ERROR with a reason when a
 * person must act on one of them; what is neither stays as it is. Called by who just wrote pairs of the registrations,
 * in the same transaction. Of requests that are LIVE it reads only whether one of their pairs fails.
 */
export async function settleAccessRequests(
  trx: Transaction<Schema>,
  registrations: readonly Registration[],
): Promise<void> {
  if (registrations.length === 0) return
  const keys = JSON.stringify(registrations.map(({ accountId, registrationId }) => ({ accountId, registrationId })))
  const asked = sql`(select distinct * from jsonb_to_recordset(${keys}::jsonb) as k("accountId" text, "registrationId" text)) w`
  const unsettled = sql`
    a.account_id = w."accountId" and a.registration_id = w."registrationId" and ${counted}
    and (a.state <> 'LIVE' or exists (select 1 from pairs p
      where p.account_id = a.account_id and p.registration_id = a.registration_id and (p.needs_person or ${loginsFail})))`
  // Two brokers that finish at once do not see each other's pairs; who gets the lock second does, in its next statement.
  const { rows } = await sql`
    select 1 from ${asked} join access_requests a on ${unsettled}
    order by a.account_id, a.registration_id, a.id for no key update of a`.execute(trx)
  if (rows.length === 0) return
  await sql`
    with a as materialized (select a.* from ${asked} join access_requests a on ${unsettled}),
    judged as (
      select a.account_id, a.registration_id, a.id,
        count(*) filter (where ${failing}) as failing,
        (array_agg('Broker ' || b.name || ': ' || coalesce(p.reason, p.state) order by b.name, b.id)
          filter (where ${failing}))[1] as reason,
        bool_and(coalesce(${fine}, false)) as fine,
        bool_and(coalesce(${fine} or p.state = 'held', false)) as waits
      from a
      join product_versions v on v.account_id = a.account_id and v.product_id = a.product_id and v.version = a.product_version
        and v.state in ('RELEASED', 'DEPRECATED')
      join product_version_brokers t on t.account_id = v.account_id and t.product_id = v.product_id and t.version = v.version
      join brokers b on b.account_id = t.account_id and b.id = t.broker_id
      left join pairs p on p.account_id = a.account_id and p.registration_id = a.registration_id
        and p.broker_id = t.broker_id and p.wanted
      group by 1, 2, 3
    ),
    settled as (
      select a.account_id, a.registration_id, a.id, n.state,
        case n.state when 'ERROR' then coalesce(${text(sql`j`)}, a.reason) end as reason
      from judged j
      join a on a.account_id = j.account_id and a.registration_id = j.registration_id and a.id = j.id
      cross join lateral (select case when j.failing > 0 then 'ERROR' when j.fine then 'LIVE'
        when j.waits and a.state = 'ERROR' then 'APPROVED' else a.state end as state) n
    )
    update access_requests a set state = s.state, reason = s.reason from settled s
    where a.account_id = s.account_id and a.registration_id = s.registration_id and a.id = s.id
      and (a.state, a.reason) is distinct from (s.state, s.reason)`.execute(trx)
}

/** The first broker and how many more. Null when none fails. */
const text = (judged: ReturnType<typeof sql>) => sql`(${judged}.reason || case
  when ${judged}.failing = 2 then ' And 1 more broker.'
  when ${judged}.failing > 2 then ' And ' || ${judged}.failing - 1 || ' more brokers.'
  else '' end)`
