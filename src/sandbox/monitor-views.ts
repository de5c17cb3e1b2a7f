import type { Values } from './attribute.ts'
import type { BrokerModel } from './broker-model.ts'
import { CLIENT_ATTRIBUTES } from './client-attributes.ts'
import { ObjectCollection, type StoredObject } from './object-collection.ts'
import { CLIENT_USERNAMES, CLIENTS, completeValues, type ObjectTable, QUEUES } from './object-tables.ts'

/** What the monitoring API shows of an object. */
export interface MonitorView {
  readonly attributes: readonly string[]
  readonly values: (model: BrokerModel, inherited: Readonly<Values>, object: StoredObject) => Readonly<Values>
  /** Objects that nobody configured, as they are now. */
  readonly objects?: (model: BrokerModel, msgVpnName: string) => ObjectCollection
  /** The `collections` member beside `data`: counts of child collections. */
  readonly collections?: (model: BrokerModel, inherited: Readonly<Values>, object: StoredObject) => object
}

/** The attributes of a queue that say how it is set up and how full it is; there are some hundred counters more. */
export const MONITORED_QUEUE_ATTRIBUTES = [
  'accessType',
  'deadMsgQueue',
  'durable',
  'egressEnabled',
  'ingressEnabled',
  'maxBindCount',
  'maxMsgSize',
  'maxMsgSpoolUsage',
  'maxRedeliveryCount',
  'maxTtl',
  'msgSpoolUsage',
  'msgVpnName',
  'owner',
  'permission',
  'queueName',
  'respectTtlEnabled',
] as const

export const MONITORED_CLIENT_USERNAME_ATTRIBUTES = [
  'aclProfileName',
  'clientProfileName',
  'clientUsername',
  'dynamic',
  'enabled',
  'guaranteedEndpointPermissionOverrideEnabled',
  'msgVpnName',
  'subscriptionManagerEnabled',
] as const

const queueSpool = (model: BrokerModel, inherited: Readonly<Values>, object: StoredObject) =>
  model.spool(String(inherited.msgVpnName), object.key)

/** Collections of a message VPN that the configuration API has not. */
export const MONITORED_ONLY: ReadonlyMap<string, ObjectTable> = new Map([[CLIENTS.collection, CLIENTS]])

function connectedClients(model: BrokerModel, msgVpnName: string): ObjectCollection {
  const connected = new ObjectCollection(CLIENTS, model.options.seed)
  const usernames = model.collection(msgVpnName, CLIENT_USERNAMES)
  for (const { clientName, clientUsername } of model.accounts(msgVpnName).clients()) {
    const { aclProfileName = 'default', clientProfileName = 'default' } = usernames?.get(clientUsername)?.values ?? {}
    const values = { aclProfileName, clientName, clientProfileName, clientUsername }
    connected.add(clientName, completeValues(CLIENTS, values))
  }
  return connected
}

export const MONITOR_VIEWS: ReadonlyMap<ObjectTable, MonitorView> = new Map<ObjectTable, MonitorView>([
  [
    CLIENTS,
    {
      attributes: Object.keys(CLIENT_ATTRIBUTES),
      values: (_model, _inherited, object) => object.values,
      objects: connectedClients,
    },
  ],
  [
    CLIENT_USERNAMES,
    {
      attributes: MONITORED_CLIENT_USERNAME_ATTRIBUTES,
      values: (_model, _inherited, object) => ({ ...object.values, dynamic: false }),
    },
  ],
  [
    QUEUES,
    {
      attributes: MONITORED_QUEUE_ATTRIBUTES,
      values: (model, inherited, object) => ({
        ...object.values,
        durable: true,
        msgSpoolUsage: queueSpool(model, inherited, object).bytes,
      }),
      collections: (model, inherited, object) => ({
        msgs: { count: queueSpool(model, inherited, object).messages },
        subscriptions: { count: object.children?.get('subscriptions')?.size ?? 0 },
      }),
    },
  ],
])
