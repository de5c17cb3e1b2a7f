import type { AttributeValue, BrokerObject } from '../domain/broker-object.ts'
import type { BrokerPolicy, Channel, ClassOfServicePolicy, Protocol } from '../domain/catalogue.ts'
import type { ConsumerKey, EventApiId } from '../domain/ids.ts'
import { aclProfileName, queueName } from '../domain/names.ts'
import type { CountedAccessRequest, LiveCredential, RegistrationOnBroker } from '../domain/registration.ts'
import { deriveTopics } from '../domain/topics.ts'
import { canonical, sortedUnique } from './canonical.ts'
import { chooseClientProfile } from './client-profiles.ts'

export interface DesiredInput {
  readonly registration: RegistrationOnBroker
  readonly protocols: readonly Protocol[]
  readonly policy: BrokerPolicy
  /** Owner of each queue that the ledger knows, by queue name: a queue keeps its owner while that credential lives. */
  readonly queueOwners: Readonly<Record<string, string>>
  readonly maxTopics: number
}

/** What should be on the broker for one registration. Empty when nothing ties the registration to the broker. */
export interface DesiredState {
  readonly objects: readonly BrokerObject[]
  /** Version of the stored secret by client username. */
  readonly credentialVersions: Readonly<Record<string, number>>
  readonly warnings: readonly string[]
}

export type DesiredResult =
  | { readonly ok: true; readonly desired: DesiredState }
  | { readonly ok: false; readonly problem: string }

const NOTHING: DesiredState = { objects: [], credentialVersions: {}, warnings: [] }

/** Pure: the store's view of one registration and one broker in, broker objects out. */
export function desiredState(input: DesiredInput): DesiredResult {
  const { registration } = input
  if (registration.accessRequests.length === 0) return { ok: true, desired: NOTHING }

  const publish: string[] = []
  const subscribe: string[] = []
  const warnings: string[] = []
  const queues: BrokerObject[] = []
  let guaranteedSend = false
  let guaranteedReceive = false
  const topics = topicsReader(input)

  for (const request of byId(registration.accessRequests)) {
    const result = topics(
      request,
      request.eventApis.flatMap((api) => api.channels),
    )
    if (!result.ok) return { ok: false, problem: `access request ${request.id}: ${result.problem}` }
    publish.push(...result.publish)
    subscribe.push(...result.subscribe)
    warnings.push(...result.warnings)
    if (request.classOfServicePolicy.messageDeliveryMode !== 'guaranteed') continue
    guaranteedSend ||= result.publish.length > 0
    guaranteedReceive ||= result.subscribe.length > 0
    for (const group of queueGroups(request)) {
      const grouped = group.eventApiId === null ? result : topics(request, group.channels)
      if (!grouped.ok) return { ok: false, problem: `access request ${request.id}: ${grouped.problem}` }
      const queue = desiredQueue(input, request, group.eventApiId, grouped.subscribe)
      if (queue !== null) queues.push(queue)
    }
  }

  const uniqueTopics = { publish: sortedUnique(publish), subscribe: sortedUnique(subscribe) }
  for (const direction of ['publish', 'subscribe'] as const) {
    const count = uniqueTopics[direction].length
    if (count > input.maxTopics) {
      const problem = `${count} ${direction} topics are more than the ${input.maxTopics} that a registration may have; narrow its filters or the enums of its Event APIs`
      return { ok: false, problem }
    }
  }

  const clientProfile = chooseClientProfile({
    guaranteedSend,
    guaranteedReceive,
    endpointCreation: input.protocols.some((protocol) => protocol.includes('mqtt')),
  })
  const acl = desiredAclProfile(registration, uniqueTopics)
  const credentials = [...registration.credentials].sort((a, b) => (a.consumerKey < b.consumerKey ? -1 : 1))
  const usernames = credentials.map((each) => desiredUsername(each, acl.name, clientProfile.name))
  queues.sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    ok: true,
    desired: {
      objects: [clientProfile, acl, ...usernames, ...queues].map(canonical),
      credentialVersions: Object.fromEntries(credentials.map((each) => [each.consumerKey, each.version])),
      warnings: [...sortedUnique(warnings)],
    },
  }
}

