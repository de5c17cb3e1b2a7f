import type { Channel } from '../../src/domain/catalogue.ts'
import { eventApiId } from '../../src/domain/ids.ts'
import type { PortalBroker, PortalFile, PortalRegistration } from '../../src/domain/portal-file.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { eventApi, plan, product, productVersion, registration, suppliedCredential } from './import-fixtures.ts'

const CHANNELS: readonly Channel[] = [
  { name: 'orders/{region}/placed', clientMayPublish: false, clientMaySubscribe: true, parameterEnums: {} },
  {
    name: 'orders/{region}/changed',
    clientMayPublish: false,
    clientMaySubscribe: true,
    parameterEnums: { region: ['asia', 'europe'] },
  },
  { name: 'orders/{region}/cancel', clientMayPublish: true, clientMaySubscribe: false, parameterEnums: {} },
]

/** What a client of the product `orders` may publish and receive, filters apart. */
export const PUBLISH = ['orders/*/cancel']
export const SUBSCRIBE = ['orders/*/placed', 'orders/asia/changed', 'orders/europe/changed']

/** The product `orders` on all brokers, with guaranteed delivery through one queue for each access request. */
export function ordersPortal(
  brokers: readonly PortalBroker[],
  registrations: readonly PortalRegistration[],
): Partial<PortalFile> {
  const eventApis = [{ id: eventApiId('orders-api'), version: '1.0.0' }]
  const version = productVersion({ eventApis, plans: [plan('gold')], brokers: brokers.map(({ id }) => id) })
  return {
    eventApis: [eventApi('orders-api', { channels: CHANNELS })],
    products: [product('orders', { versions: [version] })],
    registrations,
  }
}

export const keyOf = (id: string): string => `key-of-${id}`
export const givenSecretOf = (id: string): string => `given-secret-of-${id}-Zk41`

/** A registration for `orders` with one credential; its queue is owned by that. */
export const client = (id: string, overrides: Partial<PortalRegistration> = {}): PortalRegistration =>
  registration(id, { credentials: [suppliedCredential('main', keyOf(id), givenSecretOf(id))], ...overrides })

export interface ClientObjects {
  readonly aclProfile: string
  readonly clientUsername: string
  readonly queue: string
}

/** Names of what a `client` has on a broker. Throws when its queue is not there. */
export function objectsOf({ state }: SandboxBroker, id: string): ClientObjects {
  const queue = state.queues.names().find((name) => state.queues.get(name)?.owner === keyOf(id))
  if (queue === undefined) throw new Error(`there is no queue of ${keyOf(id)}`)
  return { aclProfile: id, clientUsername: keyOf(id), queue }
}

/** Everything on the message VPN in one comparable value, passwords included. */
export function snapshotOf({ state }: SandboxBroker) {
  const { aclProfiles, clientUsernames, clientProfiles, queues } = state
  const all = <Value>(names: readonly string[], read: (name: string) => Value) =>
    Object.fromEntries(names.filter((name) => !/^(#.*|default)$/.test(name)).map((name) => [name, read(name)]))
  return {
    clientProfiles: all(clientProfiles.names(), (name) => clientProfiles.get(name)),
    aclProfiles: all(aclProfiles.names(), (name) => ({
      ...aclProfiles.get(name),
      publish: aclProfiles.members(name, 'publishTopicExceptions'),
      subscribe: aclProfiles.members(name, 'subscribeTopicExceptions'),
    })),
    clientUsernames: all(clientUsernames.names(), (name) => ({
      ...clientUsernames.get(name),
      password: state.passwordOf(name),
    })),
    queues: all(queues.names(), (name) => ({
      ...queues.get(name),
      subscriptions: queues.members(name, 'subscriptions'),
    })),
  }
}
