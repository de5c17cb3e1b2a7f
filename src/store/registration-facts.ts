import { sql } from 'kysely'
import { objectKey } from '../domain/broker-object.ts'
import type { BrokerPolicy, Channel, ClassOfServicePolicy, MessagingSettings } from '../domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, registrationId } from '../domain/ids.ts'
import type { CountedAccessRequest, Filters, LiveCredential } from '../domain/registration.ts'
import type { LedgerEntry } from '../reconcile/ledger.ts'
import type { RegistrationFacts } from '../reconcile/plan-registration.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { Database } from './database.ts'

/**
 * All that `planRegistration` needs of the store, for many pairs with a fixed number of statements. The generation is
 * read first: what changes after it makes the generation check before each write fail.
 */
export async function loadRegistrationFacts(
  db: Database,
  pairs: readonly Pair[],
): Promise<readonly (RegistrationFacts | null)[]> {
  // A pair that is asked for twice at once would have everything twice.
  const keys = JSON.stringify([...new Map(pairs.map((pair) => [pairKey(pair), pair])).values()])
  const found = await readPairs(db, keys)
  const [requests, credentials, ledger, brokers, shared, adoptions] = await Promise.all([
    readAccessRequests(db, keys),
    readCredentials(db, keys),
    readLedger(db, keys),
    readBrokers(db, keys),
    readSharedLedger(db, keys),
    readAdoptions(db, keys),
  ])
  const channels = await readChannels(db, requests)
  const byPair = new Map(found.map((row) => [pairKey(row), row]))
  const brokersByKey = new Map(brokers.map((row) => [brokerKey(row), row]))
  const requestsByPair = grouped(requests, pairKey)
  const ledgerByPair = grouped(ledger, pairKey)
  const credentialsByRegistration = grouped(credentials, registrationKey)
  const sharedByBroker = grouped(shared, brokerKey)
  const adoptionsByBroker = grouped(adoptions, brokerKey)

  return pairs.map((pair) => {
    const row = byPair.get(pairKey(pair))
    const broker = brokersByKey.get(brokerKey(pair))
    if (row === undefined || broker === undefined) return null
    return {
      brokerId: brokerId(pair.brokerId),
      registration: {
        accountId: pair.accountId,
        registrationId: registrationId(pair.registrationId),
        generation: row.generation,
        filters: row.filters,
        accessRequests: (requestsByPair.get(pairKey(pair)) ?? []).map((each) => toAccessRequest(each, channels)),
        credentials: (credentialsByRegistration.get(registrationKey(pair)) ?? []).map(toCredential),
      },
      protocols: (broker.messaging?.protocols ?? []).map(({ protocol }) => protocol),
      policy: broker.policy,
      ledger: [...(ledgerByPair.get(pairKey(pair)) ?? []), ...(sharedByBroker.get(brokerKey(pair)) ?? [])].map(
        toLedgerEntry,
      ),
      adoptions: new Set((adoptionsByBroker.get(brokerKey(pair)) ?? []).map(objectKey)),
      withdrawalConfirmed: row.withdrawalConfirmed,
      disruptiveAllowed: row.disruptiveAllowed,
      registrationsOnBroker: broker.registrations,
      withdrawnOnBroker: broker.withdrawn,
    }
  })
}

interface PairColumns {
  readonly accountId: string
  readonly brokerId: string
  readonly registrationId: string
}

const pairKey = (row: PairColumns): string => JSON.stringify([row.accountId, row.brokerId, row.registrationId])
const brokerKey = (row: { accountId: string; brokerId: string }): string =>
  JSON.stringify([row.accountId, row.brokerId])
const registrationKey = (row: { accountId: string; registrationId: string }): string =>
  JSON.stringify([row.accountId, row.registrationId])

function grouped<Row>(rows: readonly Row[], key: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const list = groups.get(key(row))
    if (list === undefined) groups.set(key(row), [row])
    else list.push(row)
  }
  return groups
}

const wanted = (keys: string) => sql`jsonb_to_recordset(${keys}::jsonb)
  as w("accountId" text, "brokerId" text, "registrationId" text)`

interface PairRow extends PairColumns {
  readonly generation: number
  readonly filters: Filters
  readonly withdrawalConfirmed: boolean
  readonly disruptiveAllowed: boolean
}

async function readPairs(db: Database, keys: string): Promise<readonly PairRow[]> {
  const { rows } = await sql<PairRow>`
    select w.*, p.generation, r.filters, p.withdrawal_confirmed as "withdrawalConfirmed",
      coalesce(p.disruptive_allowed_until > now(), false) as "disruptiveAllowed"
    from ${wanted(keys)}
    join pairs p on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
    join registrations r on r.account_id = p.account_id and r.id = p.registration_id`.execute(db)
  return rows
}

