import { type Kysely, sql } from 'kysely'
import { runId } from '../../src/domain/ids.ts'
import { Secret } from '../../src/domain/secret.ts'
import {
  type ReconcileDependencies,
  type ReconcileOutcome,
  reconcileRegistration,
} from '../../src/reconcile/reconcile.ts'
import type { Pair, ReconcileStore } from '../../src/reconcile/store-port.ts'
import type { BrokerKey } from '../../src/reconcile/sweep-port.ts'
import { type OpenDatabase, openDatabase } from '../../src/store/database.ts'
import { raiseGenerations } from '../../src/store/generations.ts'
import { laggingPairs, requestPasswords } from '../../src/store/pairs.ts'
import { createReconcileStore } from '../../src/store/reconcile-store.ts'
import type { Schema } from '../../src/store/schema.ts'
import { credentialPlace, type Sealer } from '../../src/store/sealer-port.ts'
import { createSweepStore } from '../../src/store/sweep-store.ts'
import { type StoreSubject, secretOf } from '../contract/reconcile-store-contract.ts'
import { FakeBroker } from '../helpers/fake-broker.ts'
import { channel, DIRECT, pairOf, policyOf, SETTINGS } from '../helpers/sample.ts'

/** Seals by writing the place beside the text: enough to see that a value is opened where it belongs. */
export const openSealer: Sealer = {
  seal: async (secret, place) => JSON.stringify([place, secret.reveal()]),
  open: async (sealed, place) => {
    const [sealedFor, text] = JSON.parse(sealed) as [unknown, string]
    if (JSON.stringify(sealedFor) !== JSON.stringify(place)) throw new Error('sealed for another place')
    return new Secret(text)
  },
}

/** The stores of the reconcile core on a database of its own, with a catalogue of one product per broker. */
export class DatabaseSubject implements StoreSubject {
  readonly #open: OpenDatabase
  readonly store
  readonly sweepStore

