import { createHash } from 'node:crypto'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, productId, registrationId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalFile, PortalProduct, PortalRegistration } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'

/** How the SEMP server of a simulated broker is reached. */
export interface BenchBroker {
  readonly url: string
  readonly msgVpnName: string
  readonly username: string
  readonly password: string
}

export const BENCH_BROKER_ID = 'bench'
export const BENCH_PLAN_ID = 'reliable'
export const REQUEST_CONCURRENCY = 10
/** Of one registration: its ACL profile, its client username and its queue; the client profile is shared. */
export const OBJECTS_PER_REGISTRATION = 3

export interface CatalogueOptions {
  /** On each broker. */
  readonly registrations: number
  /** What a broker declares beyond its address; logins are off unless this gives it protocols. */
  readonly broker?: (broker: PortalBroker, index: number) => PortalBroker
}

/** One broker, with the ids that the other functions have for the first. */
export const benchCatalogue = (broker: BenchBroker, registrations: number): PortalFile =>
  meshCatalogue([broker], { registrations })

/**
 * The same each time. A product with a guaranteed plan for each broker, and registrations with a credential each. Every
 * registration has an ACL profile with four exceptions, a client username and a queue with two subscriptions; a client
 * profile is shared.
 */
export function meshCatalogue(
  brokers: readonly BenchBroker[],
  { registrations, broker = (declared) => declared }: CatalogueOptions,
): PortalFile {
  return {
    file: 'bench',
    environments: [{ id: 'production', name: 'Production' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'production' }],
    brokers: brokers.map((each, index) => broker(portalBroker(each, index), index)),
    applicationDomains: [],
    eventApis: [
      {
        id: EVENT_API,
        version: '1.0.0',
        name: 'Orders',
        displayName: 'Orders',
        description: '',
        channels: [
          channel('shop/{customer}/orders/created', true),
          channel('shop/{customer}/orders/cancelled', true),
          channel('shop/{customer}/orders/shipped', false),
          channel('shop/{customer}/orders/refused/{reason}', false),
        ],
        applicationDomainId: null,
        customAttributes: [],
        viewpoint: 'client',
        document: { file: 'bench', asyncApiVersion: '2.6.0', title: 'Orders', json: {} },
      },
    ],
    products: brokers.map((_, index) => product(index)),
    registrations: brokers.flatMap((_, index) =>
      Array.from({ length: registrations }, (__, position) => registration(index, index * registrations + position)),
    ),
    warnings: [],
  }
}

const EVENT_API = eventApiId('orders')

/** The first is `bench`, the next ones have a number. */
export const benchBrokerId = (index: number) => brokerId(index === 0 ? BENCH_BROKER_ID : `${BENCH_BROKER_ID}${index}`)

/** Of the product that is on this broker and no other. */
export const benchProductId = (index: number) => productId(index === 0 ? 'orderEvents' : `orderEvents${index}`)

const channel = (name: string, publish: boolean) => ({
  name,
  clientMayPublish: publish,
  clientMaySubscribe: !publish,
  parameterEnums: {},
})

const portalBroker = ({ url, msgVpnName, username, password }: BenchBroker, index: number): PortalBroker => ({
  id: benchBrokerId(index),
  name: `Bench ${index}`,
  kind: 'solace',
  eventMeshId: 'mesh',
  management: { url, msgVpnName, username, maxConcurrentRequests: REQUEST_CONCURRENCY, requestTimeoutMs: 60_000 },
  managementPassword: new Secret(password),
  messaging: {
    host: 'localhost',
    protocols: [{ protocol: 'amqps', port: 5671 }],
    logins: { off: 'all', maxPerSecond: 100, maxConcurrent: 16 },
  },
  policy: DEFAULT_BROKER_POLICY,
})

const product = (index: number): PortalProduct => ({
  id: benchProductId(index),
  name: `Order events ${index}`,
  description: '',
  applicationDomainId: null,
  shared: true,
  attributes: [],
  versions: [
    {
      version: '1.0.0',
      displayName: '',
      description: '',
      state: 'RELEASED',
      approvalType: 'automatic',
      public: true,
      eventApis: [{ id: EVENT_API, version: '1.0.0' }],
      plans: [
        {
          id: BENCH_PLAN_ID,
          name: 'Reliable',
          classOfServicePolicy: {
            messageDeliveryMode: 'guaranteed',
            accessType: 'exclusive',
            queueType: 'combined',
            maximumTimeToLive: 3600,
            maxMsgSpoolUsage: 100,
          },
        },
      ],
      brokers: [benchBrokerId(index)],
      customAttributes: [],
    },
  ],
})

function registration(broker: number, position: number): PortalRegistration {
  const number = String(position).padStart(6, '0')
  const customer = `customer${number}`
  return {
    id: registrationId(customer),
    name: customer,
    source: 'bench',
    sourceOwner: null,
    applicationDomainId: null,
    filters: { customer: [customer] },
    attributes: [],
    accessRequests: [
      {
        id: accessRequestId('orders'),
        productId: benchProductId(broker),
        productVersion: '1.0.0',
        productVersionIsDefault: true,
        planId: BENCH_PLAN_ID,
        filters: {},
        state: null,
        expiresAtMs: null,
      },
    ],
    credentials: [
      {
        name: 'main',
        consumerKey: consumerKey(`client${number}`),
        consumerSecret: new Secret(createHash('sha256').update(customer).digest('base64url')),
        expiresAtMs: null,
      },
    ],
  }
}
