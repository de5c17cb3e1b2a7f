import { sql } from 'kysely'
import type { ObjectRef } from '../domain/broker-object.ts'
import { stillInUseError } from '../reconcile/apply.ts'
import type { RegistrationFacts } from '../reconcile/plan-registration.ts'
import type { Intent, Lease, LoginRecord, Pair, ReconcileStore, StoredSecret } from '../reconcile/store-port.ts'
import { batched } from './batched.ts'
import type { Database } from './database.ts'
import { distrustWrites } from './distrust-writes.ts'
import { type FinishRequest, finishRuns, type OnDrift } from './finish-runs.ts'
import { acquireLeases, checkLeases, type LeaseCheck, type LeaseRequest } from './leases.ts'
import { readLogins } from './login-verdicts.ts'
import { loadRegistrationFacts } from './registration-facts.ts'
import { credentialPlace, type Sealer } from './sealer-port.ts'
import { watchGrowth } from './statistics.ts'

export interface ReconcileStoreOptions {
  /**
   * Takes leases and outcomes, and need not wait for the disk: a crash of the database that forgets one costs another
   * look at the broker. Intents always wait: without them our own object would be foreign.
   */
  readonly relaxed?: Database
  /** How long a good answer serves for further writes of the same run; 0 asks each time. */
  readonly leaseCheckFreshMs?: number
  /** Told of differences that were found or repaired, after they are on record. */
  readonly onDrift?: OnDrift
}

/** The store as the reconcile shell sees it. Concurrent calls of one kind go out as one statement. */
export function createReconcileStore(
  db: Database,
  sealer: Sealer,
  { relaxed = db, leaseCheckFreshMs = 0, onDrift }: ReconcileStoreOptions = {},
): ReconcileStore {
  const acquire = batched<LeaseRequest, Lease | null>((requests) => acquireLeases(relaxed, requests))
  const facts = batched<Pair, RegistrationFacts | null>((pairs) => loadRegistrationFacts(db, pairs))
  const check = batched<LeaseCheck, boolean>((checks) => checkLeases(db, checks))
  const intend = batched<IntentRequest, readonly FormerOwner[]>((requests) => recordIntents(db, requests))
  const secret = batched<SecretRequest, SealedSecret | null>((requests) => readSealedSecrets(db, requests))
  const logins = batched<Pair, readonly LoginRecord[]>((pairs) => readLogins(db, pairs))
  const grow = watchGrowth(relaxed)
  const finish = batched<FinishRequest, boolean>(async (requests) => {
    const finished = await finishRuns(relaxed, requests, onDrift)
    grow(requests.reduce((rows, { run }) => rows + run.confirmations.length, 0))
    return finished
  })
  const answers = new WeakMap<Lease, Answer>()
  const mayWrite: ReconcileStore['mayWrite'] = (lease, generation, ttlMs) => {
    const atMs = performance.now()
    const known = answers.get(lease)
    if (known !== undefined && known.generation === generation && atMs - known.atMs < leaseCheckFreshMs)
      return known.good
    const good = check({ lease, generation, ttlMs })
    answers.set(lease, { generation, atMs, good })
    return good
  }
  return {
    acquire: (pair, holder, ttlMs) => acquire({ pair, holder, ttlMs }),
    facts,
    mayWrite,
    intend: async (lease, intents) => {
      if (intents.length === 0) return []
      const owners = await intend({ lease, intents })
      const busy = owners.find(({ isBusy }) => isBusy)
      if (busy !== undefined) throw stillInUseError(busy.object, busy.registrationId)
      return owners.map(({ object }) => object)
    },
    secret: async (pair, key) => {
      const { accountId, registrationId } = pair
      return open(sealer, pair, await secret({ accountId, registrationId, consumerKey: key }))
    },
    logins,
    finish: (lease, run) => finish({ lease, run }),
    distrust: (pair, objects) => distrustWrites(db, pair, objects),
  }
}

interface Answer {
  readonly generation: number
  readonly atMs: number
  readonly good: Promise<boolean>
}

interface IntentRequest {
  readonly lease: Lease
  readonly intents: readonly Intent[]
}

/** Another registration whose row an intent takes over: its credential moved. */
interface FormerOwner {
  readonly object: ObjectRef
  readonly registrationId: string
  /** A run of it is under way, so the row stays. */
  readonly isBusy: boolean
}

