import type { Channel, ClassOfServicePolicy } from '../domain/catalogue.ts'
import { queueName } from '../domain/names.ts'
import type { Filters } from '../domain/registration.ts'
import { deriveTopics } from '../domain/topics.ts'
import type {
  AssociatedBroker,
  EventApiView,
  MessagingServiceConnection,
  VersionView,
} from './registration-view-versions.ts'

/** An access request that counts, with its version. */
export interface GrantedRequest {
  readonly id: string
  readonly filters: Filters
  readonly queueNonce: string
  readonly policy: ClassOfServicePolicy
  readonly version: VersionView
}

export interface GatewayView {
  readonly name: string
  readonly messagingServiceConnections: readonly MessagingServiceConnection[]
  readonly permissions: {
    readonly publish: readonly ChannelPermissions[]
    readonly subscribe: readonly ChannelPermissions[]
  }
}

/** One channel, by its name. */
export type ChannelPermissions = Readonly<Record<string, ChannelPermission>>

export interface ChannelPermission {
  /** Topics as brokers get them. */
  readonly permissions: readonly string[]
  readonly channelId: string
  readonly isChannel: true
}

export interface Owner {
  readonly accountId: string
  readonly registrationId: string
  readonly filters: Filters
  readonly maxTopics: number
}

/** Usable brokers that the requests tie the registration to, with what its clients may do there. */
export function gatewaysOf(owner: Owner, requests: readonly GrantedRequest[]): readonly GatewayView[] {
  const brokers = new Map<string, AssociatedBroker>()
  for (const { version } of requests) for (const broker of version.brokers) brokers.set(broker.id, broker)
  const topics = new Map(requests.map((request) => [request, topicsByChannel(owner, request)]))
  return [...brokers.values()]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .flatMap(({ id, name, connections }) => {
      if (connections === null) return []
      const here = requests
        .filter(({ version }) => version.brokers.some((broker) => broker.id === id))
        .flatMap((request) => topics.get(request) ?? [])
      const permissions = {
        publish: permissionsOf(here, 'publish', owner.maxTopics),
        subscribe: permissionsOf(here, 'subscribe', owner.maxTopics),
      }
      return [{ name, messagingServiceConnections: connections, permissions }]
    })
}

interface ChannelTopics {
  readonly channel: string
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
}

/** A channel that gives no topics grants nothing; why, the state of the request says. */
function topicsByChannel(owner: Owner, { filters, version }: GrantedRequest): readonly ChannelTopics[] {
  return version.eventApis.flatMap(({ channels }) =>
    channels.map((channel) => {
      const derived = derive(owner, filters, [channel])
      const { publish, subscribe } = derived.ok ? derived : { publish: [], subscribe: [] }
      return { channel: channel.name, publish, subscribe }
    }),
  )
}

const derive = (owner: Owner, filters: Filters, channels: readonly Channel[]) =>
  deriveTopics({ channels, filters: [filters, owner.filters], maxTopics: owner.maxTopics })

/** What is past the bound is on no broker either: the registration is in error then. */
function permissionsOf(
  channels: readonly ChannelTopics[],
  direction: 'publish' | 'subscribe',
  maxTopics: number,
): readonly ChannelPermissions[] {
  const byChannel = new Map<string, Set<string>>()
  let count = 0
  for (const each of channels) {
    for (const topic of each[direction]) {
      const known = byChannel.get(each.channel) ?? new Set()
      if (known.has(topic)) continue
      if (count === maxTopics) break
      byChannel.set(each.channel, known.add(topic))
      count += 1
    }
  }
  return [...byChannel]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([channel, topics]) => ({
      [channel]: { permissions: [...topics].sort(), channelId: channel, isChannel: true },
    }))
}

/** A queue of an access request, as clients bind to it. */
export interface QueueView {
  readonly name: string
  readonly eventApiId?: string
  readonly accessType: 'exclusive' | 'non-exclusive'
  /** Seconds; 0: messages do not expire. */
  readonly maxTtl: number
  /** MB. */
  readonly maxMsgSpoolUsage: number
}

export interface QueuesView {
  readonly eventApiProductResourceInformation?: QueueView
  readonly eventApiResourceInformation?: readonly QueueView[]
}

/** The queues of a plan with guaranteed delivery: none where there is nothing to receive. */
export function queuesOf(owner: Owner, request: GrantedRequest): QueuesView {
  const { policy, version } = request
  if (policy.messageDeliveryMode !== 'guaranteed') return {}
  if (policy.queueType === 'combined') {
    const channels = version.eventApis.flatMap((eventApi) => eventApi.channels)
    if (!receives(owner, request, channels)) return {}
    return { eventApiProductResourceInformation: queueOf(owner, request, null) }
  }
  const queues = [...eventApisById(version)].flatMap(([eventApiId, channels]) =>
    receives(owner, request, channels) ? [queueOf(owner, request, eventApiId)] : [],
  )
  return { eventApiResourceInformation: queues }
}

function eventApisById({ eventApis }: VersionView): ReadonlyMap<string, readonly EventApiView['channels'][number][]> {
  const channels = new Map<string, EventApiView['channels'][number][]>()
  for (const eventApi of eventApis)
    channels.set(eventApi.id, [...(channels.get(eventApi.id) ?? []), ...eventApi.channels])
  return channels
}

function receives(owner: Owner, request: GrantedRequest, channels: readonly Channel[]): boolean {
  const derived = derive(owner, request.filters, channels)
  return derived.ok && derived.subscribe.length > 0
}

/** Brokers may differ in who may consume, and the answer has room for one name: that of brokers where only the owner may. */
function queueOf(owner: Owner, request: GrantedRequest, eventApiId: string | null): QueueView {
  const { accessType, maximumTimeToLive, maxMsgSpoolUsage } = request.policy
  const { brokers } = request.version
  const anybodyConsumes = brokers.length > 0 && brokers.every(({ queuePermission }) => queuePermission === 'consume')
  const name = queueName({
    accountId: owner.accountId,
    registrationId: owner.registrationId,
    accessRequestId: request.id,
    ...(eventApiId === null ? {} : { eventApiId }),
    ...(anybodyConsumes ? { nonce: request.queueNonce } : {}),
  })
  const limits = { accessType, maxTtl: Math.max(0, maximumTimeToLive), maxMsgSpoolUsage }
  return eventApiId === null ? { name, ...limits } : { name, eventApiId, ...limits }
}