interface AccessRequestRow extends PairColumns {
  readonly id: string
  readonly productId: string
  readonly productVersion: string
  readonly filters: Filters
  readonly queueNonce: string
  readonly classOfServicePolicy: ClassOfServicePolicy
}

/** Those that count on the broker: DESIGN section 5, first paragraph. */
async function readAccessRequests(db: Database, keys: string): Promise<readonly AccessRequestRow[]> {
  // Materialised, so that the lookup goes by registration whatever the planner knows of a table that just grew.
  const { rows } = await sql<AccessRequestRow>`
    with a as materialized (
      select w.*, a.account_id, a.id, a.product_id, a.product_version, a.plan_id, a.filters, a.queue_nonce
      from ${wanted(keys)}
      join registrations r on r.account_id = w."accountId" and r.id = w."registrationId" and r.deleted_at is null
      join access_requests a on a.account_id = r.account_id and a.registration_id = r.id
      where (a.state in ('APPROVED', 'LIVE') or (a.state = 'ERROR' and a.approved_at is not null))
        and a.expired_at is null
    )
    select a."accountId", a."brokerId", a."registrationId", a.id, a.product_id as "productId", a.product_version as "productVersion", a.filters,
      a.queue_nonce as "queueNonce", plans.class_of_service_policy as "classOfServicePolicy"
    from a
    join product_versions v on v.account_id = a.account_id and v.product_id = a.product_id and v.version = a.product_version
    join product_version_brokers b on b.account_id = v.account_id and b.product_id = v.product_id
      and b.version = v.version and b.broker_id = a."brokerId"
    join plans on plans.account_id = a.account_id and plans.product_id = a.product_id
      and plans.version = a.product_version and plans.id = a.plan_id
    where v.state in ('RELEASED', 'DEPRECATED')`.execute(db)
  return rows
}

interface CredentialRow {
  readonly accountId: string
  readonly registrationId: string
  readonly consumerKey: string
  readonly version: number
  readonly issuedAt: Date
}

/** One whose time is over is put on no broker in the moment before it is retired. */
async function readCredentials(db: Database, keys: string): Promise<readonly CredentialRow[]> {
  const { rows } = await sql<CredentialRow>`
    select c.account_id as "accountId", c.registration_id as "registrationId", c.consumer_key as "consumerKey",
      c.secret_version as version, c.issued_at as "issuedAt"
    from (select distinct "accountId", "registrationId" from ${wanted(keys)}) w
    join registrations r on r.account_id = w."accountId" and r.id = w."registrationId" and r.deleted_at is null
    join credentials c on c.account_id = w."accountId" and c.registration_id = w."registrationId"
    where c.retired_at is null and (c.expires_at is null or c.expires_at > now())`.execute(db)
  return rows
}

export interface LedgerRow extends PairColumns {
  readonly kind: LedgerEntry['object']['kind']
  readonly name: string
  readonly shared: boolean
  readonly origin: LedgerEntry['origin']
  readonly applied: LedgerEntry['applied']
  readonly confirmedCredentialVersion: number | null
  readonly passwordDue: boolean
  readonly refusedVersion: number | null
  readonly reapplied: boolean
  readonly withdrawnAt: Date | null
}

const ledgerColumns = sql`l.kind, l.name, l.origin, l.applied,
  l.confirmed_credential_version as "confirmedCredentialVersion", l.password_due as "passwordDue",
  l.refused_version as "refusedVersion", l.reapplied,
  l.withdrawn_at as "withdrawnAt"`

async function readLedger(db: Database, keys: string): Promise<readonly LedgerRow[]> {
  const { rows } = await sql<LedgerRow>`
    select w.*, ${ledgerColumns}, false as shared from ${wanted(keys)}
    join ledger l on l.account_id = w."accountId" and l.broker_id = w."brokerId"
      and l.registration_id = w."registrationId"`.execute(db)
  return rows
}

async function readSharedLedger(db: Database, keys: string): Promise<readonly LedgerRow[]> {
  const { rows } = await sql<LedgerRow>`
    select w."accountId", w."brokerId", '' as "registrationId", ${ledgerColumns}, true as shared
    from (select distinct "accountId", "brokerId" from ${wanted(keys)}) w
    join ledger l on l.account_id = w."accountId" and l.broker_id = w."brokerId"
      and l.registration_id is null`.execute(db)
  return rows
}

