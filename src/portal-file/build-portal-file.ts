import {
  type BrokerPolicy,
  DEFAULT_BROKER_POLICY,
  type LoginSettings,
  type Plan,
  PROTOCOLS,
} from '../domain/catalogue.ts'
import type { Problem } from '../domain/errors.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, productId, registrationId } from '../domain/ids.ts'
import type {
  CustomAttribute,
  PortalBroker,
  PortalEventApi,
  PortalFile,
  PortalProduct,
  PortalRegistration,
} from '../domain/portal-file.ts'
import { Secret } from '../domain/secret.ts'
import { newestVersion } from '../domain/semantic-version.ts'
import type { AsyncApiDocument } from './asyncapi-document.ts'
import { normaliseUrl } from './portal-file-references.ts'
import type { PortalFileInput } from './portal-file-schema.ts'
import { parsePath, problemAt, type YamlSource } from './yaml-source.ts'

/** What a portal file names and does not hold itself. */
export interface FileResources {
  /** PEM text by path as written. */
  readonly certificates: ReadonlyMap<string, string>
  /** Values of environment variables by name. */
  readonly secrets: ReadonlyMap<string, string>
  /** By position in `eventApis`. */
  readonly documents: ReadonlyMap<number, AsyncApiDocument>
}

/** Typed data from a file without problems: defaults filled in, references resolved, secrets wrapped. */
export function buildPortalFile(source: YamlSource, input: PortalFileInput, resources: FileResources): PortalFile {
  const warnings = [...new Set(resources.documents.values())].flatMap(
    (document): readonly Problem[] => document.warnings,
  )
  const eventApis = input.eventApis.flatMap((item, position) => {
    const document = resources.documents.get(position)
    return document === undefined ? [] : [toEventApi(item, document)]
  })
  const brokers = input.brokers.map((item, position) => {
    const broker = toBroker(item, resources)
    const missing = missingSettings(item)
    if (missing.length > 0) {
      const message = `is unusable until it has ${missing.join(', ')}`
      warnings.push(problemAt(source, ['brokers', position], message))
    }
    return broker
  })
  return {
    file: source.file,
    environments: input.environments.map(({ id, name = id }) => ({ id, name })),
    eventMeshes: input.eventMeshes.map(({ id, name = id, environment }) => ({ id, name, environmentId: environment })),
    brokers,
    applicationDomains: input.applicationDomains.map(({ id, name = id, description }) => ({ id, name, description })),
    eventApis,
    products: input.products.map((item) => toProduct(item, input)),
    registrations: input.registrations.map((item, position) => {
      warnings.push(...requestWarnings(source, item, position, input))
      return toRegistration(item, input, resources)
    }),
    warnings,
    lineOf: (path) => source.lineOf(parsePath(path)),
  }
}

type Item<Section extends keyof PortalFileInput> = PortalFileInput[Section][number]
type Messaging = NonNullable<Item<'brokers'>['messaging']>

function toBroker(item: Item<'brokers'>, { certificates, secrets }: FileResources): PortalBroker {
  const { url, msgVpn, username, password, passwordEnv, caFile, concurrency, requestsPerSecond, timeoutMs } =
    item.management ?? {}
  const secret = password ?? (passwordEnv === undefined ? undefined : secrets.get(passwordEnv))
  const caCertificate = caFile === undefined ? undefined : certificates.get(caFile)
  const isManaged =
    url !== undefined && msgVpn !== undefined && username !== undefined && secret !== undefined && secret !== ''
  return {
    id: brokerId(item.id),
    name: item.name ?? item.id,
    kind: 'solace',
    eventMeshId: item.eventMesh ?? null,
    management:
      isManaged && concurrency !== undefined && timeoutMs !== undefined
        ? {
            url: normaliseUrl(url),
            msgVpnName: msgVpn,
            username,
            maxConcurrentRequests: concurrency,
            requestTimeoutMs: timeoutMs,
            ...(requestsPerSecond === undefined ? {} : { maxRequestsPerSecond: requestsPerSecond }),
            ...(caCertificate === undefined ? {} : { caCertificate }),
          }
        : null,
    managementPassword: isManaged ? new Secret(secret) : null,
    messaging: toMessaging(item.messaging, certificates),
    policy: toPolicy(item.policy),
  }
}

function toMessaging(
  input: Item<'brokers'>['messaging'],
  certificates: ReadonlyMap<string, string>,
): PortalBroker['messaging'] {
  if (input?.host === undefined) return null
  const caCertificate = input.caFile === undefined ? undefined : certificates.get(input.caFile)
  const protocols = PROTOCOLS.flatMap((protocol) => {
    const port = input.protocols[protocol]
    return port === undefined ? [] : [{ protocol, port }]
  })
  return {
    host: input.host,
    protocols,
    ...(caCertificate === undefined ? {} : { caCertificate }),
    ...(input.logins === undefined ? {} : { logins: toLoginSettings(input.logins) }),
  }
}

const toLoginSettings = ({ off, perSecond, concurrency }: NonNullable<Messaging['logins']>): LoginSettings => ({
  off,
  maxPerSecond: perSecond,
  maxConcurrent: concurrency,
})

function toPolicy(input: Item<'brokers'>['policy']): BrokerPolicy {
  if (input === undefined) return DEFAULT_BROKER_POLICY
  const { window, ...policy } = input
  const [from, to] = window?.split('-') ?? []
  return {
    ...policy,
    window: from === undefined || to === undefined ? null : { fromMinute: minuteOf(from), toMinute: minuteOf(to) },
  }
}

