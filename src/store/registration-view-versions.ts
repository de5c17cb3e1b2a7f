import { sql } from 'kysely'
import type { BrokerPolicy, Channel, ClassOfServicePolicy, ProductState, Protocol } from '../domain/catalogue.ts'
import type { Database } from './database.ts'
import type { NameValue } from './schema.ts'

/** Of a product version, what a registration that asked for it gets to see. */
export interface VersionView {
  readonly state: ProductState
  readonly policies: ReadonlyMap<string, ClassOfServicePolicy>
  /** In the order of the product. */
  readonly eventApis: readonly EventApiView[]
  /** Associated ones, by id. */
  readonly brokers: readonly AssociatedBroker[]
}

export interface EventApiView {
  readonly id: string
  readonly version: string
  readonly name: string
  readonly displayName: string
  readonly description: string
  readonly customAttributes: readonly NameValue[]
  readonly channels: readonly Channel[]
}

export interface AssociatedBroker {
  readonly id: string
  readonly name: string
  readonly queuePermission: BrokerPolicy['queuePermission']
  /** Null: the broker is not usable now. */
  readonly connections: readonly MessagingServiceConnection[] | null
}

/** As the view `gateway_documents` makes it. */
export interface MessagingServiceConnection {
  readonly name: string
  readonly url: string
  readonly protocol: Protocol
  readonly protocolVersion: string
  readonly bindings: { readonly msgVpn: string }
  readonly messagingServiceAuthentications: readonly never[]
}

export interface VersionName {
  readonly productId: string
  readonly version: string
}

export type VersionViews = (name: VersionName) => VersionView | undefined

/** Each version, Event API and broker is read once, however many registrations ask for it. */
export async function readVersionViews(
  db: Database,
  accountId: string,
  names: readonly VersionName[],
): Promise<VersionViews> {
  const unique = new Map(names.map(({ productId, version }) => [keyOf({ productId, version }), { productId, version }]))
  if (unique.size === 0) return () => undefined
  const wanted = JSON.stringify([...unique.values()])
  const versions = await readVersions(db, accountId, wanted)
  const plans = groupsOf(await readPlans(db, accountId, wanted))
  const associations = groupsOf(await readEventApiNames(db, accountId, wanted))
  const eventApis = await readEventApis(db, accountId, wanted)
  const brokers = groupsOf(await readBrokers(db, accountId, wanted))
  const views = new Map(
    versions.map((row) => {
      const key = keyOf(row)
      const view: VersionView = {
        state: row.state,
        policies: new Map((plans.get(key) ?? []).map(({ id, policy }) => [id, policy])),
        eventApis: (associations.get(key) ?? []).flatMap((each) => eventApis.get(eventApiKey(each)) ?? []),
        brokers: brokers.get(key) ?? [],
      }
      return [key, view] as const
    }),
  )
  return (name) => views.get(keyOf(name))
}

const keyOf = ({ productId, version }: VersionName): string => JSON.stringify([productId, version])

function groupsOf<Row extends VersionName>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}

const namesOf = (wanted: string) =>
  sql`(select * from jsonb_to_recordset(${wanted}::jsonb) as n("productId" text, version text)) w`

async function readVersions(db: Database, accountId: string, wanted: string) {
  const { rows } = await sql<VersionName & { readonly state: ProductState }>`
    select w.*, v.state from ${namesOf(wanted)}
    join product_versions v on v.account_id = ${accountId} and v.product_id = w."productId" and v.version = w.version`.execute(
    db,
  )
  return rows
}

async function readPlans(db: Database, accountId: string, wanted: string) {
  const { rows } = await sql<VersionName & { readonly id: string; readonly policy: ClassOfServicePolicy }>`
    select w.*, p.id, p.class_of_service_policy as policy from ${namesOf(wanted)}
    join plans p on p.account_id = ${accountId} and p.product_id = w."productId" and p.version = w.version
    order by p.position`.execute(db)
  return rows
}

interface EventApiName extends VersionName {
  readonly eventApiId: string
  readonly eventApiVersion: string
}

const eventApiKey = (name: Pick<EventApiName, 'eventApiId' | 'eventApiVersion'>): string =>
  JSON.stringify([name.eventApiId, name.eventApiVersion])

async function readEventApiNames(db: Database, accountId: string, wanted: string): Promise<readonly EventApiName[]> {
  const { rows } = await sql<EventApiName>`
    select w.*, x.event_api_id as "eventApiId", x.event_api_version as "eventApiVersion" from ${namesOf(wanted)}
    join product_version_event_apis x
      on x.account_id = ${accountId} and x.product_id = w."productId" and x.version = w.version
    order by x.position`.execute(db)
  return rows
}

async function readEventApis(
  db: Database,
  accountId: string,
  wanted: string,
): Promise<ReadonlyMap<string, EventApiView>> {
  const { rows } = await sql<EventApiView>`
    select a.id, a.version, a.name, a.display_name as "displayName", a.description,
      a.custom_attributes as "customAttributes", a.channels
    from (
      select distinct x.event_api_id, x.event_api_version from ${namesOf(wanted)}
      join product_version_event_apis x
        on x.account_id = ${accountId} and x.product_id = w."productId" and x.version = w.version) named
    join event_apis a
      on a.account_id = ${accountId} and a.id = named.event_api_id and a.version = named.event_api_version`.execute(db)
  return new Map(rows.map((row) => [eventApiKey({ eventApiId: row.id, eventApiVersion: row.version }), row]))
}

async function readBrokers(db: Database, accountId: string, wanted: string) {
  const { rows } = await sql<VersionName & AssociatedBroker>`
    select w.*, b.id, b.name, b.policy ->> 'queuePermission' as "queuePermission",
      g.document -> 'messagingServiceConnections' as connections
    from ${namesOf(wanted)}
    join product_version_brokers x
      on x.account_id = ${accountId} and x.product_id = w."productId" and x.version = w.version
    join brokers b on b.account_id = x.account_id and b.id = x.broker_id
    left join gateway_documents g on g.account_id = b.account_id and g.id = b.id
    order by b.id collate "C"`.execute(db)
  return rows
}