async function readAdoptions(db: Database, keys: string) {
  const { rows } = await sql<{ accountId: string; brokerId: string; kind: LedgerRow['kind']; name: string }>`
    select w.*, a.kind, a.name from (select distinct "accountId", "brokerId" from ${wanted(keys)}) w
    join adoptions a on a.account_id = w."accountId" and a.broker_id = w."brokerId"`.execute(db)
  return rows
}

interface BrokerRow {
  readonly accountId: string
  readonly brokerId: string
  readonly messaging: MessagingSettings | null
  readonly policy: BrokerPolicy
  readonly registrations: number
  readonly withdrawn: number
}

/**
 * The counts are for the guard against mass withdrawal: what is pending or was withdrawn within the hour. They are read
 * only where a registration is being withdrawn.
 */
async function readBrokers(db: Database, keys: string): Promise<readonly BrokerRow[]> {
  const { rows } = await sql<BrokerRow>`
    with w as (
      select "accountId", "brokerId", bool_or(not p.wanted) as withdrawing from ${wanted(keys)}
      join pairs p on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
      group by 1, 2
    )
    select w."accountId", w."brokerId", b.messaging, b.policy, coalesce(c.registrations, 0) as registrations,
      coalesce(c.withdrawn, 0) as withdrawn
    from w
    join brokers b on b.account_id = w."accountId" and b.id = w."brokerId"
    left join lateral (
      select count(*) as registrations,
        count(*) filter (where not p.wanted and not p.withdrawal_confirmed
          and (p.reached_generation < p.generation or p.changed_at > now() - interval '1 hour')) as withdrawn
      from pairs p
      where w.withdrawing and p.account_id = w."accountId" and p.broker_id = w."brokerId"
        and exists (select 1 from ledger l where l.account_id = p.account_id and l.broker_id = p.broker_id
          and l.registration_id = p.registration_id)
    ) c on true`.execute(db)
  return rows
}

type ChannelsByVersion = ReadonlyMap<string, CountedAccessRequest['eventApis']>

const versionKey = (row: { accountId: string; productId: string; productVersion: string }): string =>
  JSON.stringify([row.accountId, row.productId, row.productVersion])

async function readChannels(db: Database, requests: readonly AccessRequestRow[]): Promise<ChannelsByVersion> {
  const versions = new Map(
    requests.map((row) => [
      versionKey(row),
      { accountId: row.accountId, productId: row.productId, productVersion: row.productVersion },
    ]),
  )
  if (versions.size === 0) return new Map()
  const { rows } = await sql<{
    accountId: string
    productId: string
    productVersion: string
    id: string
    channels: readonly Channel[]
  }>`
    select w.*, e.id, e.channels
    from jsonb_to_recordset(${JSON.stringify([...versions.values()])}::jsonb)
      as w("accountId" text, "productId" text, "productVersion" text)
    join product_version_event_apis v on v.account_id = w."accountId" and v.product_id = w."productId"
      and v.version = w."productVersion"
    join event_apis e on e.account_id = v.account_id and e.id = v.event_api_id and e.version = v.event_api_version
    order by v.position`.execute(db)
  const byVersion = grouped(rows, versionKey)
  return new Map(
    [...byVersion].map(([key, list]) => [key, list.map(({ id, channels }) => ({ id: eventApiId(id), channels }))]),
  )
}

const toAccessRequest = (row: AccessRequestRow, channels: ChannelsByVersion): CountedAccessRequest => ({
  id: accessRequestId(row.id),
  filters: row.filters,
  queueNonce: row.queueNonce,
  classOfServicePolicy: row.classOfServicePolicy,
  eventApis: channels.get(versionKey(row)) ?? [],
})

const toCredential = (row: CredentialRow): LiveCredential => ({
  consumerKey: consumerKey(row.consumerKey),
  version: row.version,
  issuedAtMs: row.issuedAt.getTime(),
})

const toLedgerEntry = (row: LedgerRow): LedgerEntry => ({
  object: { kind: row.kind, name: row.name },
  registrationId: row.shared ? null : registrationId(row.registrationId),
  origin: row.origin,
  applied: row.applied,
  confirmedCredentialVersion: row.confirmedCredentialVersion,
  passwordDue: row.passwordDue,
  ...(row.refusedVersion !== null && {
    refusedLogin: { credentialVersion: row.refusedVersion, reapplied: row.reapplied },
  }),
  withdrawnAtMs: row.withdrawnAt?.getTime() ?? null,
})
