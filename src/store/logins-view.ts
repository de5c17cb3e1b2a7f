import { type RawBuilder, sql } from 'kysely'
import type { Protocol } from '../domain/catalogue.ts'
import { type NegativeControl, type NotVerifiedReason, standingOf, type VerdictOutcome } from '../domain/verdict.ts'
import type { LoginControl } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'

/** What the last login with a credential came to, on one broker over one protocol; times in epoch milliseconds. */
export interface LoginView {
  readonly brokerId: string
  readonly registrationId: string
  readonly consumerKey: string
  readonly protocol: Protocol
  readonly outcome: VerdictOutcome
  /** Why nothing was proved; null when something was. */
  readonly reason: NotVerifiedReason | null
  /** What the broker said; empty when it accepted the login. */
  readonly detail: string
  readonly checkedAtMs: number
  /** What a wrong password came to there; null while none was tried. */
  readonly control: Omit<LoginControl, 'protocol'> | null
}

export interface LoginsFilter {
  readonly accountId: string
  readonly brokerId?: string
  readonly registrationId?: string
  readonly protocol?: Protocol
  readonly outcome?: VerdictOutcome
}

interface Row extends Omit<LoginView, 'checkedAtMs' | 'control'> {
  readonly checkedAt: Date
  readonly control: NegativeControl | null
  readonly controlDetail: string | null
  readonly controlAt: Date | null
}

/** Of a row `b` of `brokers`: it exposes the protocol, and logins over it are on. */
export const provesOver = (protocol: RawBuilder<unknown>) => sql<boolean>`(
  b.messaging -> 'protocols' @> jsonb_build_array(jsonb_build_object('protocol', ${protocol}))
  and coalesce(b.messaging -> 'logins' -> 'off' <> '"all"', true)
  and not coalesce(b.messaging -> 'logins' -> 'off' ? ${protocol}, false))`

/** Verdicts that say something of today: of live credentials in their present version, where they are wanted. */
export const presentVerdicts = sql`login_verdicts v
  join brokers b on b.account_id = v.account_id and b.id = v.broker_id and ${provesOver(sql`v.protocol`)}
  join credentials c on c.account_id = v.account_id and c.registration_id = v.registration_id
    and c.consumer_key = v.consumer_key and c.secret_version = v.credential_version and c.retired_at is null
  join pairs p on p.account_id = v.account_id and p.registration_id = v.registration_id and p.broker_id = v.broker_id
    and p.wanted`

const matches = (filter: LoginsFilter) => sql`v.account_id = ${filter.accountId}
  and (${filter.brokerId ?? null}::text is null or v.broker_id = ${filter.brokerId ?? null})
  and (${filter.registrationId ?? null}::text is null or v.registration_id = ${filter.registrationId ?? null})
  and (${filter.protocol ?? null}::text is null or v.protocol = ${filter.protocol ?? null})
  and (${filter.outcome ?? null}::text is null or v.outcome = ${filter.outcome ?? null})`

/** In the order of broker, registration, consumer key and protocol. */
export async function viewLogins(
  db: Database,
  filter: LoginsFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly logins: readonly LoginView[]; readonly count: number }> {
  const { rows } = await sql<Row>`
    select v.broker_id as "brokerId", v.registration_id as "registrationId", v.consumer_key as "consumerKey", v.protocol,
      v.outcome, v.reason, v.detail, v.checked_at as "checkedAt", n.outcome as control, n.detail as "controlDetail",
      n.checked_at as "controlAt"
    from ${presentVerdicts}
    left join login_controls n on n.account_id = v.account_id and n.broker_id = v.broker_id and n.protocol = v.protocol
    where ${matches(filter)}
    order by v.broker_id, v.registration_id, v.consumer_key, v.protocol
    limit ${page.limit} offset ${page.offset}`.execute(db)
  const counted = await sql<{ count: number }>`
    select count(*) as count from ${presentVerdicts} where ${matches(filter)}`.execute(db)
  return { logins: rows.map(toView), count: counted.rows[0]?.count ?? 0 }
}

function toView({ checkedAt, control, controlDetail, controlAt, ...row }: Row): LoginView {
  return {
    ...row,
    checkedAtMs: checkedAt.getTime(),
    control:
      control === null || controlAt === null
        ? null
        : { outcome: control, detail: controlDetail ?? '', checkedAtMs: controlAt.getTime() },
  }
}

/** How the logins of a broker stand: one for each live credential and protocol. */
export interface LoginSums {
  readonly accepted: number
  readonly rejected: number
  readonly notVerified: number
  /** Protocols over which the broker accepted a wrong password, so that its accepted logins prove nothing. */
  readonly acceptsAnything: readonly Protocol[]
}

