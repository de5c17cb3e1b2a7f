import { setImmediate as othersTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import type { BrokerPolicy, Channel, ClassOfServicePolicy, MessagingSettings } from '../domain/catalogue.ts'
import { accessRequestId, consumerKey, eventApiId, registrationId } from '../domain/ids.ts'
import type { CountedAccessRequest, Filters, LiveCredential } from '../domain/registration.ts'
import type { LedgerEntry } from '../reconcile/ledger.ts'
import type { OneAtATime } from '../reconcile/one-at-a-time.ts'
import type { RegistrationFacts } from '../reconcile/plan-registration.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

const CHUNK = 500
/**
 * A millisecond or two of comparing, after which everything else in this process has its turn: a run that somebody waits
 * for takes dozens of turns, one for each answer that it needs.
 */
const HANDED_OUT = 10

/** Lets those go first for whom somebody waits; never for long. */
export type StandBack = () => Promise<void>

export interface SettledSource {
  readonly db: Database
  /** Shared by the sweeps of this process. */
  readonly turns: OneAtATime
  readonly standBack: StandBack
}

const READING = 'reading'
const COMPARING = 'comparing'

/**
 * Registrations of a broker that reached their generation, in chunks in the order of their ids: four range reads a
 * chunk, with the next chunk under way while one is worked on. What many registrations share is read once. Of the
 * ledger it holds what a comparison in bulk needs: queues, withdrawn objects, passwords that are due or were refused.
 * However many sweeps begin at once, they take one of the database's processors, and together one turn of this process at
 * a time; the rest is for those who wait for something.
 */
export async function* settledRegistrations(
  { db, turns, standBack }: SettledSource,
  broker: BrokerKey,
  signal?: AbortSignal,
): AsyncIterable<readonly RegistrationFacts[]> {
  const shared = await turns.run(READING, () => readShared(db, broker))
  if (shared === null) return
  const read = (after: string): Promise<Chunk | null> => {
    const chunk = turns.run(READING, async () => {
      // Sweeps that are told to stop do not stand in line for a last chunk each.
      signal?.throwIfAborted()
      await standBack()
      return readChunk(db, shared, after)
    })
    // Awaited in the next round; a failure before that is nobody's yet.
    chunk.catch(() => undefined)
    return chunk
  }
  let next = read('')
  try {
    for (;;) {
      signal?.throwIfAborted()
      const chunk = await next
      if (chunk === null) return
      next = read(chunk.last)
      for (let from = 0; from < chunk.registrations.length; from += HANDED_OUT) {
        await turns.run(COMPARING, () => othersTurn())
        yield chunk.registrations.slice(from, from + HANDED_OUT)
      }
    }
  } finally {
    // A sweep that ends early leaves no statement running.
    await next.catch(() => undefined)
  }
}

interface Shared {
  readonly broker: BrokerKey
  readonly facts: Pick<RegistrationFacts, 'brokerId' | 'protocols' | 'policy'>
  /** Plans and Event APIs by product, version and plan; only of versions that count on this broker. */
  readonly plans: ReadonlyMap<string, Pick<CountedAccessRequest, 'classOfServicePolicy' | 'eventApis'>>
}

interface Chunk {
  readonly registrations: readonly RegistrationFacts[]
  readonly last: string
}

async function readShared(db: Database, broker: BrokerKey): Promise<Shared | null> {
  const [brokers, plans, eventApis] = await Promise.all([
    sql<{ messaging: MessagingSettings | null; policy: BrokerPolicy }>`
      select messaging, policy from brokers where account_id = ${broker.accountId} and id = ${broker.brokerId}`.execute(
      db,
    ),
    sql<PlanRow>`
      select p.product_id as product, p.version, p.id as plan, p.class_of_service_policy as "classOfServicePolicy"
      from product_version_brokers b
      join product_versions v on v.account_id = b.account_id and v.product_id = b.product_id and v.version = b.version
      join plans p on p.account_id = v.account_id and p.product_id = v.product_id and p.version = v.version
      where b.account_id = ${broker.accountId} and b.broker_id = ${broker.brokerId}
        and v.state in ('RELEASED', 'DEPRECATED')`.execute(db),
    sql<EventApiRow>`
      select e.product_id as product, e.version, a.id, a.channels
      from product_version_brokers b
      join product_version_event_apis e on e.account_id = b.account_id and e.product_id = b.product_id and e.version = b.version
      join event_apis a on a.account_id = e.account_id and a.id = e.event_api_id and a.version = e.event_api_version
      where b.account_id = ${broker.accountId} and b.broker_id = ${broker.brokerId}
      order by e.position`.execute(db),
  ])
  const [row] = brokers.rows
  if (row === undefined) return null
  const apis = new Map<string, CountedAccessRequest['eventApis'][number][]>()
  for (const { product, version, id, channels } of eventApis.rows) {
    const list = apis.get(keyOf(product, version)) ?? []
    list.push({ id: eventApiId(id), channels })
    apis.set(keyOf(product, version), list)
  }
  return {
    broker,
    facts: {
      brokerId: broker.brokerId,
      protocols: (row.messaging?.protocols ?? []).map(({ protocol }) => protocol),
      policy: row.policy,
    },
    plans: new Map(
      plans.rows.map(({ product, version, plan, classOfServicePolicy }) => [
        keyOf(product, version, plan),
        { classOfServicePolicy, eventApis: apis.get(keyOf(product, version)) ?? [] },
      ]),
    ),
  }
}

interface PlanRow {
  readonly product: string
  readonly version: string
  readonly plan: string
  readonly classOfServicePolicy: ClassOfServicePolicy
}

interface EventApiRow {
  readonly product: string
  readonly version: string
  readonly id: string
  readonly channels: readonly Channel[]
}

const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts)

