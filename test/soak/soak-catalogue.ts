import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, productId, registrationId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalFile } from '../../src/domain/portal-file.ts'
import { Secret } from '../../src/domain/secret.ts'
import { hashText } from '../../src/sandbox/seeded-random.ts'
import { brokerIdOf, channelsOf, EVENT_API_VERSION, EVENT_APIS, PLANS, policyOf } from './catalogue.ts'
import type { Change, Version } from './life-facts.ts'

/** A broker as the service is told of it. */
export interface SoakBroker {
  readonly url: string
  readonly msgVpnName: string
  readonly username: string
  readonly password: string
  readonly mqttPort: number
}

export interface StartSettings {
  readonly registrations: number
  readonly seed: number
  readonly marker: string
  readonly requestTimeoutMs: number
}

/** What is there when life begins: to be imported, and the same as changes of the life. */
export function startOf(
  brokers: readonly SoakBroker[],
  settings: StartSettings,
): { readonly file: PortalFile; readonly changes: readonly Change[] } {
  const { registrations, seed, marker, requestTimeoutMs } = settings
  const products = range(Math.max(4, brokers.length)).map((index) => productOf(index, brokers.length))
  const clients = range(registrations).map((index) => clientOf(index, products, { seed, marker }))
  const file: PortalFile = {
    file: 'soak',
    environments: [{ id: 'production', name: 'Production' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environmentId: 'production' }],
    brokers: brokers.map((broker, index) => portalBroker(broker, index, requestTimeoutMs)),
    applicationDomains: [],
    eventApis: EVENT_APIS.map((id) => ({
      id: eventApiId(id),
      version: EVENT_API_VERSION,
      name: id,
      displayName: id,
      description: '',
      channels: channelsOf(id),
      applicationDomainId: null,
      customAttributes: [],
      viewpoint: 'client',
      document: { file: 'soak', asyncApiVersion: '2.6.0', title: id, json: { asyncapi: '2.6.0', info: { title: id } } },
    })),
    products: products.map(({ id, version, content }) => ({
      id: productId(id),
      name: id,
      description: '',
      applicationDomainId: null,
      shared: true,
      attributes: [],
      versions: [
        {
          version,
          displayName: '',
          description: '',
          state: 'RELEASED',
          approvalType: content.approval,
          public: true,
          eventApis: content.eventApis.map((api) => ({ id: eventApiId(api), version: EVENT_API_VERSION })),
          plans: Object.entries(content.plans).map(([plan, policy]) => ({
            id: plan,
            name: plan,
            classOfServicePolicy: policy,
          })),
          brokers: content.brokers.map((index) => brokerId(brokerIdOf(index))),
          customAttributes: [],
        },
      ],
    })),
    registrations: clients.map(({ id, product, version, plan, key, secret }) => ({
      id: registrationId(id),
      name: id,
      source: 'soak',
      sourceOwner: null,
      applicationDomainId: null,
      filters: {},
      attributes: [],
      accessRequests: [
        {
          id: accessRequestId('first'),
          productId: productId(product),
          productVersion: version,
          productVersionIsDefault: true,
          planId: plan,
          filters: {},
          state: 'APPROVED',
          expiresAtMs: null,
        },
      ],
      credentials: [
        { name: 'first', consumerKey: consumerKey(key), consumerSecret: new Secret(secret), expiresAtMs: null },
      ],
    })),
    warnings: [],
  }
  return { file, changes: changesOf(products, clients) }
}

interface SoakProduct {
  readonly id: string
  readonly version: string
  readonly content: Version
}

interface SoakClient {
  readonly id: string
  readonly product: string
  readonly version: string
  readonly plan: string
  readonly key: string
  readonly secret: string
}

function changesOf(products: readonly SoakProduct[], clients: readonly SoakClient[]): readonly Change[] {
  return [
    ...products.map(({ id, version, content }): Change => ({ type: 'version', product: id, version, content })),
    ...clients.flatMap(({ id: registration, product, version, plan, key, secret }): readonly Change[] => [
      { type: 'registration', registration },
      { type: 'access', registration, id: 'first', access: { product, version, plan, state: 'APPROVED' } },
      { type: 'credential', registration, key, secret, expiresAtMs: null },
    ]),
  ]
}

/** One in four asks a person first. Each on its own broker and, every second one, on the next one too. */
const productOf = (index: number, brokers: number): SoakProduct => ({
  id: `product${index}`,
  version: '1.0.0',
  content: {
    state: 'RELEASED',
    approval: index % 4 === 3 ? 'manual' : 'automatic',
    eventApis: EVENT_APIS.filter((_, position) => position % 2 === index % 2),
    brokers: [...new Set([index % brokers, ...(index % 2 === 0 ? [(index + 1) % brokers] : [])])],
    plans: Object.fromEntries(PLANS.map((plan) => [plan, policyOf(plan)])),
  },
})

function clientOf(
  index: number,
  products: readonly SoakProduct[],
  { seed, marker }: { readonly seed: number; readonly marker: string },
): SoakClient {
  const product = products[index % products.length]
  if (product === undefined) throw new RangeError('there is no product')
  const id = `client-${index}`
  const plan = PLANS[Math.floor(index / products.length) % PLANS.length] ?? 'direct'
  const secret = `${marker}${index}_${hashText(id, seed).toString(36)}`
  return { id, product: product.id, version: product.version, plan, key: `${id}-first`, secret }
}

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

/** Nobody is there to be asked: nothing is held, and a product may leave a broker with all who use it. */
const portalBroker = (broker: SoakBroker, index: number, requestTimeoutMs: number): PortalBroker => ({
  id: brokerId(brokerIdOf(index)),
  name: brokerIdOf(index),
  kind: 'solace',
  eventMeshId: 'mesh',
  management: {
    url: broker.url,
    msgVpnName: broker.msgVpnName,
    username: broker.username,
    maxConcurrentRequests: 4,
    requestTimeoutMs,
  },
  managementPassword: new Secret(broker.password),
  messaging: { host: '127.0.0.1', protocols: [{ protocol: 'mqtt', port: broker.mqttPort }] },
  policy: { ...DEFAULT_BROKER_POLICY, disruptive: 'allow', maxWithdrawals: 1_000_000 },
})
