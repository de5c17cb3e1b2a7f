import { existsSync, readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { expect } from 'vitest'
import { type AccountId, brokerId, eventApiId, productId } from '../../src/domain/ids.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
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

export function importFile(api: TestApi, account: AccountId, file: PortalFile, options: { dryRun?: boolean } = {}) {
  const { db, sealer, random, now } = api.dependencies
  return importPortalFile({ db, sealer, random, nowMs: now }, account, file, options)
}

const SPECIFICATION = new URL('../../../shared/spec/apim-openapi.json', import.meta.url)
const isThere = existsSync(SPECIFICATION)
if (!isThere) process.stderr.write('answers are not compared with the APIM description, which is not there\n')

/** Compares answers with the APIM description, where that is there. */
export class Described {
  readonly #ajv = addFormats.default(new Ajv({ strict: false, allErrors: true, unicodeRegExp: false }))
  readonly #known = new Map<string, ValidateFunction | null>()

  constructor() {
    if (!isThere) return
    const description = JSON.parse(readFileSync(SPECIFICATION, 'utf8')) as Description
    // Null at the end, as the specification of the service says.
    description.components.schemas.Pagination.properties.nextPage.nullable = true
    // Topics of one character or with a wildcard first are topics too.
    delete description.components.schemas.CommonTopic.pattern
    description.components.schemas.CommonTopic.minLength = 1
    this.#ajv.addSchema(description, 'apim')
  }

  check(method: string, path: string, { status, body }: Answer): void {
    const pattern = patternOf(path)
    const validate = this.#validator(method.toLowerCase(), pattern, status)
    if (validate === null) return
    expect(validate(body), `${method} ${pattern} ${status}: ${JSON.stringify(validate.errors)}`).toBe(true)
  }

  #validator(method: string, pattern: string, status: number): ValidateFunction | null {
    if (!isThere || status === 204) return null
    const key = `${method} ${pattern} ${status}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const place = `#/paths/${escaped(pattern)}/${method}/responses/${status}/content/application~1json/schema`
    const found = status < 300 ? this.#ajv.compile({ $ref: `apim${place}` }) : this.#error()
    this.#known.set(key, found)
    return found
  }

  #error(): ValidateFunction {
    return this.#ajv.compile({ $ref: 'apim#/components/schemas/ErrorResponse' })
  }
}

interface Description {
  readonly components: {
    readonly schemas: {
      readonly Pagination: { readonly properties: { readonly nextPage: { nullable?: boolean } } }
      readonly CommonTopic: { pattern?: string; minLength: number }
    }
  }
}

const escaped = (text: string): string => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))

const PARAMETERS: Readonly<Record<string, string>> = {
  appRegistrations: '{registrationId}',
  accessRequests: '{accessRequestId}',
  credentials: '{consumerKey}',
  filters: '{filterName}',
  attributes: '{attributeName}',
  webhooks: '{webhookId}',
  eventApis: '{eventApiId}',
}

function patternOf(path: string): string {
  const parts = (path.split('?')[0] ?? '').replace('/api/v2/apim/', '').split('/')
  return `/${parts.map((part, index) => (index % 2 === 0 ? part : (PARAMETERS[parts[index - 1] ?? ''] ?? part))).join('/')}`
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
