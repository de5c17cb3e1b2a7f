import { expect } from 'vitest'
import { type AccountId, brokerId, eventApiId, productId } from '../../src/domain/ids.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import { type ImportOptions, importPortalFile } from '../../src/store/import-portal-file.ts'
import { apimDescriptionOrSkip } from '../contract/apim-description.ts'
import type { Answer, CallOptions, TestApi } from '../helpers/http.ts'
import { broker, eventApi, plan, portalFile, product, productVersion } from './import-fixtures.ts'

export const REGISTRATIONS = '/api/v2/apim/appRegistrations'

const channel = (name: string, parameterEnums: Readonly<Record<string, readonly string[]>> = {}) => ({
  name,
  clientMayPublish: name.startsWith('order/create'),
  clientMaySubscribe: !name.startsWith('order/create'),
  parameterEnums,
})

/**
 * Two brokers; `orders`: automatic, plan `gold` with one queue, `silver` with one queue for each Event API, `bronze`
 * direct; `secret`: manual approval; `hidden`: not public.
 */
export function catalogue(prefix = ''): PortalFile {
  const eventApis = [{ id: eventApiId('ordersapi'), version: '1.0.0' }]
  const gold = plan('gold')
  const policy = gold.classOfServicePolicy
  return portalFile({
    brokers: [broker('broker1', named(prefix, 'broker1')), broker('broker2', named(prefix, 'broker2'))],
    eventApis: [
      eventApi('ordersapi', {
        channels: [
          channel('order/updated/{region}/{orderId}', { region: ['EU', 'US'] }),
          channel('order/create/{orderId}'),
        ],
      }),
    ],
    products: [
      product('orders', {
        versions: [
          productVersion({
            eventApis,
            brokers: [brokerId('broker1')],
            plans: [
              gold,
              { ...plan('silver'), classOfServicePolicy: { ...policy, queueType: 'single' } },
              { ...plan('bronze'), classOfServicePolicy: { ...policy, messageDeliveryMode: 'direct' } },
            ],
          }),
        ],
      }),
      product(productId('secret'), {
        versions: [productVersion({ eventApis, approvalType: 'manual', brokers: [brokerId('broker2')] })],
      }),
      product(productId('hidden'), {
        versions: [productVersion({ eventApis, public: false, brokers: [brokerId('broker1')] })],
      }),
    ],
  })
}

/** A message VPN belongs to one account. */
const named = (prefix: string, id: string) => ({
  management: {
    url: `https://${prefix}${id}.example:943`,
    msgVpnName: 'default',
    username: 'admin',
    maxConcurrentRequests: 4,
    requestTimeoutMs: 10_000,
  },
})

export function importFile(api: TestApi, account: AccountId, file: PortalFile, options: ImportOptions = {}) {
  const { db, sealer, random, now } = api.dependencies
  return importPortalFile({ db, sealer, random, nowMs: now }, account, file, options)
}

/** Compares answers with the description of the APIM API, where that is there. */
export class Described {
  readonly #description = apimDescriptionOrSkip()

  check(method: string, path: string, { status, headers, body }: Answer): void {
    const contentType = String(headers['content-type'] ?? '')
    const problems = this.#description?.problemsOf({ method, path, status, contentType, body }) ?? []
    expect(problems).toEqual([])
  }
}

export type Client = (
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  options?: CallOptions,
) => Promise<Result>

export type Result = Answer<ResultBody>

/** What the tests look at of any answer. */
export interface ResultBody {
  readonly data: Record<string, unknown>
  readonly meta: unknown
  readonly message?: string
  readonly validationDetails?: Readonly<Record<string, readonly string[]>>
}

/** Calls below the registrations; each answer is compared with the APIM description. */
export function clientOf(api: TestApi, described: Described, token?: string): Client {
  return async (method, path, body, options = {}) => {
    const url = path.startsWith('/api/') ? path : `${REGISTRATIONS}${path}`
    const answer = await api.call<ResultBody>(method, url, {
      ...(body === undefined ? {} : { body }),
      ...(token === undefined ? {} : { token }),
      ...options,
    })
    described.check(method, url, answer)
    return answer
  }
}
