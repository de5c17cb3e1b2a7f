import { createHash } from 'node:crypto'
import type {
  PortalApplicationDomain,
  PortalBroker,
  PortalEnvironment,
  PortalEventApi,
  PortalEventMesh,
  PortalProduct,
  PortalProductVersion,
  PortalRegistration,
} from '../domain/portal-file.ts'
import type { AttributeChange } from './import-changes.ts'
import type { ResolvedAccessRequest } from './import-state.ts'

/** What counts of an object when the store is compared with a file: attribute name to plain JSON. */
export type Content = Readonly<Record<string, unknown>>

export const environmentContent = ({ name }: PortalEnvironment): Content => ({ name })

export const eventMeshContent = ({ name, environmentId }: PortalEventMesh): Content => ({ name, environmentId })

export const applicationDomainContent = ({ name, description }: PortalApplicationDomain): Content => ({
  name,
  description,
})

export const brokerContent = (broker: Omit<PortalBroker, 'id' | 'managementPassword'>): Content => ({
  name: broker.name,
  kind: broker.kind,
  eventMeshId: broker.eventMeshId,
  management: broker.management,
  messaging: broker.messaging,
  policy: broker.policy,
})

/** Without the document, which is compared by its revision. */
export const eventApiContent = (eventApi: Omit<PortalEventApi, 'document'>): Content => ({
  name: eventApi.name,
  displayName: eventApi.displayName,
  description: eventApi.description,
  applicationDomainId: eventApi.applicationDomainId,
  viewpoint: eventApi.viewpoint,
  channels: eventApi.channels,
  customAttributes: eventApi.customAttributes,
})

export const productContent = (product: Omit<PortalProduct, 'versions'>): Content => ({
  name: product.name,
  description: product.description,
  applicationDomainId: product.applicationDomainId,
  shared: product.shared,
  attributes: product.attributes,
})

export const productVersionContent = (
  version: Omit<PortalProductVersion, 'version' | 'state'> & { readonly state: string },
): Content => ({
  displayName: version.displayName,
  description: version.description,
  state: version.state,
  approvalType: version.approvalType,
  public: version.public,
  eventApis: version.eventApis,
  plans: version.plans,
  brokers: version.brokers.toSorted(),
  customAttributes: version.customAttributes,
})

export const registrationContent = (
  registration: Omit<PortalRegistration, 'id' | 'accessRequests' | 'credentials'>,
): Content => ({
  name: registration.name,
  source: registration.source,
  sourceOwner: registration.sourceOwner,
  applicationDomainId: registration.applicationDomainId,
  filters: registration.filters,
  attributes: registration.attributes,
})

export const accessRequestContent = (request: ResolvedAccessRequest): Content => ({
  productId: request.productId,
  productVersion: request.productVersion,
  planId: request.planId,
  filters: request.filters,
  state: request.state,
  expiresAt: isoTime(request.expiresAtMs),
})

export const isoTime = (timeMs: number | null): string | null =>
  timeMs === null ? null : new Date(timeMs).toISOString()

/** JSON with sorted keys and without absent values: equal text means equal content. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined)
    const members = entries
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`)
    return `{${members.join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}

/** 128 bits of SHA-256, hexadecimal. */
export const revisionOf = (content: unknown): string =>
  createHash('sha256').update(canonicalJson(content)).digest('hex').slice(0, 32)

export function attributeChanges(before: Content, after: Content): readonly AttributeChange[] {
  return Object.keys(after)
    .filter((name) => canonicalJson(before[name]) !== canonicalJson(after[name]))
    .map((name) => ({ name, before: before[name], after: after[name] }))
}

/** What `event_apis.revision` is made of: the document is too large to be read for a comparison. */
export const documentRevision = ({ document }: Pick<PortalEventApi, 'document'>): string =>
  revisionOf({ version: document.asyncApiVersion, title: document.title, json: document.json })

/** For an object that is new: what it has, without what is empty. */
export const newAttributes = (content: Content): readonly AttributeChange[] =>
  Object.entries(content)
    .filter(([, after]) => !isEmpty(after))
    .map(([name, after]) => ({ name, after }))

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** PostgreSQL takes neither in text nor in JSON. */
export function hasUnstorableText(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\u0000') || !value.isWellFormed()
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, each]) => hasUnstorableText(key) || hasUnstorableText(each))
}

/** The message VPN in one spelling, whatever the scheme, case, default port or path of the URL. */
export function managementAddress(management: PortalBroker['management']): string | null {
  if (management === null) return null
  const url = new URL(management.url)
  const port = url.port === '' ? (url.protocol === 'http:' ? '80' : '443') : url.port
  return `${url.hostname.toLowerCase().replace(/\.$/, '')}:${port}/${management.msgVpnName}`
}
