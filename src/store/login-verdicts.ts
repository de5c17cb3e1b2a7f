import { type Kysely, sql, type Transaction } from 'kysely'
import type { Protocol } from '../domain/catalogue.ts'
import { consumerKey } from '../domain/ids.ts'
import { type NotVerifiedReason, provesLogin, type Verdict, type VerdictOutcome } from '../domain/verdict.ts'
import type { LoginRecord, Pair } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

export interface LoginOfPair {
  readonly pair: Pair
  readonly login: LoginRecord
}

/**
 * Keeps the last verdict of each credential, broker and protocol, and what it means for the password: a login that the
 * broker took clears an earlier refusal, one that it refused makes the password due once. What was said of a credential
 * that was retired or changed meanwhile is dropped.
 */
export async function recordLogins(db: Kysely<Schema> | Transaction<Schema>, logins: readonly LoginOfPair[]) {
  if (logins.length === 0) return
  const rows = logins.map(({ pair, login }) => ({
    ...pair,
    consumerKey: login.consumerKey,
    protocol: login.protocol,
    version: login.credentialVersion,
    ...verdictColumns(login.verdict),
    at: new Date(login.checkedAtMs).toISOString(),
  }))
  await sql`
    insert into login_verdicts (account_id, broker_id, registration_id, consumer_key, protocol, credential_version, outcome,
                                reason, detail, checked_at)
    select w."accountId", w."brokerId", w."registrationId", w."consumerKey", w.protocol, w.version, w.outcome, w.reason,
      w.detail, w.at
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, "consumerKey" text, protocol text, version integer,
           outcome text, reason text, detail text, at timestamptz)
    join brokers b on b.account_id = w."accountId" and b.id = w."brokerId"
    join credentials c on c.account_id = w."accountId" and c.registration_id = w."registrationId"
      and c.consumer_key = w."consumerKey" and c.secret_version = w.version and c.retired_at is null
    order by 1, 2, 4, 5
    on conflict (account_id, broker_id, consumer_key, protocol) do update
    set registration_id = excluded.registration_id, credential_version = excluded.credential_version,
      outcome = excluded.outcome, reason = excluded.reason, detail = excluded.detail, checked_at = excluded.checked_at
    where login_verdicts.checked_at <= excluded.checked_at`.execute(db)
  await markRefusals(db, logins)
}

function verdictColumns(verdict: Verdict) {
  return {
    outcome: verdict.outcome,
    reason: verdict.outcome === 'not-verified' ? verdict.reason : null,
    detail: verdict.outcome === 'accepted' ? '' : verdict.detail,
  }
}

/** A password that the broker took over one protocol is right, whatever another protocol says. */
async function markRefusals(db: Kysely<Schema> | Transaction<Schema>, logins: readonly LoginOfPair[]): Promise<void> {
  const byCredential = new Map<string, { readonly pair: Pair; readonly login: LoginRecord; refused: boolean }>()
  for (const { pair, login } of logins) {
    const isProved = provesLogin(login.verdict)
    if (!isProved && login.verdict.outcome !== 'rejected') continue
    const key = JSON.stringify([pair.accountId, pair.brokerId, login.consumerKey])
    const known = byCredential.get(key)
    if (known === undefined) byCredential.set(key, { pair, login, refused: !isProved })
    else if (isProved) known.refused = false
  }
  const rows = [...byCredential.values()].map(({ pair, login, refused }) => ({
    ...pair,
    name: login.consumerKey,
    version: login.credentialVersion,
    refused,
  }))
  if (rows.length === 0) return
  await sql`
    update ledger l set
      refused_version = case when w.refused then w.version end,
      reapplied = w.refused and l.reapplied and (l.refused_version is null or l.refused_version = w.version)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, name text, version integer, refused boolean)
    where l.account_id = w."accountId" and l.broker_id = w."brokerId" and l.kind = 'clientUsername' and l.name = w.name
      and l.confirmed_credential_version = w.version
      and (w.refused or l.refused_version is not null)`.execute(db)
}