export const NO_LOGINS: LoginSums = { accepted: 0, rejected: 0, notVerified: 0, acceptsAnything: [] }

/** The logins over one protocol. */
export interface ProtocolLogins {
  readonly accepted: number
  readonly rejected: number
  readonly notVerified: number
  /** Whether the broker accepted a wrong password, so that its accepted logins prove nothing. */
  readonly acceptsAnything: boolean
}

/**
 * By broker id and protocol, of these brokers; of all when none are given. Without what has no logins. `offset 0` has the
 * live credentials hashed, and not looked up for each of a hundred thousand verdicts.
 */
export async function sumLoginsByProtocol(
  db: Database,
  accountId: string,
  brokers: readonly string[] | null,
): Promise<ReadonlyMap<string, ReadonlyMap<Protocol, ProtocolLogins>>> {
  const some = (column: RawBuilder<unknown>) => sql`(${brokers}::text[] is null or ${column} = any(${brokers}::text[]))`
  const { rows } = await sql<{ broker: string; protocol: Protocol; outcome: VerdictOutcome | null; count: number }>`
    with protocols as materialized (
      select b.id as broker_id, exposed.protocol from brokers b
      cross join lateral (
        select each ->> 'protocol' as protocol from jsonb_array_elements(b.messaging -> 'protocols') each) exposed
      where b.account_id = ${accountId} and ${some(sql`b.id`)} and ${provesOver(sql`exposed.protocol`)}
    )
    select sums.broker_id as broker, sums.protocol, outcome, count from (
      select v.broker_id, v.protocol, v.outcome, count(*) as count
      from login_verdicts v
      join (
        select p.broker_id, c.consumer_key, c.secret_version from pairs p
        join credentials c on c.account_id = p.account_id and c.registration_id = p.registration_id and c.retired_at is null
        where p.account_id = ${accountId} and p.wanted and ${some(sql`p.broker_id`)} offset 0
      ) live on live.broker_id = v.broker_id and live.consumer_key = v.consumer_key
        and live.secret_version = v.credential_version
      where v.account_id = ${accountId} and ${some(sql`v.broker_id`)}
      group by 1, 2, 3 offset 0
    ) sums
    join protocols on protocols.broker_id = sums.broker_id and protocols.protocol = sums.protocol
    union all
    select n.broker_id, n.protocol, null, 0 from login_controls n
    join protocols on protocols.broker_id = n.broker_id and protocols.protocol = n.protocol
    where n.account_id = ${accountId} and n.outcome = 'accepts-anything'
    order by 1, 2`.execute(db)
  const found = new Map<string, Map<Protocol, ProtocolLogins>>()
  for (const { broker, protocol, outcome, count } of rows) {
    const ofBroker = found.get(broker) ?? new Map<Protocol, ProtocolLogins>()
    found.set(broker, ofBroker)
    ofBroker.set(protocol, withOutcome(ofBroker.get(protocol) ?? NO_LOGINS_YET, outcome, count))
  }
  return found
}

const NO_LOGINS_YET: ProtocolLogins = { accepted: 0, rejected: 0, notVerified: 0, acceptsAnything: false }

/** Without an outcome it is that of the wrong password. */
function withOutcome(sums: ProtocolLogins, outcome: VerdictOutcome | null, count: number): ProtocolLogins {
  if (outcome === null) return { ...sums, acceptsAnything: true }
  const place = ({ accepted: 'accepted', rejected: 'rejected', 'not-verified': 'notVerified' } as const)[
    standingOf(outcome)
  ]
  return { ...sums, [place]: sums[place] + count }
}

/** By broker id; a broker without logins is not in it. */
export async function sumLogins(
  db: Database,
  accountId: string,
  brokers: readonly string[],
): Promise<ReadonlyMap<string, LoginSums>> {
  if (brokers.length === 0) return new Map()
  const found = await sumLoginsByProtocol(db, accountId, brokers)
  return new Map([...found].map(([broker, protocols]) => [broker, addUp(protocols)]))
}

function addUp(protocols: ReadonlyMap<Protocol, ProtocolLogins>): LoginSums {
  const sum = (what: 'accepted' | 'rejected' | 'notVerified'): number =>
    [...protocols.values()].reduce((total, each) => total + each[what], 0)
  const acceptsAnything = [...protocols].filter(([, each]) => each.acceptsAnything).map(([protocol]) => protocol)
  return { accepted: sum('accepted'), rejected: sum('rejected'), notVerified: sum('notVerified'), acceptsAnything }
}
