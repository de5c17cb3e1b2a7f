import { sql } from 'kysely'
import { accessRequestId, accountId, productId } from '../../src/domain/ids.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import type { PortalFile, PortalRegistration } from '../../src/domain/portal-file.ts'
import { createApiToken } from '../../src/store/api-tokens.ts'
import type { TestApi } from '../helpers/http.ts'
import { catalogue, importFile, REGISTRATIONS } from '../integration/http-registrations-fixture.ts'
import {
  accessRequest,
  broker,
  eventApi,
  product,
  productVersion,
  registration,
  suppliedCredential,
} from '../integration/import-fixtures.ts'
import type { KnownIds } from './http-fuzz-values.ts'

/** An account that holds one of everything, and its administrator's tokens. */
export interface World {
  /** Stands in requests for `WORLD`. */
  readonly name: string
  readonly apiToken: string
  readonly userToken: string
}

/** In ids that are unique among all accounts, for the world that a request meets. As long as a world's name. */
const WORLD = 'wNNNNN'
/** The same as a number. */
const NUMBER = 'NNNNN'

/** A request's text as it is meant for this world. */
export const inWorld = (text: string, { name }: World): string =>
  text.replaceAll(WORLD, name).replaceAll(NUMBER, name.slice(1))

const ONE = {
  environments: ['prod', 'spare'],
  meshes: ['mesh', 'spare'],
  domains: ['sales', 'spare'],
  brokers: ['broker1', 'broker2', 'spare'],
  eventApis: ['ordersapi', 'spare'],
  products: ['orders', 'secret', 'hidden', 'spare'],
  versions: ['1.0.0'],
  plans: ['gold', 'silver', 'bronze'],
  registrations: ['app-1', 'app-2', 'app-3'],
  requests: ['request-1', 'request-2'],
  keys: ['key-of-app-1', 'key-of-app-2', 'key-of-app-3'],
} as const

/** What every world holds, by the path segment before it or by the name of a field. */
export const KNOWN: KnownIds = {
  environments: ONE.environments,
  environmentId: ONE.environments,
  eventMeshes: ONE.meshes,
  eventMeshId: ONE.meshes,
  applicationDomains: ONE.domains,
  applicationDomainId: ONE.domains,
  brokers: ONE.brokers,
  brokerId: ONE.brokers,
  gateways: ONE.brokers,
  gatewayMessagingServiceIds: ONE.brokers,
  eventApis: ONE.eventApis,
  eventApiProducts: ONE.products,
  eventApiProductId: ONE.products,
  products: ONE.products,
  productId: ONE.products,
  versions: ONE.versions,
  history: ONE.versions,
  plans: ONE.plans,
  planId: ONE.plans,
  appRegistrations: ONE.registrations,
  registrations: ONE.registrations,
  registrationId: [...ONE.registrations, 'fuzzed-1', 'fuzzed-2'],
  accessRequests: ONE.requests,
  accessRequestId: [...ONE.requests, 'fuzzed-1', 'fuzzed-2'],
  credentials: ONE.keys,
  consumerKey: [...ONE.keys, 'fuzzed-key-1', 'fuzzed-key-2'],
  consumerSecret: ['fuzzed-secret-1', 'fuzzed-secret-2'],
  attributes: ['color', 'size.of'],
  filters: ['region', 'orderId'],
  webhooks: ['hook'],
  runs: [`run-${WORLD}`],
  drift: [NUMBER],
  users: [`colleague.${WORLD}`, `administrator.${WORLD}`],
  username: [`colleague.${WORLD}`],
  tokens: [WORLD],
  accounts: [WORLD],
  apiTokens: [`token${WORLD}`],
}

let worlds = 0

/** A fresh one; those before stay as they are. */
export async function newWorld(api: TestApi): Promise<World> {
  worlds += 1
  const name = `w${String(worlds).padStart(5, '0')}`
  const user = await api.addUser({ name: `administrator.${name}`, account: name })
  await api.addUser({ name: `colleague.${name}`, account: name })
  const { id } = await api.db.selectFrom('accounts').select('id').where('name', '=', name).executeTakeFirstOrThrow()
  const account = accountId(id)
  const times = { createdAtMs: api.dependencies.now(), expiresAtMs: null }
  await createApiToken(api.db, {
    ...{ id: `token${name}`, accountId: account, userId: user.id, name: 'spare', secretHash: 'none' },
    ...{ permissions: PERMISSIONS, ...times },
  })
  const registrations = ONE.registrations.map(registrationOf)
  await importFile(api, account, { ...withSpares(catalogue(`${name}-`)), registrations })
  await addRecords(api, account, name)
  for (const each of ONE.registrations) {
    const body = { name: 'hook', uri: 'https://hooks.example.org', method: 'POST' }
    const added = await api.call('POST', `${REGISTRATIONS}/${each}/webhooks`, { body, token: user.apiToken })
    if (added.status !== 201) throw new Error(`no webhook: ${JSON.stringify(added.body)}`)
  }
  return { name, apiToken: user.apiToken, userToken: user.userToken }
}

/** One of everything that nothing rests on, so that it can be removed. */
const withSpares = (file: PortalFile): PortalFile => ({
  ...file,
  environments: [...file.environments, { id: 'spare', name: 'Spare' }],
  eventMeshes: [...file.eventMeshes, { id: 'spare', name: 'Spare', environmentId: 'prod' }],
  applicationDomains: [...file.applicationDomains, { id: 'spare', name: 'Spare', description: '' }],
  brokers: [...file.brokers, broker('spare', { management: null, managementPassword: null })],
  eventApis: [...file.eventApis, eventApi('spare')],
  products: [
    ...file.products.map((each) => ({ ...each, attributes: ATTRIBUTES })),
    product('spare', { versions: [productVersion({ state: 'DRAFT', eventApis: [], brokers: [] })] }),
  ],
})

const ATTRIBUTES = [
  { name: 'color', value: 'red' },
  { name: 'size.of', value: 'L' },
]

function registrationOf(id: string): PortalRegistration {
  const filters = { region: ['EU'] }
  return registration(id, {
    filters: { orderId: ['1', '2'] },
    attributes: ATTRIBUTES,
    accessRequests: [
      accessRequest({ filters }),
      accessRequest({ id: accessRequestId('request-2'), productId: productId('secret'), filters }),
    ],
    credentials: [suppliedCredential('main', `key-of-${id}`, `secret-of-${id}`)],
  })
}

/** What brokers would have left. */
async function addRecords({ db }: TestApi, account: string, name: string): Promise<void> {
  const at = new Date()
  const place = { account_id: account, broker_id: 'broker1' }
  await db
    .insertInto('runs')
    .values({
      ...{ id: `run-${name}`, ...place, registration_id: 'app-1', kind: 'registration', trigger: 'poll' },
      ...{ outcome: 'held', started_at: at, finished_at: at, error_code: null, error: null },
    })
    .execute()
  await sql`
    insert into drift (id, account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after,
      action, run_id, detected_at, last_seen_at)
    overriding system value
    values (${Number(name.slice(1))}, ${account}, 'broker1', 'app-1', 'queue', 'a queue', 'changed', 'changed-on-broker',
      '{}', '{}', 'reported', ${`run-${name}`}, ${at}, ${at})`.execute(db)
  await sql`insert into ledger (account_id, broker_id, kind, name, registration_id, origin)
    values (${account}, 'broker1', 'clientUsername', 'key-of-app-1', 'app-1', 'created')`.execute(db)
}
