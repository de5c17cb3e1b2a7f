import { sql } from 'kysely'
import type { Database } from './database.ts'
import type { Touched } from './import-plan.ts'

/** Ids per statement: bounds how many rows one statement locks and holds in memory. */
const BATCH_SIZE = 5000

/**
 * Raises the generation of each registration and brings its pairs up to it: wanted on every broker that a counted
 * access request ties it to, unwanted on the others that it has a pair for. Belongs into the transaction of the change.
 */
export async function raiseGenerations(
  db: Database,
  accountId: string,
  registrationIds: readonly string[],
): Promise<void> {
  const ids = [...new Set(registrationIds)].sort()
  for (let start = 0; start < ids.length; start += BATCH_SIZE) {
    await raiseBatch(db, accountId, ids.slice(start, start + BATCH_SIZE))
  }
}

/** Rows in one order everywhere, so that two transactions wait for each other instead of locking each other out. */
async function raiseBatch(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  await sql`
    select id from registrations where account_id = ${accountId} and id = any(${ids}) order by id for update`.execute(
    db,
  )
  await sql`
    update registrations set generation = generation + 1, updated_at = now()
    where account_id = ${accountId} and id = any(${ids})`.execute(db)
  // Grouping instead of an anti-join: the planner knows nothing of rows that this transaction wrote.
  await sql`
    insert into pairs (account_id, registration_id, broker_id, wanted, generation, changed_at)
    select r.account_id, r.id, target.broker_id, target.wanted, r.generation, now()
    from (
      select registration_id, broker_id, bool_or(wanted) as wanted
      from (
        select a.registration_id, b.broker_id, true as wanted
        from access_requests a
        join registrations r on r.account_id = a.account_id and r.id = a.registration_id and r.deleted_at is null
        join product_versions v
          on v.account_id = a.account_id and v.product_id = a.product_id and v.version = a.product_version
        join product_version_brokers b
          on b.account_id = v.account_id and b.product_id = v.product_id and b.version = v.version
        where a.account_id = ${accountId} and a.registration_id = any(${ids})
          and ${counted} and v.state in ('RELEASED', 'DEPRECATED')
        union all
        select registration_id, broker_id, false from pairs
        where account_id = ${accountId} and registration_id = any(${ids})
      ) ties
      group by registration_id, broker_id
    ) target
    join registrations r on r.account_id = ${accountId} and r.id = target.registration_id
    order by target.registration_id, target.broker_id
    on conflict (account_id, registration_id, broker_id) do update
    set wanted = excluded.wanted, generation = excluded.generation, due_at = null, attempts = 0,
        failing_since = null, needs_person = false, changed_at = excluded.changed_at,
        withdrawal_confirmed = pairs.withdrawal_confirmed and pairs.wanted = excluded.wanted`.execute(db)
}

/** Of an access request `a`: it counts, its product version permitting. */
export const counted = sql`(a.state in ('APPROVED', 'LIVE') or (a.state = 'ERROR' and a.approved_at is not null))
  and a.expired_at is null and (a.expires_at is null or a.expires_at > now())`

/** Registrations that a change reaches, itself among them; asked after the change is written. */
export async function touchedRegistrations(
  db: Database,
  accountId: string,
  touched: Touched,
): Promise<readonly string[]> {
  const found = new Set(touched.registrations)
  const versions = [...touched.productVersions, ...(await versionsOfEventApis(db, accountId, touched.eventApis))]
  for (const id of await registrationsOfVersions(db, accountId, versions)) found.add(id)
  for (const id of await registrationsOfBrokers(db, accountId, touched.brokers)) found.add(id)
  return [...found]
}

type VersionKeys = Touched['productVersions']

async function versionsOfEventApis(db: Database, accountId: string, eventApis: VersionKeys): Promise<VersionKeys> {
  if (eventApis.length === 0) return []
  const { rows } = await sql<{ id: string; version: string }>`
    select distinct e.product_id as id, e.version
    from jsonb_to_recordset(${JSON.stringify(eventApis)}::jsonb) as w(id text, version text)
    join product_version_event_apis e
      on e.account_id = ${accountId} and e.event_api_id = w.id and e.event_api_version = w.version`.execute(db)
  return rows
}

async function registrationsOfVersions(
  db: Database,
  accountId: string,
  versions: VersionKeys,
): Promise<readonly string[]> {
  if (versions.length === 0) return []
  const { rows } = await sql<{ id: string }>`
    select distinct a.registration_id as id
    from jsonb_to_recordset(${JSON.stringify(versions)}::jsonb) as w(id text, version text)
    join access_requests a on a.account_id = ${accountId} and a.product_id = w.id and a.product_version = w.version
    join registrations r on r.account_id = a.account_id and r.id = a.registration_id and r.deleted_at is null
    where ${counted}`.execute(db)
  return rows.map(({ id }) => id)
}

/** Also those that are only being withdrawn from the broker. */
async function registrationsOfBrokers(
  db: Database,
  accountId: string,
  brokers: readonly string[],
): Promise<readonly string[]> {
  if (brokers.length === 0) return []
  const { rows } = await sql<{ id: string }>`
    select distinct registration_id as id from pairs
    where account_id = ${accountId} and broker_id = any(${brokers})`.execute(db)
  return rows.map(({ id }) => id)
}

interface Expired {
  readonly accountId: string
  readonly registrationId: string
}

/**
 * Marks credentials and access requests whose time is over, at most `batch` of each, and raises the generations of
 * their registrations. Answers how many were marked: call again while that is not 0.
 */
export async function retireExpired(db: Database, nowMs: number, batch: number): Promise<number> {
  const now = new Date(nowMs)
  return await db.transaction().execute(async (trx) => {
    const credentials = await sql<Expired>`
      update credentials c set retired_at = ${now}
      from (select account_id, id from credentials
            where expires_at <= ${now} and retired_at is null
            order by expires_at limit ${batch} for update skip locked) due
      where c.account_id = due.account_id and c.id = due.id
      returning c.account_id as "accountId", c.registration_id as "registrationId"`.execute(trx)
    const requests = await sql<Expired>`
      update access_requests a set expired_at = ${now}
      from (select account_id, registration_id, id from access_requests
            where expires_at <= ${now} and expired_at is null
            order by expires_at limit ${batch} for update skip locked) due
      where a.account_id = due.account_id and a.registration_id = due.registration_id and a.id = due.id
      returning a.account_id as "accountId", a.registration_id as "registrationId"`.execute(trx)
    const expired = [...credentials.rows, ...requests.rows]
    for (const accountId of [...new Set(expired.map((row) => row.accountId))].sort()) {
      const ids = expired.filter((row) => row.accountId === accountId).map((row) => row.registrationId)
      await raiseGenerations(trx, accountId, ids)
    }
    return expired.length
  })
}
