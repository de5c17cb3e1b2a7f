import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, eventApiId, productId, registrationId } from '../../src/domain/ids.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'

export interface BenchBroker {
  readonly url: string
  readonly msgVpnName: string
  readonly username: string
  readonly password: string
}

export const BENCH_BROKER_ID = 'bench'
export const REQUEST_CONCURRENCY = 10

/**
 * One broker, one product with a guaranteed plan, `count` registrations with a credential each. Every registration has an
 * ACL profile with four exceptions, a client username and a queue with two subscriptions; a client profile is shared.
 */
export function benchCatalogue(broker: BenchBroker, count: number): PortalFile {
  const api = eventApiId('orders')
  const product = productId('orderEvents')
  const channel = (name: string, publish: boolean) => ({
    name,
    clientMayPublish: publish,
    clientMaySubscribe: !publish,
    parameterEnums: {},
  })
  return {
    file: 'bench',
    environments: [{ id: 'production', name: 'Production' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'production' }],
    brokers: [
      {
        id: brokerId(BENCH_BROKER_ID),
        name: 'Bench',
        kind: 'solace',
        eventMeshId: 'mesh',
        management: {
          url: broker.url,
          msgVpnName: broker.msgVpnName,
          username: broker.username,
          maxConcurrentRequests: REQUEST_CONCURRENCY,
          requestTimeoutMs: 60_000,
        },
        managementPassword: new Secret(broker.password),
        messaging: { host: 'localhost', protocols: [{ protocol: 'smf', port: 55555 }] },
        policy: DEFAULT_BROKER_POLICY,
      },
    ],
    applicationDomains: [],
    eventApis: [
      {
        id: api,
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
    products: [
      {
        id: product,
        name: 'Order events',
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
            eventApis: [{ id: api, version: '1.0.0' }],
            plans: [
              {
                id: 'reliable',
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
            brokers: [brokerId(BENCH_BROKER_ID)],
            customAttributes: [],
          },
        ],
      },
    ],
    registrations: Array.from({ length: count }, (_, index) => {
      const customer = `customer${String(index).padStart(6, '0')}`
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
            productId: product,
            productVersion: '1.0.0',
            productVersionIsDefault: true,
            planId: 'reliable',
            filters: {},
            state: null,
            expiresAtMs: null,
          },
        ],
        credentials: [{ name: 'main', consumerKey: null, consumerSecret: null, expiresAtMs: null }],
      }
    }),
    warnings: [],
  }
}