const byId = (requests: readonly CountedAccessRequest[]) => [...requests].sort((a, b) => (a.id < b.id ? -1 : 1))

function topicsReader(input: DesiredInput) {
  return (request: CountedAccessRequest, channels: readonly Channel[]) =>
    deriveTopics({ channels, filters: [request.filters, input.registration.filters], maxTopics: input.maxTopics })
}

function desiredAclProfile(
  registration: RegistrationOnBroker,
  topics: { readonly publish: readonly string[]; readonly subscribe: readonly string[] },
): BrokerObject {
  return {
    kind: 'aclProfile',
    name: aclProfileName(registration.registrationId),
    attributes: {
      clientConnectDefaultAction: 'allow',
      publishTopicDefaultAction: 'disallow',
      subscribeTopicDefaultAction: 'disallow',
    },
    members: {
      publishTopicExceptions: topics.publish,
      subscribeTopicExceptions: topics.subscribe,
      publishTopicExceptionsMqtt: [],
      subscribeTopicExceptionsMqtt: [],
    },
  }
}

function desiredUsername(credential: LiveCredential, aclName: string, clientProfileName: string): BrokerObject {
  return {
    kind: 'clientUsername',
    name: credential.consumerKey,
    attributes: {
      enabled: true,
      aclProfileName: aclName,
      clientProfileName,
      // Set, so that a change is drift: either would let the client past its queues' and subscriptions' permissions.
      guaranteedEndpointPermissionOverrideEnabled: false,
      subscriptionManagerEnabled: false,
    },
    members: {},
  }
}

interface QueueGroup {
  readonly eventApiId: EventApiId | null
  readonly channels: readonly Channel[]
}

function queueGroups(request: CountedAccessRequest): readonly QueueGroup[] {
  switch (request.classOfServicePolicy.queueType) {
    case 'combined':
      return [{ eventApiId: null, channels: request.eventApis.flatMap((api) => api.channels) }]
    case 'single': {
      // A product may hold two versions of one Event API: they share its queue.
      const ids = [...new Set(request.eventApis.map((api) => api.id))]
      return ids.map((eventApiId) => {
        const channels = request.eventApis.filter((api) => api.id === eventApiId).flatMap((api) => api.channels)
        return { eventApiId, channels }
      })
    }
  }
}

/** No queue without something to receive, and none before a credential can own it. */
function desiredQueue(
  input: DesiredInput,
  request: CountedAccessRequest,
  eventApi: EventApiId | null,
  subscriptions: readonly string[],
): BrokerObject | null {
  const { registration, policy } = input
  if (subscriptions.length === 0) return null
  const name = queueName({
    accountId: registration.accountId,
    registrationId: registration.registrationId,
    accessRequestId: request.id,
    ...(eventApi === null ? {} : { eventApiId: eventApi }),
    ...(policy.queuePermission === 'consume' ? { nonce: request.queueNonce } : {}),
  })
  const owner = queueOwner(registration.credentials, input.queueOwners[name])
  if (owner === null) return null
  return {
    kind: 'queue',
    name,
    attributes: { ...queueAttributes(request.classOfServicePolicy), owner, permission: policy.queuePermission },
    members: { subscriptions },
  }
}

function queueAttributes(policy: ClassOfServicePolicy): Record<string, AttributeValue> {
  const maxTtl = Math.max(0, policy.maximumTimeToLive)
  return {
    accessType: policy.accessType,
    ingressEnabled: true,
    egressEnabled: true,
    maxMsgSpoolUsage: policy.maxMsgSpoolUsage,
    maxTtl,
    respectTtlEnabled: maxTtl > 0,
  }
}

/**
 * The owner is chosen once. It stays while its credential lives, and stays known while no credential lives at all, so
 * that a queue with messages is not orphaned by a rotation that removes first.
 */
function queueOwner(credentials: readonly LiveCredential[], known: string | undefined): ConsumerKey | string | null {
  if (known !== undefined && (credentials.length === 0 || credentials.some((each) => each.consumerKey === known))) {
    return known
  }
  const [oldest] = [...credentials].sort(
    (a, b) => a.issuedAtMs - b.issuedAtMs || (a.consumerKey < b.consumerKey ? -1 : 1),
  )
  return oldest?.consumerKey ?? null
}