const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

function missingSettings({ eventMesh, management, messaging }: Item<'brokers'>): readonly string[] {
  const wanted: Readonly<Record<string, unknown>> = {
    'an event mesh': eventMesh,
    'management.url': management?.url,
    'management.msgVpn': management?.msgVpn,
    'management.username': management?.username,
    'management.password': (management?.password || undefined) ?? management?.passwordEnv,
    'messaging.host': messaging?.host,
    'a protocol in messaging.protocols': Object.keys(messaging?.protocols ?? {})[0],
  }
  return Object.keys(wanted).filter((what) => wanted[what] === undefined)
}

function toEventApi(item: Item<'eventApis'>, document: AsyncApiDocument): PortalEventApi {
  const name = item.name ?? document.title
  return {
    id: eventApiId(item.id),
    version: item.version,
    name,
    displayName: item.displayName ?? name,
    description: item.description,
    channels: document.channels,
    applicationDomainId: item.applicationDomain ?? null,
    customAttributes: toAttributes(item.customAttributes),
    viewpoint: document.viewpoint,
    document: {
      file: document.file,
      asyncApiVersion: document.version,
      title: document.title,
      json: document.document,
    },
  }
}

function toProduct(item: Item<'products'>, { eventApis }: PortalFileInput): PortalProduct {
  const newest = (id: string): string =>
    newestVersion(eventApis.filter((eventApi) => eventApi.id === id).map(({ version }) => version)) ?? ''
  const name = item.name ?? item.id
  return {
    id: productId(item.id),
    name,
    description: item.description,
    applicationDomainId: item.applicationDomain ?? null,
    shared: item.shared,
    attributes: toAttributes(item.attributes),
    versions: item.versions.map((version) => ({
      version: version.version,
      displayName: version.displayName ?? name,
      description: version.description,
      state: version.state,
      approvalType: version.approvalType,
      public: version.public,
      eventApis: version.eventApis.map(({ id, version: named }) => ({
        id: eventApiId(id),
        version: named ?? newest(id),
      })),
      plans: version.plans.map(toPlan),
      brokers: version.brokers.map(brokerId),
      customAttributes: toAttributes(version.customAttributes),
    })),
  }
}

export function toPlan(item: Item<'products'>['versions'][number]['plans'][number]): Plan {
  const { id, name, unlimitedMsgSpoolUsage, maxMsgSpoolUsage, ...policy } = item
  // 500 MB is the default that the APIM API documents for a queue.
  return {
    id,
    name,
    classOfServicePolicy: { ...policy, maxMsgSpoolUsage: unlimitedMsgSpoolUsage ? 0 : (maxMsgSpoolUsage ?? 500) },
  }
}

function toRegistration(
  item: Item<'registrations'>,
  { products }: PortalFileInput,
  { secrets }: FileResources,
): PortalRegistration {
  return {
    id: registrationId(item.id),
    name: item.name ?? item.id,
    source: item.source,
    sourceOwner: item.sourceOwner ?? null,
    applicationDomainId: item.applicationDomain ?? null,
    filters: item.filters,
    attributes: toAttributes(item.attributes),
    accessRequests: item.accessRequests.map((request) => ({
      id: accessRequestId(request.id),
      productId: productId(request.product),
      productVersion: requestVersion(request, products) ?? '',
      productVersionIsDefault: request.version === undefined,
      planId: request.plan,
      filters: request.filters,
      state: request.state ?? null,
      expiresAtMs: toMs(request.expiresAt),
    })),
    credentials: item.credentials.map((credential) => {
      const { consumerSecret, consumerSecretEnv } = credential
      const secret = consumerSecret ?? (consumerSecretEnv === undefined ? undefined : secrets.get(consumerSecretEnv))
      return {
        name: credential.name,
        consumerKey: credential.consumerKey === undefined ? null : consumerKey(credential.consumerKey),
        consumerSecret: secret === undefined ? null : new Secret(secret),
        expiresAtMs: toMs(credential.expiresAt),
      }
    }),
  }
}

type Request = Item<'registrations'>['accessRequests'][number]

function requestVersion(request: Request, products: PortalFileInput['products']): string | undefined {
  const versions = products.find(({ id }) => id === request.product)?.versions ?? []
  const released = versions.filter(({ state }) => state === 'RELEASED').map(({ version }) => version)
  return request.version ?? newestVersion(released)
}

function requestWarnings(
  source: YamlSource,
  item: Item<'registrations'>,
  position: number,
  { products }: PortalFileInput,
): readonly Problem[] {
  return item.accessRequests.flatMap((request, index) => {
    const wanted = requestVersion(request, products)
    const version = products
      .find(({ id }) => id === request.product)
      ?.versions.find((candidate) => candidate.version === wanted)
    if (version === undefined || version.state === 'RELEASED' || version.state === 'DEPRECATED') return []
    const path = ['registrations', position, 'accessRequests', index]
    return [problemAt(source, path, `asks for version ${wanted}, which is ${version.state}: nothing is set up for it`)]
  })
}

const toMs = (timestamp: string | undefined): number | null => (timestamp === undefined ? null : Date.parse(timestamp))

const toAttributes = (attributes: Readonly<Record<string, string>>): readonly CustomAttribute[] =>
  Object.entries(attributes).map(([name, value]) => ({ name, value }))