async function readChunk(db: Database, shared: Shared, after: string): Promise<Chunk | null> {
  const { accountId, brokerId } = shared.broker
  // A withdrawn registration counts while it has objects: what was switched off must stay so.
  const { rows: pairs } = await sql<{ id: string; generation: number; filters: Filters; deleted: boolean }>`
    select p.registration_id as id, p.generation, r.filters, r.deleted_at is not null as deleted
    from pairs p join registrations r on r.account_id = p.account_id and r.id = p.registration_id
    where p.account_id = ${accountId} and p.broker_id = ${brokerId} and p.registration_id > ${after}
      and p.reached_generation = p.generation and p.state = 'in-sync'
      and (p.wanted or exists (select from ledger l where l.account_id = p.account_id and l.broker_id = p.broker_id
        and l.registration_id = p.registration_id))
    order by p.registration_id limit ${CHUNK}`.execute(db)
  const last = pairs.at(-1)?.id
  if (last === undefined) return null
  const range = { accountId, brokerId, after, last }
  const requests = await readRequests(db, shared, range)
  const credentials = await readCredentials(db, range)
  const ledger = await readLedger(db, range)
  return {
    last,
    registrations: pairs.map(({ id, generation, filters, deleted }) => ({
      ...shared.facts,
      registration: {
        accountId,
        registrationId: registrationId(id),
        generation,
        filters,
        accessRequests: deleted ? [] : (requests.get(id) ?? []),
        credentials: deleted ? [] : (credentials.get(id) ?? []),
      },
      ledger: ledger.get(id) ?? [],
      adoptions: NO_ADOPTIONS,
      withdrawalConfirmed: false,
      registrationsOnBroker: 0,
      withdrawnOnBroker: 0,
    })),
  }
}

const NO_ADOPTIONS: ReadonlySet<string> = new Set()

interface Range {
  readonly accountId: string
  readonly brokerId: string
  readonly after: string
  readonly last: string
}

const inRange = ({ accountId, after, last }: Range) =>
  sql`account_id = ${accountId} and registration_id > ${after} and registration_id <= ${last}`

async function readRequests(db: Database, { plans }: Shared, range: Range) {
  const { rows } = await sql<{
    registration: string
    id: string
    product: string
    version: string
    plan: string
    filters: Filters
    queueNonce: string
  }>`
    select registration_id as registration, id, product_id as product, product_version as version, plan_id as plan, filters,
      queue_nonce as "queueNonce"
    from access_requests
    where ${inRange(range)} and expired_at is null
      and (state in ('APPROVED', 'LIVE') or (state = 'ERROR' and approved_at is not null))`.execute(db)
  const requests = new Map<string, CountedAccessRequest[]>()
  for (const { registration, id, product, version, plan, filters, queueNonce } of rows) {
    const promised = plans.get(keyOf(product, version, plan))
    if (promised !== undefined)
      add(requests, registration, { id: accessRequestId(id), filters, queueNonce, ...promised })
  }
  return requests
}

async function readCredentials(db: Database, range: Range) {
  const { rows } = await sql<{ registration: string; consumerKey: string; version: number; issuedAt: Date }>`
    select registration_id as registration, consumer_key as "consumerKey", secret_version as version, issued_at as "issuedAt"
    from credentials
    where ${inRange(range)} and retired_at is null and (expires_at is null or expires_at > now())`.execute(db)
  const credentials = new Map<string, LiveCredential[]>()
  for (const { registration, consumerKey: key, version, issuedAt } of rows) {
    add(credentials, registration, { consumerKey: consumerKey(key), version, issuedAtMs: issuedAt.getTime() })
  }
  return credentials
}

async function readLedger(db: Database, range: Range) {
  const { rows } = await sql<{
    registration: string
    kind: LedgerEntry['object']['kind']
    name: string
    origin: LedgerEntry['origin']
    applied: LedgerEntry['applied']
    version: number | null
    passwordDue: boolean
    refusedVersion: number | null
    reapplied: boolean
    withdrawnAt: Date | null
  }>`
    select registration_id as registration, kind, name, origin, applied, confirmed_credential_version as version,
      password_due as "passwordDue", refused_version as "refusedVersion", reapplied, withdrawn_at as "withdrawnAt"
    from ledger
    where ${inRange(range)} and broker_id = ${range.brokerId}
      and (kind = 'queue' or withdrawn_at is not null or password_due or refused_version is not null)`.execute(db)
  const entries = new Map<string, LedgerEntry[]>()
  for (const row of rows) {
    const { registration, kind, name, origin, applied, version, passwordDue, refusedVersion, reapplied, withdrawnAt } =
      row
    add(entries, registration, {
      object: { kind, name },
      registrationId: registrationId(registration),
      origin,
      applied,
      confirmedCredentialVersion: version,
      passwordDue,
      ...(refusedVersion !== null && { refusedLogin: { credentialVersion: refusedVersion, reapplied } }),
      withdrawnAtMs: withdrawnAt?.getTime() ?? null,
    })
  }
  return entries
}

function add<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}
