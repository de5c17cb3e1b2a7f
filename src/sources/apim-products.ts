import { z } from 'zod'
import type { Plan, ProductState } from '../domain/catalogue.ts'
import { brokerId, eventApiId, productId } from '../domain/ids.ts'
import type { PortalApplicationDomain, PortalProduct, PortalProductVersion } from '../domain/portal-file.ts'
import { SEMANTIC_VERSION } from '../domain/semantic-version.ts'
import { attributes, catalogueId, list, state, text } from './apim-fields.ts'
import type { Findings } from './findings.ts'

/** A product in one version, as a list or a detail shows it. */
export interface ListedProduct {
  readonly product: Omit<PortalProduct, 'versions'>
  readonly domain: PortalApplicationDomain | null
  readonly version: PortalProductVersion
  readonly eventApis: readonly ListedEventApi[]
  readonly brokers: readonly { readonly id: string; readonly name: string }[]
  /** Of all its Event APIs, as JSON: shows some changes of their documents. */
  readonly parameters: string
}

export interface ListedEventApi {
  readonly id: string
  readonly version: string
  readonly name: string
  readonly displayName: string
  readonly description: string
  readonly customAttributes: PortalProductVersion['customAttributes']
}

const DELETED = 'DELETED'
const STATES: readonly ProductState[] = ['RELEASED', 'DEPRECATED', 'RETIRED']

const named = z.object({ id: catalogueId })
const listed = z.object({
  name: text(1000),
  displayName: text(1000),
  description: text(),
  version: z.string().regex(SEMANTIC_VERSION),
  state,
  applicationDomainId: text(188),
  applicationDomainName: text(1000),
  approvalType: text(64),
  brokerType: text(64),
  plans: list,
  apis: list,
  apiParameters: z.unknown().optional(),
  solaceMessagingServices: list,
  vendorMessagingServices: list,
  customAttributes: attributes,
  attributes,
})

/** What the remote says instead of the domain of a product that has none. */
const NO_DOMAIN = 'none'

export type ProductReading =
  | { readonly kind: 'read'; readonly listed: ListedProduct }
  /** The list shows the product without all of its parts; its detail is to be asked for. */
  | { readonly kind: 'summary'; readonly id: string }
  /** Noted in the findings, where it has to be; the id is null when not even that can be used. */
  | { readonly kind: 'skipped'; readonly id: string | null }

/** `asDetail`: parts that are missing are not somewhere else. */
export function readProduct(item: unknown, findings: Findings, { asDetail = false } = {}): ProductReading {
  const id = named.safeParse(item)
  if (!id.success) {
    findings.warn('A product without a usable id was left out.')
    return { kind: 'skipped', id: null }
  }
  const fields = listed.safeParse(item)
  const product = { kind: 'product', id: id.data.id } as const
  const leave = (why: string): ProductReading => {
    findings.leave(product, `Product ${product.id} ${why}; what is stored of it stays.`)
    return { kind: 'skipped', id: product.id }
  }
  if (!fields.success) return leave(`has no usable ${fieldOf(fields.error)}`)
  const { plans, apis, version, brokerType } = fields.data
  const services = fields.data.solaceMessagingServices ?? fields.data.vendorMessagingServices
  if (brokerType !== '' && brokerType.toLowerCase() !== 'solace') return leave(`is for brokers of type ${brokerType}`)
  if (plans == null || apis == null || services == null) {
    return asDetail ? leave('comes without its plans, Event APIs or brokers') : { kind: 'summary', id: product.id }
  }
  if (fields.data.state === DELETED) return { kind: 'skipped', id: product.id }
  const known = STATES.find((each) => each === fields.data.state)
  if (known === undefined || known === DELETED) {
    const unread = { kind: 'productVersion', id: product.id, version } as const
    findings.leave(unread, `${nameOf(product.id, version)} is in an unknown state; it stays as stored.`)
    return { kind: 'skipped', id: product.id }
  }
  return { kind: 'read', listed: build(product.id, fields.data, { state: known, plans, apis, services }, findings) }
}

const nameOf = (id: string, version: string): string => `Version ${version} of product ${id}`

/** The first field that is wrong, never its value. */
export const fieldOf = (error: z.ZodError): string => error.issues[0]?.path.map(String).join('.') || 'content'

interface Parts {
  readonly state: Exclude<ProductState, 'DELETED'>
  readonly plans: readonly unknown[]
  readonly apis: readonly unknown[]
  readonly services: readonly unknown[]
}

