import {
  ACL_PROFILE_ATTRIBUTES,
  CLIENT_CONNECT_EXCEPTION_ATTRIBUTES,
  PUBLISH_TOPIC_EXCEPTION_ATTRIBUTES,
  SUBSCRIBE_SHARE_NAME_EXCEPTION_ATTRIBUTES,
  SUBSCRIBE_TOPIC_EXCEPTION_ATTRIBUTES,
} from './acl-profile-attributes.ts'
import { type Attributes, defaultOf, type Scope, type Value, type Values } from './attribute.ts'
import { CLIENT_ATTRIBUTES } from './client-attributes.ts'
import { CLIENT_PROFILE_ATTRIBUTES } from './client-profile-attributes.ts'
import { CLIENT_USERNAME_ATTRIBUTE_ATTRIBUTES, CLIENT_USERNAME_ATTRIBUTES } from './client-username-attributes.ts'
import { MSG_VPN_ATTRIBUTES } from './msg-vpn-attributes.ts'
import { QUEUE_ATTRIBUTES, QUEUE_SUBSCRIPTION_ATTRIBUTES } from './queue-attributes.ts'

interface TableSource {
  /** The schema name in the SEMP API description. */
  readonly definition: string
  /** The path segment, which is also the kind in the request counters. */
  readonly collection: string
  /** For descriptions of errors. */
  readonly label: string
  /** The object's own identifying attributes, in path order. */
  readonly keys: readonly string[]
  readonly attributes: Attributes
  readonly children: readonly ObjectTable[]
  /** False: only GET, POST and DELETE. */
  readonly updatable: boolean
  readonly patchScope: Scope
  /** The most objects on one page. */
  readonly maximumCount: number
}

export interface ObjectTable extends TableSource {
  /** What a GET may return, in the order of the table. */
  readonly readable: readonly string[]
  /** A new object's readable values; every object is a copy of it, so that all have one shape. */
  readonly defaults: Readonly<Values>
  readonly childByCollection: ReadonlyMap<string, ObjectTable>
  /** Attributes whose change is disruptive, with the flags that decide. */
  readonly autoDisabled: readonly (readonly [name: string, flags: readonly string[]])[]
}

function objectTable(source: Partial<TableSource> & Omit<TableSource, OptionalField>): ObjectTable {
  const attributes = Object.entries(source.attributes)
  const readable = attributes.filter(([, attribute]) => attribute.writeOnly !== true)
  const defaults: Values = {}
  for (const [name, attribute] of readable) {
    const isInherited = attribute.type === 'string' && attribute.identity === 'parent'
    if (!isInherited) defaults[name] = defaultOf(attribute) ?? ''
  }
  const children = source.children ?? []
  return {
    children,
    updatable: true,
    patchScope: 'vpn/read-write',
    maximumCount: 100,
    ...source,
    readable: readable.map(([name]) => name),
    defaults,
    childByCollection: new Map(children.map((child) => [child.collection, child])),
    autoDisabled: attributes.flatMap(([name, { autoDisable }]) => (autoDisable ? [[name, autoDisable] as const] : [])),
  }
}
type OptionalField = 'children' | 'updatable' | 'patchScope' | 'maximumCount'

const aclProfileException = (definition: string, collection: string, label: string, attributes: Attributes) =>
  objectTable({
    definition: `MsgVpnAclProfile${definition}`,
    collection,
    label,
    // Path order is syntax, topic; a client connect exception has the address alone.
    keys: Object.keys(attributes)
      .filter((name) => attributes[name]?.type === 'string' && !['aclProfileName', 'msgVpnName'].includes(name))
      .sort((left, right) => Number(right.endsWith('Syntax')) - Number(left.endsWith('Syntax'))),
    attributes,
    updatable: false,
  })

export const CLIENT_USERNAMES = objectTable({
  definition: 'MsgVpnClientUsername',
  collection: 'clientUsernames',
  label: 'Client username',
  keys: ['clientUsername'],
  attributes: CLIENT_USERNAME_ATTRIBUTES,
  children: [
    objectTable({
      definition: 'MsgVpnClientUsernameAttribute',
      collection: 'attributes',
      label: 'Client username attribute',
      keys: ['attributeName', 'attributeValue'],
      attributes: CLIENT_USERNAME_ATTRIBUTE_ATTRIBUTES,
      updatable: false,
      maximumCount: 500,
    }),
  ],
})

export const CLIENT_PROFILES = objectTable({
  definition: 'MsgVpnClientProfile',
  collection: 'clientProfiles',
  label: 'Client profile',
  keys: ['clientProfileName'],
  attributes: CLIENT_PROFILE_ATTRIBUTES,
  patchScope: 'global/mesh-manager',
})

export const ACL_PROFILES = objectTable({
  definition: 'MsgVpnAclProfile',
  collection: 'aclProfiles',
  label: 'ACL profile',
  keys: ['aclProfileName'],
  attributes: ACL_PROFILE_ATTRIBUTES,
  children: [
    aclProfileException(
      'ClientConnectException',
      'clientConnectExceptions',
      'Client connect exception',
      CLIENT_CONNECT_EXCEPTION_ATTRIBUTES,
    ),
    aclProfileException(
      'PublishTopicException',
      'publishTopicExceptions',
      'Publish topic exception',
      PUBLISH_TOPIC_EXCEPTION_ATTRIBUTES,
    ),
    aclProfileException(
      'SubscribeShareNameException',
      'subscribeShareNameExceptions',
      'Subscribe share name exception',
      SUBSCRIBE_SHARE_NAME_EXCEPTION_ATTRIBUTES,
    ),
    aclProfileException(
      'SubscribeTopicException',
      'subscribeTopicExceptions',
      'Subscribe topic exception',
      SUBSCRIBE_TOPIC_EXCEPTION_ATTRIBUTES,
    ),
  ],
})

export const QUEUES = objectTable({
  definition: 'MsgVpnQueue',
  collection: 'queues',
  label: 'Queue',
  keys: ['queueName'],
  attributes: QUEUE_ATTRIBUTES,
  children: [
    objectTable({
      definition: 'MsgVpnQueueSubscription',
      collection: 'subscriptions',
      label: 'Subscription',
      keys: ['subscriptionTopic'],
      attributes: QUEUE_SUBSCRIPTION_ATTRIBUTES,
      updatable: false,
    }),
  ],
})

/** Connections of a message VPN: the monitoring API alone has them. */
export const CLIENTS = objectTable({
  definition: 'MsgVpnClient',
  collection: 'clients',
  label: 'Client',
  keys: ['clientName'],
  attributes: CLIENT_ATTRIBUTES,
})

export const MSG_VPNS = objectTable({
  definition: 'MsgVpn',
  collection: 'msgVpns',
  label: 'Message VPN',
  keys: ['msgVpnName'],
  attributes: MSG_VPN_ATTRIBUTES,
  children: [ACL_PROFILES, CLIENT_PROFILES, CLIENT_USERNAMES, QUEUES],
})

/** A full set of readable values of an object: defaults, then what is given. */
export const completeValues = (table: ObjectTable, given: Readonly<Record<string, Value>>): Values => ({
  ...table.defaults,
  ...given,
})