  constructor(connectionString: string) {
    const onIdleError = (): void => undefined
    this.#open = openDatabase({ connectionString, maxConnections: 4, onIdleError })
    this.store = createReconcileStore(this.#open.db, openSealer)
    this.sweepStore = createSweepStore(this.#open.db)
  }

  get db(): Kysely<Schema> {
    return this.#open.db
  }

  async addPair(pair: Pair, credentials: Readonly<Record<string, number>> = {}): Promise<void> {
    const { accountId: account, registrationId: registration, brokerId: broker } = pair
    await this.#addBroker(account, broker)
    await sql`
      insert into registrations (account_id, id, name, source, filters, attributes, generation, revision)
      values (${account}, ${registration}, 'An app', 'test', '{}', '[]', 0, 'r')
      on conflict do nothing`.execute(this.db)
    await sql`
      insert into access_requests (account_id, registration_id, id, product_id, product_version, plan_id, state, filters,
        queue_nonce, approved_at, revision)
      values (${account}, ${registration}, ${`for-${broker}`}, ${`on-${broker}`}, '1.0.0', 'plan', 'APPROVED', '{}',
        'nonce', now(), 'r')`.execute(this.db)
    for (const [key, version] of Object.entries(credentials)) await this.addCredential(pair, key, version)
    await this.raiseGeneration(pair)
  }

  async addCredential(pair: Pair, key: string, version: number): Promise<void> {
    const id = `id-of-${key}`
    const place = credentialPlace(pair.accountId, id, version)
    const sealed = await openSealer.seal(new Secret(secretOf(pair, key, version)), place)
    await sql`
      insert into credentials (account_id, registration_id, id, name, consumer_key, secret, secret_version, revision)
      values (${pair.accountId}, ${pair.registrationId}, ${id}, 'main', ${key}, ${sealed}, ${version}, 'r')`.execute(
      this.db,
    )
  }

  raiseGeneration(pair: Pair): Promise<void> {
    return raiseGenerations(this.db, pair.accountId, [pair.registrationId])
  }

  async withdraw(pair: Pair): Promise<void> {
    await sql`
      delete from access_requests where account_id = ${pair.accountId} and registration_id = ${pair.registrationId}
        and product_id = ${`on-${pair.brokerId}`}`.execute(this.db)
    await this.raiseGeneration(pair)
  }

  async requestPassword(pair: Pair, key: string): Promise<void> {
    await requestPasswords(this.db, { ...pair, consumerKey: key })
  }

  async expireLease({ accountId, registrationId, brokerId }: Pair): Promise<void> {
    await sql`
      update pairs set lease_until = now() - interval '1 millisecond'
      where account_id = ${accountId} and registration_id = ${registrationId} and broker_id = ${brokerId}`.execute(
      this.db,
    )
  }

  async leaseEndsInMs({ accountId, registrationId, brokerId }: Pair): Promise<number> {
    const { rows } = await sql<{ ms: number }>`
      select (extract(epoch from lease_until - now()) * 1000)::bigint as ms from pairs
      where account_id = ${accountId} and registration_id = ${registrationId} and broker_id = ${brokerId}`.execute(
      this.db,
    )
    return rows[0]?.ms ?? Number.NEGATIVE_INFINITY
  }

  lagging = () => laggingPairs(this.db, 100)

  async requestState({ accountId, registrationId, brokerId }: Pair) {
    return await this.db
      .selectFrom('access_requests')
      .select(['state', 'reason'])
      .where('account_id', '=', accountId)
      .where('registration_id', '=', registrationId)
      .where('id', '=', `for-${brokerId}`)
      .executeTakeFirstOrThrow()
  }

  /** Empties every table for the next test. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await sql`truncate accounts, runs, drift cascade`.execute(this.db)
    } finally {
      await this.#open.close()
    }
  }

  /** A broker with a product of its own, and the Event API that all products of the account share. */
  async #addBroker(account: string, broker: string): Promise<void> {
    const product = `on-${broker}`
    const channels = JSON.stringify([channel('parcel/{id}/scanned', 'both')])
    const messaging = JSON.stringify({ host: 'localhost', protocols: [{ protocol: 'smf', port: 55_555 }] })
    await sql`insert into accounts (id, name) values (${account}, ${account}) on conflict do nothing`.execute(this.db)
    await sql`
      insert into brokers (account_id, id, name, kind, management, management_password, messaging, policy, revision)
      values (${account}, ${broker}, ${broker}, 'solace', '{}', 'sealed', ${messaging}, ${JSON.stringify(policyOf())}, 'r')
      on conflict do nothing`.execute(this.db)
    await sql`
      insert into event_apis (account_id, id, version, name, display_name, description, viewpoint, document, channels,
        custom_attributes, revision)
      values (${account}, 'parcels', '1.0.0', 'parcels', 'Parcels', '', 'client', '{}', ${channels}, '[]', 'r')
      on conflict do nothing`.execute(this.db)
    await sql`
      insert into products (account_id, id, name, description, shared, attributes, revision)
      values (${account}, ${product}, ${product}, '', false, '[]', 'r') on conflict do nothing`.execute(this.db)
    await sql`
      insert into product_versions (account_id, product_id, version, display_name, description, state, approval_type,
        publicly_available, custom_attributes, revision)
      values (${account}, ${product}, '1.0.0', '', '', 'RELEASED', 'automatic', true, '[]', 'r')
      on conflict do nothing`.execute(this.db)
    await sql`
      insert into product_version_event_apis (account_id, product_id, version, event_api_id, event_api_version, position)
      values (${account}, ${product}, '1.0.0', 'parcels', '1.0.0', 0) on conflict do nothing`.execute(this.db)
    await sql`
      insert into product_version_brokers (account_id, product_id, version, broker_id)
      values (${account}, ${product}, '1.0.0', ${broker}) on conflict do nothing`.execute(this.db)
    await sql`
      insert into plans (account_id, product_id, version, id, name, class_of_service_policy, position)
      values (${account}, ${product}, '1.0.0', 'plan', 'Plan', ${JSON.stringify(DIRECT)}, 0)
      on conflict do nothing`.execute(this.db)
  }
}

/** Runs on the database, each broker in memory. */
export class DatabaseWorld extends DatabaseSubject {
  /** How many runs there were; the last is `run-` and this number. */
  runs = 0
  readonly #brokers = new Map<string, FakeBroker>()

  /** The broker `broker1` of the account `acme`. */
  get broker(): FakeBroker {
    return this.brokerOf(pairOf('any'))
  }

  brokerOf({ accountId, brokerId }: BrokerKey): FakeBroker {
    const key = JSON.stringify([accountId, brokerId])
    const broker = this.#brokers.get(key) ?? new FakeBroker()
    this.#brokers.set(key, broker)
    return broker
  }

  dependencies(broker: BrokerKey, store: ReconcileStore = this.store, holder = 'worker-1'): ReconcileDependencies {
    const newRunId = () => {
      this.runs += 1
      return runId(`run-${this.runs}`)
    }
    const port = this.brokerOf(broker)
    return { broker: port, store, now: Date.now, newRunId, holder, leaseMs: 60_000, settings: SETTINGS }
  }

  run(pair: Pair = pairOf('app-a'), store?: ReconcileStore, holder?: string): Promise<ReconcileOutcome> {
    return reconcileRegistration(this.dependencies(pair, store, holder), { pair, trigger: 'on-demand' })
  }

  async rows(table: 'pairs' | 'ledger' | 'runs' | 'drift' | 'access_requests') {
    const query = sql<Record<string, unknown>>`select * from ${sql.table(table)} order by 1, 2, 3, 4`
    return (await query.execute(this.db)).rows
  }

  async requestStates(): Promise<readonly unknown[]> {
    return (await this.rows('access_requests')).map(({ state }) => state)
  }
}