function build(id: string, fields: z.output<typeof listed>, parts: Parts, findings: Findings): ListedProduct {
  const where = nameOf(id, fields.version)
  const eventApis = readEventApis(parts.apis, where, findings)
  const brokers = readServices(parts.services, where, findings)
  const domain = readDomain(fields.applicationDomainId, fields.applicationDomainName)
  const name = fields.name === '' ? id : fields.name
  return {
    product: {
      id: productId(id),
      name,
      description: fields.description,
      applicationDomainId: domain?.id ?? null,
      // Only such products are shown.
      shared: true,
      attributes: fields.attributes,
    },
    domain,
    version: {
      version: fields.version,
      displayName: fields.displayName === '' ? name : fields.displayName,
      description: fields.description,
      state: parts.state,
      // Nobody is approved here, so the stricter one is the safe reading of an unknown one.
      approvalType: fields.approvalType.toLowerCase() === 'automatic' ? 'automatic' : 'manual',
      public: true,
      eventApis: eventApis.map((eventApi) => ({ id: eventApiId(eventApi.id), version: eventApi.version })),
      plans: readPlans(parts.plans, where, findings),
      brokers: brokers.map((broker) => brokerId(broker.id)),
      customAttributes: fields.customAttributes,
    },
    eventApis,
    brokers,
    parameters: JSON.stringify(fields.apiParameters ?? null),
  }
}

function readDomain(id: string, name: string): PortalApplicationDomain | null {
  if (id === NO_DOMAIN || !catalogueId.safeParse(id).success) return null
  return { id, name: name === '' ? id : name, description: '' }
}

const eventApi = z.object({
  id: catalogueId,
  version: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[^\s@]+$/),
  name: text(1000),
  displayName: text(1000),
  description: text(),
  customAttributes: attributes,
})

/** An Event API is in a version once: a second version of it could not be asked for. */
function readEventApis(items: readonly unknown[], where: string, findings: Findings): readonly ListedEventApi[] {
  const byId = new Map<string, ListedEventApi>()
  for (const item of items) {
    const parsed = eventApi.safeParse(item)
    if (!parsed.success) findings.warn(`${where} has an Event API without a usable ${fieldOf(parsed.error)}.`)
    else if (!byId.has(parsed.data.id)) {
      const name = parsed.data.name === '' ? parsed.data.id : parsed.data.name
      const displayName = parsed.data.displayName === '' ? name : parsed.data.displayName
      byId.set(parsed.data.id, { ...parsed.data, name, displayName })
    }
  }
  return [...byId.values()]
}

const service = z.object({
  messagingServiceId: catalogueId.nullish(),
  id: catalogueId.nullish(),
  messagingServiceName: text(1000),
})

function readServices(items: readonly unknown[], where: string, findings: Findings): ListedProduct['brokers'] {
  const byId = new Map<string, { readonly id: string; readonly name: string }>()
  for (const item of items) {
    const parsed = service.safeParse(item)
    const id = parsed.data?.messagingServiceId ?? parsed.data?.id
    if (parsed.data === undefined || id == null) findings.warn(`${where} has a messaging service without a usable id.`)
    else byId.set(id, { id, name: parsed.data.messagingServiceName || id })
  }
  return [...byId.values()]
}

const whole = (fallback: number, min: number) =>
  z
    .int()
    .min(min)
    .nullish()
    .transform((value) => value ?? fallback)
const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values, fallback: Values[number]) =>
  z
    .enum(values)
    .nullish()
    .transform((value): Values[number] => value ?? fallback)

/** The defaults are those of the API's description. */
const policy = z.object({
  messageDeliveryMode: oneOf(['direct', 'guaranteed'], 'direct'),
  accessType: oneOf(['exclusive', 'non-exclusive'], 'exclusive'),
  queueType: oneOf(['combined', 'single'], 'combined'),
  maximumTimeToLive: whole(86_400, -1),
  maxMsgSpoolUsage: whole(500, 0),
})
const plan = z.object({
  id: catalogueId,
  name: text(1000),
  solaceClassOfServicePolicy: policy.nullish(),
  vendorClassOfServicePolicy: policy.nullish(),
})

function readPlans(items: readonly unknown[], where: string, findings: Findings): readonly Plan[] {
  const byId = new Map<string, Plan>()
  for (const item of items) {
    const parsed = plan.safeParse(item)
    if (!parsed.success) {
      findings.warn(`${where} has a plan without a usable ${fieldOf(parsed.error)}; the plan was left out.`)
      continue
    }
    const { id, name, solaceClassOfServicePolicy, vendorClassOfServicePolicy } = parsed.data
    const classOfServicePolicy = solaceClassOfServicePolicy ?? vendorClassOfServicePolicy ?? policy.parse({})
    byId.set(id, { id, name: name === '' ? id : name, classOfServicePolicy })
  }
  return [...byId.values()]
}
