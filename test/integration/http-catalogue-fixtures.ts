import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import type { PortalEventApi, PortalFile, PortalProduct, PortalProductVersion } from '../../src/domain/portal-file.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import type { Database } from '../../src/store/database.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { apimDescriptionOrSkip } from '../contract/apim-description.ts'
import type { Answer, CallOptions, TestApi } from '../helpers/http.ts'
import { broker, eventApi, plan, portalFile, product, productVersion, testSealer } from './import-fixtures.ts'

export const PRODUCTS = '/api/v2/apim/eventApiProducts'
export const GATEWAYS = '/api/v2/apim/gateways'

/** A broker with two protocols that other accounts do not manage too. */
export const broker1 = (account = 'default') =>
  broker('broker1', {
    name: 'Broker One',
    management: {
      url: `https://broker1.${account}.example:943`,
      msgVpnName: 'orders',
      username: 'admin',
      maxConcurrentRequests: 4,
      requestTimeoutMs: 10_000,
    },
    messaging: {
      host: 'broker1.example',
      protocols: [
        { protocol: 'smfs', port: 55_443 },
        { protocol: 'secure-mqtt', port: 8883 },
      ],
    },
  })

export const ordersApi = (overrides: Partial<PortalEventApi> = {}): PortalEventApi =>
  eventApi('ordersApi', {
    name: 'Orders API',
    displayName: 'Orders, all of them',
    description: 'What happens to orders.',
    channels: [
      {
        name: 'orders/{region}/{id}',
        clientMayPublish: false,
        clientMaySubscribe: true,
        parameterEnums: { region: ['west', 'east'] },
      },
      {
        name: 'orders/{region}',
        clientMayPublish: true,
        clientMaySubscribe: false,
        parameterEnums: { region: ['north'] },
      },
    ],
    customAttributes: [{ name: 'owner', value: 'sales' }],
    document: {
      file: 'orders.yaml',
      asyncApiVersion: '2.6.0',
      title: 'Orders',
      json: {
        asyncapi: '2.6.0',
        info: { title: 'Orders', version: '1.0.0' },
        channels: {
          'orders/{region}/{id}': { subscribe: { message: { messageId: 'order', payload: { type: 'object' } } } },
        },
      },
    },
    ...overrides,
  })

export const version = (overrides: Partial<PortalProductVersion> = {}): PortalProductVersion =>
  productVersion({
    eventApis: [{ id: eventApiId('ordersApi'), version: '1.0.0' }],
    brokers: [brokerId('broker1')],
    plans: [plan('gold'), { ...plan('silver'), name: 'Silver' }],
    ...overrides,
  })

export const visible = (id: string, overrides: Partial<PortalProduct> = {}): PortalProduct =>
  product(id, { versions: [version()], ...overrides })

/** One broker, one Event API, the product `orders`. */
export const catalogue = (overrides: Partial<PortalFile> = {}, account = 'default'): PortalFile =>
  portalFile({ brokers: [broker1(account)], eventApis: [ordersApi()], products: [visible('orders')], ...overrides })

const TABLES = ['products', 'event_apis', 'brokers', 'application_domains', 'event_meshes', 'environments'] as const

/** Brings the account in step with the file; what it held before is removed. */
export async function importCatalogue(db: Database, file: PortalFile, account = 'default'): Promise<void> {
  const accountId = await ensureAccount(db, account)
  const dependencies = { db, sealer: testSealer(), random: cryptoRandom, nowMs: Date.now }
  for (const table of TABLES) await db.deleteFrom(table).where('account_id', '=', accountId).execute()
  await importPortalFile(dependencies, accountId, file)
}

export interface ListBody<Item = { readonly id: string }> {
  readonly data: readonly Item[]
  readonly meta: { readonly pagination: Readonly<Record<string, number | null>> }
}

/** Calls that compare every answer with the description of the API. */
export function describedCalls(api: () => TestApi) {
  const description = apimDescriptionOrSkip()
  const problems: string[] = []
  const call = async <Body>(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    options: CallOptions = {},
  ): Promise<Answer<Body>> => {
    const answer = await api().call<Body>(method, path, options)
    const { status, body, headers } = answer
    const contentType = String(headers['content-type'] ?? '')
    problems.push(...(description?.problemsOf({ method, path, status, contentType, body }) ?? []))
    return answer
  }
  const idsOf = async (query: string): Promise<readonly string[]> => {
    const { status, body } = await call<ListBody>('GET', `${PRODUCTS}${query}`)
    if (status !== 200) throw new Error(`${query}: ${JSON.stringify(body)}`)
    return body.data.map(({ id }) => id)
  }
  return { call, idsOf, problems, isDescribed: description !== null }
}
