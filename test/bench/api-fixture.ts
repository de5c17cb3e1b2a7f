import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { brokerId, eventApiId, productId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalEventApi, PortalFile, PortalProduct } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

/** `count` visible products of the usual size: two plans, three Event APIs, two brokers, five attributes each. */
export function apiCatalogue(count: number): PortalFile {
  return {
    file: 'bench',
    environments: [{ id: 'production', name: 'Production' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'production' }],
    brokers: range(4).map(broker),
    applicationDomains: [{ id: 'retail', name: 'Retail', description: '' }],
    eventApis: range(60).map(eventApi),
    products: range(count).map(product),
    registrations: [],
    warnings: [],
  }
}

const broker = (index: number): PortalBroker => ({
  id: brokerId(`broker${index}`),
  name: `Broker ${index}`,
  kind: 'solace',
  eventMeshId: 'mesh',
  management: {
    url: `https://broker${index}.example:943`,
    msgVpnName: 'retail',
    username: 'admin',
    maxConcurrentRequests: 4,
    requestTimeoutMs: 10_000,
  },
  managementPassword: new Secret('management-password'),
  messaging: {
    host: `broker${index}.example`,
    protocols: [
      { protocol: 'smfs', port: 55_443 },
      { protocol: 'secure-mqtt', port: 8883 },
      { protocol: 'amqps', port: 5671 },
      { protocol: 'https', port: 9443 },
    ],
  },
  policy: DEFAULT_BROKER_POLICY,
})

const eventApi = (index: number): PortalEventApi => ({
  id: eventApiId(`eventApi${index}`),
  version: '1.2.0',
  name: `Event API ${index}`,
  displayName: `Event API ${index}`,
  description: `What happens to the orders of a shop, part ${index}, told as soon as it happened.`,
  applicationDomainId: 'retail',
  viewpoint: 'client',
  channels: range(4).map((channel) => ({
    name: `shop/{customer}/orders/{region}/kind${channel}`,
    clientMayPublish: channel % 2 === 0,
    clientMaySubscribe: channel % 2 === 1,
    parameterEnums: { region: ['east', 'north', 'south', 'west'] },
  })),
  customAttributes: [{ name: 'owner', value: 'orders' }],
  document: {
    file: 'bench',
    asyncApiVersion: '2.5.0',
    title: `Event API ${index}`,
    json: { asyncapi: '2.5.0', info: { title: `Event API ${index}`, version: '1.2.0' }, channels: {} },
  },
})

const product = (index: number): PortalProduct => ({
  id: productId(`product${String(index).padStart(6, '0')}`),
  name: `Product ${index}`,
  description: 'Orders from the moment when they are placed until they are at the door, for partners and for shops.',
  applicationDomainId: 'retail',
  shared: true,
  attributes: [
    { name: 'color', value: ['Blue', 'Black', 'Red'][index % 3] ?? '' },
    { name: 'gateway-state', value: 'deployed' },
  ],
  versions: [
    {
      version: `1.${index % 10}.0`,
      displayName: `Product ${index}, second edition`,
      description: '',
      state: 'RELEASED',
      approvalType: index % 2 === 0 ? 'automatic' : 'manual',
      public: true,
      eventApis: range(3).map((each) => ({ id: eventApiId(`eventApi${(index + each) % 60}`), version: '1.2.0' })),
      plans: ['gold', 'silver'].map((name) => ({
        id: `${name}${index}`,
        name,
        classOfServicePolicy: {
          messageDeliveryMode: name === 'gold' ? 'guaranteed' : 'direct',
          accessType: 'exclusive',
          queueType: 'combined',
          maximumTimeToLive: 86_400,
          maxMsgSpoolUsage: 500,
        },
      })),
      brokers: range(2).map((each) => brokerId(`broker${(index + each) % 4}`)),
      customAttributes: [
        { name: 'team', value: `team-${index % 50}` },
        { name: 'tier', value: 'partner' },
        { name: 'cost-centre', value: String(index % 17) },
      ],
    },
  ],
})
