import type { ClassOfServicePolicy, Viewpoint } from './catalogue.ts'
import type { JsonObject, JsonValue } from './portal-file.ts'

/** The versions that the API may be asked for. */
export const ASYNCAPI_VERSIONS = ['2.2.0', '2.5.0'] as const
export type AsyncApiVersion = (typeof ASYNCAPI_VERSIONS)[number]

/** Where clients of an Event API connect; one per broker and protocol. */
export interface AsyncApiServer {
  /** Letters, digits and `-`; unique in the document. */
  readonly name: string
  readonly url: string
  readonly protocol: string
  readonly protocolVersion: string
  readonly description: string
  readonly msgVpnName: string
}

export interface AsyncApiContext {
  /** What the stored document's `publish` and `subscribe` say. */
  readonly viewpoint: Viewpoint
  readonly servers: readonly AsyncApiServer[]
  readonly product: {
    readonly id: string
    readonly name: string
    readonly version: string
    /** Null: the product belongs to none. */
    readonly applicationDomainId: string | null
  }
  readonly policy: ClassOfServicePolicy
  /** Null keeps the document's own version. */
  readonly asyncApiVersion: AsyncApiVersion | null
}

/**
 * The AsyncAPI 2.x document of an Event API on a plan, as its clients need it: in the client's view, with the servers of
 * the product's brokers instead of the document's own, the plan's Solace bindings, and the `x-ep-…` keys by which gateways
 * know the product. What a requested older version does not know is left out.
 */
export function renderAsyncApi(document: JsonObject, context: AsyncApiContext): JsonObject {
  const { asyncApiVersion: wanted, product } = context
  // For people: the store does not keep the order of keys.
  const root: Mutable = { asyncapi: '', info: {}, servers: {}, channels: {}, ...mutableCopy(document) }
  root.asyncapi = wanted ?? document.asyncapi ?? '2.6.0'
  const info: Mutable = { ...mapOr(root.info, {}), ...productKeys(product) }
  delete info['x-view']
  delete root['x-view']
  root.info = info
  root.servers = serversOf(context.servers)
  const channels = mapOr(root.channels, {})
  root.channels = channels
  for (const [name, written] of Object.entries(channels)) {
    const channel = { ...resolved(root, written) }
    // It names servers of the document, which are not here any more.
    delete channel.servers
    if (context.viewpoint === 'provider') swapOperations(channel)
    if (isMap(channel.publish)) channel.publish = withPolicy(channel.publish, topicBinding(context.policy))
    if (isMap(channel.subscribe)) channel.subscribe = withPolicy(channel.subscribe, subscribeBinding(context.policy))
    channels[name] = channel
  }
  if (isMap(root.components)) dropUnusedComponents(root.components)
  if (wanted === '2.2.0') leaveOutNewer(root)
  return root
}

const productKeys = ({ id, name, version, applicationDomainId }: AsyncApiContext['product']) => ({
  'x-ep-event-api-product-id': id,
  'x-ep-event-api-product-name': name,
  'x-ep-event-api-product-version': version,
  ...(applicationDomainId === null ? {} : { 'x-ep-application-domain-id': applicationDomainId }),
})

const serversOf = (servers: readonly AsyncApiServer[]): Mutable =>
  Object.fromEntries(
    servers.map(({ name, url, protocol, protocolVersion, description, msgVpnName }) => [
      name,
      {
        url,
        protocol,
        protocolVersion,
        description,
        bindings: { solace: { msgVpn: msgVpnName, bindingVersion: BINDING_VERSION } },
      },
    ]),
  )

const BINDING_VERSION = '0.3.0'

/** AsyncAPI bindings of Solace, operation binding 0.3.0. */
function topicBinding({ messageDeliveryMode }: ClassOfServicePolicy): Mutable {
  const deliveryMode = messageDeliveryMode === 'direct' ? 'direct' : 'persistent'
  return { destinations: [{ destinationType: 'topic', deliveryMode }], bindingVersion: BINDING_VERSION }
}