/** Pairs whose refused password was not yet written again for that: the next poll finds them, whoever found it out. */
export async function makeRefusedDue(db: Database, logins: readonly LoginOfPair[]): Promise<void> {
  const refused = logins.filter(({ login }) => login.verdict.outcome === 'rejected')
  if (refused.length === 0) return
  const rows = refused.map(({ pair, login }) => ({
    ...pair,
    name: login.consumerKey,
    version: login.credentialVersion,
  }))
  await sql`
    with due as (
      select p.account_id, p.registration_id, p.broker_id
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as w("accountId" text, "brokerId" text, "registrationId" text, name text, version integer)
      join ledger l on l.account_id = w."accountId" and l.broker_id = w."brokerId" and l.kind = 'clientUsername'
        and l.name = w.name and l.refused_version = w.version and not l.reapplied
      join pairs p on p.account_id = w."accountId" and p.registration_id = w."registrationId"
        and p.broker_id = w."brokerId"
      order by p.account_id, p.registration_id, p.broker_id for update of p
    )
    update pairs p set due_at = least(p.due_at, now()) from due
    where p.account_id = due.account_id and p.registration_id = due.registration_id
      and p.broker_id = due.broker_id`.execute(db)
}

interface LoginRow {
  readonly accountId: string
  readonly brokerId: string
  readonly registrationId: string
  readonly consumerKey: string
  readonly protocol: Protocol
  readonly version: number
  readonly outcome: VerdictOutcome
  readonly reason: NotVerifiedReason | null
  readonly detail: string
  readonly checkedAt: Date
}

/** The last verdicts of the live credentials of each pair, in the order of the pairs. */
export async function readLogins(db: Database, pairs: readonly Pair[]): Promise<readonly (readonly LoginRecord[])[]> {
  const { rows } = await sql<LoginRow>`
    select w.*, v.consumer_key as "consumerKey", v.protocol, v.credential_version as version, v.outcome, v.reason, v.detail,
      v.checked_at as "checkedAt"
    from (select distinct * from jsonb_to_recordset(${JSON.stringify(pairs)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text)) w
    join login_verdicts v on v.account_id = w."accountId" and v.broker_id = w."brokerId"
      and v.registration_id = w."registrationId"
    join credentials c on c.account_id = v.account_id and c.registration_id = v.registration_id
      and c.consumer_key = v.consumer_key and c.retired_at is null
    order by v.consumer_key, v.protocol`.execute(db)
  const keyOf = (pair: Pick<LoginRow, 'accountId' | 'brokerId' | 'registrationId'>): string =>
    JSON.stringify([pair.accountId, pair.brokerId, pair.registrationId])
  const byPair = new Map<string, LoginRecord[]>()
  for (const row of rows) {
    const list = byPair.get(keyOf(row)) ?? []
    list.push(toLogin(row))
    byPair.set(keyOf(row), list)
  }
  return pairs.map((pair) => byPair.get(keyOf(pair)) ?? [])
}

const toLogin = (row: LoginRow): LoginRecord => ({
  consumerKey: consumerKey(row.consumerKey),
  protocol: row.protocol,
  credentialVersion: row.version,
  verdict: toVerdict(row),
  checkedAtMs: row.checkedAt.getTime(),
})

export function toVerdict({ outcome, reason, detail }: Pick<LoginRow, 'outcome' | 'reason' | 'detail'>): Verdict {
  switch (outcome) {
    case 'accepted':
      return { outcome }
    case 'not-verified':
      return { outcome, reason: reason ?? 'unknown', detail }
    case 'denied':
    case 'rejected':
    case 'disabled':
    case 'vpn-unknown':
    case 'vpn-down':
    case 'busy':
      return { outcome, detail }
    default: {
      const unreachable: never = outcome
      return unreachable
    }
  }
}
