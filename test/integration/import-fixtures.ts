import { createSecretKey } from 'node:crypto'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, productId, registrationId } from '../../src/domain/ids.ts'
import type {
  PortalAccessRequest,
  PortalBroker,
  PortalCredential,
  PortalEventApi,
  PortalFile,
  PortalProduct,
  PortalProductVersion,
  PortalRegistration,
} from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'
import { createSealer } from '../../src/secrets/seal.ts'
import type { RandomSource } from '../../src/store/random-source.ts'

/** A file with two brokers, one Event API, one product version `orders` 1.0.0 on the first broker, no registration. */
export function portalFile(overrides: Partial<PortalFile> = {}): PortalFile {
  return {
    file: 'portal.yaml',
    environments: [{ id: 'prod', name: 'Production' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'prod' }],
    brokers: [broker('broker-1'), broker('broker-2')],
    applicationDomains: [{ id: 'sales', name: 'Sales', description: '' }],
    eventApis: [eventApi('orders-api')],
    products: [product('orders')],
    registrations: [],
    warnings: [],
    ...overrides,
  }
}

export const broker = (id: string, overrides: Partial<PortalBroker> = {}): PortalBroker => ({
  id: brokerId(id),
  name: id,
  kind: 'solace',
  eventMeshId: 'mesh',
  management: {
    url: `https://${id}.example:943`,
    msgVpnName: 'default',
    username: 'admin',
    maxConcurrentRequests: 4,
    requestTimeoutMs: 10_000,
  },
  managementPassword: new Secret(`password-of-${id}`),
  messaging: { host: `${id}.example`, protocols: [{ protocol: 'smfs', port: 55443 }] },
  policy: DEFAULT_BROKER_POLICY,
  ...overrides,
})

export const eventApi = (id: string, overrides: Partial<PortalEventApi> = {}): PortalEventApi => ({
  id: eventApiId(id),
  version: '1.0.0',
  name: id,
  displayName: id,
  description: '',
  applicationDomainId: 'sales',
  viewpoint: 'client',
  channels: [{ name: `${id}/{region}`, clientMayPublish: false, clientMaySubscribe: true, parameterEnums: {} }],
  customAttributes: [],
  document: {
    file: `${id}.yaml`,
    asyncApiVersion: '2.6.0',
    title: id,
    json: { asyncapi: '2.6.0', info: { title: id } },
  },
  ...overrides,
})

export const product = (id: string, overrides: Partial<PortalProduct> = {}): PortalProduct => ({
  id: productId(id),
  name: id,
  description: '',
  applicationDomainId: 'sales',
  shared: true,
  attributes: [],
  versions: [productVersion()],
  ...overrides,
})

export const productVersion = (overrides: Partial<PortalProductVersion> = {}): PortalProductVersion => ({
  version: '1.0.0',
  displayName: 'Orders',
  description: '',
  state: 'RELEASED',
  approvalType: 'automatic',
  public: true,
  eventApis: [{ id: eventApiId('orders-api'), version: '1.0.0' }],
  plans: [plan('gold')],
  brokers: [brokerId('broker-1')],
  customAttributes: [],
  ...overrides,
})

export const plan = (id: string) =>
  ({
    id,
    name: id,
    classOfServicePolicy: {
      messageDeliveryMode: 'guaranteed',
      accessType: 'exclusive',
      queueType: 'combined',
      maximumTimeToLive: 0,
      maxMsgSpoolUsage: 500,
    },
  }) as const

export const registration = (id: string, overrides: Partial<PortalRegistration> = {}): PortalRegistration => ({
  id: registrationId(id),
  name: id,
  source: 'portal',
  sourceOwner: null,
  applicationDomainId: null,
  filters: {},
  attributes: [],
  accessRequests: [accessRequest()],
  credentials: [credential('main')],
  ...overrides,
})

export const accessRequest = (overrides: Partial<PortalAccessRequest> = {}): PortalAccessRequest => ({
  id: accessRequestId('request-1'),
  productId: productId('orders'),
  productVersion: '1.0.0',
  productVersionIsDefault: true,
  planId: 'gold',
  filters: {},
  state: null,
  expiresAtMs: null,
  ...overrides,
})

export const credential = (name: string, overrides: Partial<PortalCredential> = {}): PortalCredential => ({
  name,
  consumerKey: null,
  consumerSecret: null,
  expiresAtMs: null,
  ...overrides,
})

export const suppliedCredential = (name: string, key: string, secret: string): PortalCredential =>
  credential(name, { consumerKey: consumerKey(key), consumerSecret: new Secret(secret) })

/** Ids and tokens in sequence. */
export function countingRandom(): RandomSource {
  let count = 0
  const next = (): string => {
    count += 1
    return String(count)
  }
  return { token: (length) => next().padStart(length, 't'), id: () => `id-${next()}` }
}

export const testSealer = () =>
  createSealer({ current: 'k1', keys: new Map([['k1', createSecretKey(Buffer.alloc(32, 7))]]) })