async function recordIntents(
  db: Database,
  requests: readonly IntentRequest[],
): Promise<readonly (readonly FormerOwner[])[]> {
  const intended = requests.flatMap(({ lease, intents }, index) =>
    intents.map(({ object, shared, origin }) => ({
      ...lease.pair,
      token: lease.token,
      shared,
      kind: object.kind,
      name: object.name,
      origin,
      index,
    })),
  )
  // A shared profile may be intended by two registrations at once: the row stays. A row of another registration is of a
  // credential that moved: its object was seen absent just now, so it is ours to create, unless a run of the other may
  // still write to it. The lock on the other's pair lets no such run begin meanwhile.
  const { rows } = await sql<{
    index: number
    kind: ObjectRef['kind']
    name: string
    registrationId: string
    isBusy: boolean
  }>`
    with w as (
      select distinct on (w."accountId", w."brokerId", w.kind, w.name) w."accountId", w."brokerId", w.kind, w.name, w.origin,
        w.index, case when not w.shared then w."registrationId" end as owner
      from jsonb_to_recordset(${JSON.stringify(intended)}::jsonb)
        as w("accountId" text, "brokerId" text, "registrationId" text, token bigint, shared boolean, kind text, name text,
             origin text, index integer)
      join pairs p on p.account_id = w."accountId" and p.broker_id = w."brokerId"
        and p.registration_id = w."registrationId" and p.lease_token = w.token and p.lease_until > now()
    ), owners as (
      select w."accountId", w."brokerId", w.kind, w.name, w.index, p.registration_id, p.lease_until
      from w
      join ledger l on l.account_id = w."accountId" and l.broker_id = w."brokerId" and l.kind = w.kind and l.name = w.name
      join pairs p on p.account_id = l.account_id and p.broker_id = l.broker_id and p.registration_id = l.registration_id
      where l.registration_id <> w.owner
      order by p.account_id, p.registration_id, p.broker_id
      for share of p
    ), former as (
      select o.*, coalesce(o.lease_until > clock_timestamp(), false) as busy from owners o
    ), written as (
      insert into ledger (account_id, broker_id, kind, name, registration_id, origin)
      select w."accountId", w."brokerId", w.kind, w.name, w.owner, w.origin from w
      where not exists (
        select from former f where f.busy and f."accountId" = w."accountId" and f."brokerId" = w."brokerId"
          and f.kind = w.kind and f.name = w.name)
      on conflict (account_id, broker_id, kind, name) do update
      set registration_id = excluded.registration_id, origin = excluded.origin, applied = null,
          confirmed_credential_version = null, password_due = false, refused_version = null, reapplied = false,
          withdrawn_at = null, updated_at = now()
      where ledger.registration_id is distinct from excluded.registration_id
    )
    select index, kind, name, registration_id as "registrationId", busy as "isBusy" from former`.execute(db)
  const owners = requests.map((): FormerOwner[] => [])
  for (const { index, kind, name, registrationId, isBusy } of rows) {
    owners[index]?.push({ object: { kind, name }, registrationId, isBusy })
  }
  return owners
}

interface SecretRequest {
  readonly accountId: string
  readonly registrationId: string
  readonly consumerKey: string
}

interface SealedSecret extends SecretRequest {
  readonly id: string
  readonly secret: string
  readonly version: number
}

async function readSealedSecrets(
  db: Database,
  requests: readonly SecretRequest[],
): Promise<readonly (SealedSecret | null)[]> {
  const { rows } = await sql<SealedSecret>`
    select c.account_id as "accountId", c.registration_id as "registrationId", c.consumer_key as "consumerKey", c.id, c.secret, c.secret_version as version
    from jsonb_to_recordset(${JSON.stringify(requests)}::jsonb) as w("accountId" text, "registrationId" text, "consumerKey" text)
    join credentials c on c.account_id = w."accountId" and c.registration_id = w."registrationId"
      and c.consumer_key = w."consumerKey"
    where c.retired_at is null`.execute(db)
  const key = (row: SecretRequest) => JSON.stringify([row.accountId, row.registrationId, row.consumerKey])
  const found = new Map(rows.map((row) => [key(row), row]))
  return requests.map((request) => found.get(key(request)) ?? null)
}

async function open(sealer: Sealer, pair: Pair, row: SealedSecret | null): Promise<StoredSecret | null> {
  if (row === null) return null
  const secret = await sealer.open(row.secret, credentialPlace(pair.accountId, row.id, row.version))
  return { version: row.version, secret }
}
