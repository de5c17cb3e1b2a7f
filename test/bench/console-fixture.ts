import { sql } from 'kysely'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, registrationId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalFile, PortalProduct, PortalRegistration } from '../../src/domain/portal-file.ts'
import type { Database } from '../../src/store/database.ts'
import { apiCatalogue } from './api-fixture.ts'

const PRODUCTS = 200
/** How many brokers a product, and so each of its registrations, is on. */
export const BROKERS_OF_A_PRODUCT = 5
const MESHES = ['east', 'west', 'north', 'south', 'test', 'staging']

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)
const padded = (index: number): string => String(index).padStart(5, '0')

/** Registrations with a request and a credential each, spread evenly over brokers in six meshes of three environments. */
export function consoleCatalogue({ registrations, brokers }: ConsoleSize): PortalFile {
  const file = apiCatalogue(PRODUCTS)
  const [sample] = file.brokers
  if (sample === undefined) throw new Error('the catalogue has no broker')
  return {
    ...file,
    environments: ['production', 'staging', 'test'].map((id) => ({ id, name: id })),
    eventMeshes: MESHES.map((id, index) => ({ id, name: id, environmentId: environmentOf(index) })),
    brokers: range(brokers).map((index) => brokerAt(sample, index)),
    products: file.products.map((product, index) => spread(product, index, brokers)),
    registrations: range(registrations).map((index) => registrationAt(file, index)),
  }
}

export interface ConsoleSize {
  readonly registrations: number
  readonly brokers: number
}

const environmentOf = (mesh: number): string => ['production', 'staging', 'test'][Math.max(0, mesh - 3)] ?? 'production'

const brokerAt = (sample: PortalBroker, index: number): PortalBroker => ({
  ...sample,
  id: brokerId(`broker-${padded(index)}`),
  name: `Broker ${index}`,
  eventMeshId: MESHES[index % MESHES.length] ?? 'east',
  management: sample.management && { ...sample.management, url: `https://broker-${index}.example:943` },
  policy: DEFAULT_BROKER_POLICY,
})

const spread = (product: PortalProduct, index: number, brokers: number): PortalProduct => ({
  ...product,
  versions: product.versions.map((version) => ({
    ...version,
    approvalType: 'automatic',
    eventApis: [{ id: eventApiId(`eventApi${index % 60}`), version: '1.2.0' }],
    brokers: range(Math.min(BROKERS_OF_A_PRODUCT, brokers)).map((each) =>
      brokerId(`broker-${padded((index * BROKERS_OF_A_PRODUCT + each) % brokers)}`),
    ),
  })),
})

function registrationAt({ products }: PortalFile, index: number): PortalRegistration {
  const product = products[index % products.length]
  const [version] = product?.versions ?? []
  if (product === undefined || version === undefined) throw new Error('the catalogue has no product')
  const name = `application-${padded(index)}`
  return {
    id: registrationId(name),
    name: `Application ${index}`,
    source: 'portal',
    sourceOwner: `team-${index % 40}`,
    applicationDomainId: 'retail',
    filters: {},
    attributes: [],
    accessRequests: [
      {
        id: accessRequestId(`request-${padded(index)}`),
        productId: product.id,
        productVersion: version.version,
        productVersionIsDefault: false,
        planId: version.plans[0]?.id ?? '',
        filters: { customer: [`customer-${index}`] },
        state: index % 50 === 0 ? 'PENDING_APPROVAL' : null,
        expiresAtMs: null,
      },
    ],
    credentials: [
      { name: 'main', consumerKey: consumerKey(`key-${padded(index)}`), consumerSecret: null, expiresAtMs: null },
    ],
  }
}

/** What runs would have left: most is in sync, one in a hundred is not, every credential was tried over every protocol. */
export async function fillRecords(db: Database): Promise<void> {
  const bad = sql`hashtext(registration_id || broker_id) % 100 = 0`
  await sql`
    update pairs set reached_generation = case when ${bad} then generation - 1 else generation end, reconciled_at = now(),
      state = case when ${bad} then 'error' else 'in-sync' end, reason = case when ${bad} then 'Broker said no.' end`.execute(
    db,
  )
  await sql`update access_requests set state = 'LIVE' where state = 'APPROVED'`.execute(db)
  await sql`
    insert into login_verdicts (account_id, broker_id, registration_id, consumer_key, protocol, credential_version, outcome,
      reason, detail, checked_at)
    select p.account_id, p.broker_id, p.registration_id, c.consumer_key, protocol, c.secret_version,
      case when hashtext(c.consumer_key || protocol) % 200 = 0 then 'rejected' else 'accepted' end, null, '', now()
    from pairs p join credentials c using (account_id, registration_id)
    cross join unnest(array['smfs', 'secure-mqtt', 'amqps', 'https']) protocol`.execute(db)
  await sql`
    insert into login_controls (account_id, broker_id, protocol, outcome, detail, checked_at)
    select account_id, id, protocol, 'refused', '', now()
    from brokers cross join unnest(array['smfs', 'secure-mqtt', 'amqps', 'https']) protocol`.execute(db)
  await sql`
    insert into runs (id, account_id, broker_id, registration_id, kind, trigger, outcome, steps, drift, started_at, finished_at)
    select 'run-' || n, account_id, broker_id, registration_id, 'registration', 'poll', 'in-sync', 4, n % 2,
      now() - n * interval '1 second', now() - n * interval '1 second'
    from (select *, row_number() over (order by registration_id, broker_id) as n from pairs) p`.execute(db)
  await sql`
    insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
      run_id, detected_at, last_seen_at, repaired_at)
    select account_id, broker_id, registration_id, 'aclProfile', 'profile-' || n, 'changed', 'somebody changed it',
      '{"clientConnectDefaultAction":"disallow"}', '{"clientConnectDefaultAction":"allow"}', 'repaired', 'run-' || n,
      now() - n * interval '2 seconds', now(), case when n % 100 > 0 then now() end
    from (select *, row_number() over (order by registration_id, broker_id) as n from pairs) p where n % 5 = 0`.execute(
    db,
  )
  await sql`
    insert into broker_status (account_id, broker_id, reachable, checked_at, semp_version, sweep_started_at,
      sweep_finished_at, sweep_outcome)
    select account_id, id, true, now(), '2.49', now() - interval '10 minutes', now() - interval '9 minutes', 'done'
    from brokers`.execute(db)
  await sql`
    insert into audit (at, account_id, actor_kind, actor_name, action, subject, outcome)
    select now(), account_id, 'user', 'bench', 'registration.create', id, 'done' from registrations`.execute(db)
  await sql`vacuum analyze`.execute(db)
}