function subscribeBinding(policy: ClassOfServicePolicy): Mutable {
  if (policy.messageDeliveryMode === 'direct') return topicBinding(policy)
  const queue = {
    accessType: policy.accessType === 'exclusive' ? 'exclusive' : 'nonexclusive',
    maxTtl: String(policy.maximumTimeToLive),
    maxMsgSpoolUsage: String(policy.maxMsgSpoolUsage),
  }
  return {
    destinations: [{ destinationType: 'queue', deliveryMode: 'persistent', queue }],
    bindingVersion: BINDING_VERSION,
  }
}

/** A document that has Solace bindings of its own, or takes its bindings from elsewhere, knows better. */
function withPolicy(operation: Mutable, solace: Mutable): Mutable {
  const bindings = mapOr(operation.bindings, {})
  return '$ref' in bindings || '$ref' in operation ? operation : { ...operation, bindings: { solace, ...bindings } }
}

function swapOperations(channel: Mutable): void {
  const { publish, subscribe } = channel
  delete channel.publish
  delete channel.subscribe
  if (subscribe !== undefined) channel.publish = subscribe
  if (publish !== undefined) channel.subscribe = publish
}

/** Channels stand in the document itself now, and the servers are others. */
function dropUnusedComponents(components: Mutable): void {
  delete components.servers
  delete components.serverVariables
  delete components.channels
}

/** Of AsyncAPI 2.4.0: ids of messages and the security of operations. What 2.5.0 and 2.6.0 added is gone with the servers. */
function leaveOutNewer(root: Mutable): void {
  const components = mapOr(root.components, {})
  const operations = Object.values(mapOr(root.channels, {})).flatMap((channel) =>
    isMap(channel) ? [channel.publish, channel.subscribe].filter(isMap) : [],
  )
  for (const operation of [...operations, ...maps(components.operationTraits)]) delete operation.security
  const traits = operations.flatMap(({ traits: list }) => (Array.isArray(list) ? list : []))
  for (const trait of traits) delete resolved(root, trait).security
  const messages = operations.flatMap(({ message }) => (message === undefined ? [] : messagesOf(root, message)))
  for (const message of [...messages, ...maps(components.messages), ...maps(components.messageTraits)]) {
    delete message.messageId
    if (Array.isArray(message.traits)) for (const trait of message.traits) delete resolved(root, trait).messageId
  }
}

function messagesOf(root: Mutable, written: JsonValue): readonly Mutable[] {
  const message = resolved(root, written)
  return Array.isArray(message.oneOf) ? message.oneOf.map((each: JsonValue) => resolved(root, each)) : [message]
}

type Mutable = Record<string, JsonValue>
const MAX_REFERENCES = 20

/** What a reference inside the document means, in the document itself; anything else than a map is an empty one. */
function resolved(root: Mutable, written: JsonValue | undefined): Mutable {
  let value = written
  for (let step = 0; step < MAX_REFERENCES; step += 1) {
    if (!isMap(value)) return {}
    const { $ref: reference } = value
    if (typeof reference !== 'string') return value
    value = at(root, reference)
  }
  return {}
}

/** By JSON pointer in a URI fragment, RFC 6901. */
function at(root: Mutable, reference: string): JsonValue | undefined {
  if (!reference.startsWith('#/')) return undefined
  let value: JsonValue | undefined = root
  for (const part of reference.slice(2).split('/')) {
    const key = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
    const inside: JsonValue | undefined = value
    if (Array.isArray(inside)) value = inside[Number(key)] as JsonValue | undefined
    else value = isMap(inside) && Object.hasOwn(inside, key) ? inside[key] : undefined
  }
  return value
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const mutableCopy = (document: JsonObject): Mutable => structuredClone(document) as Mutable
const isMap = (value: JsonValue | undefined): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const mapOr = (value: JsonValue | undefined, otherwise: Mutable): Mutable => (isMap(value) ? value : otherwise)
const maps = (value: JsonValue | undefined): readonly Mutable[] => Object.values(mapOr(value, {})).filter(isMap)
