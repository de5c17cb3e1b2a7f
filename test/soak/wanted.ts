import type { ClassOfServicePolicy } from '../../src/domain/catalogue.ts'
import { queueName } from '../../src/domain/names.ts'

/** One broker object as the life so far asks for it; written down apart from the service's own rules. */
export interface Wanted {
  readonly kind: WantedKind
  readonly name: string
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** By collection, each sorted; `smf,a/b` for exceptions. */
  readonly members: Readonly<Record<string, readonly string[]>>
  /** The password of a client username. */
  readonly secret?: string
  /** Any of these owns the queue: which one depends on what a broker saw first. */
  readonly owners?: readonly string[]
  /** It may be missing: who could own it is not there. */
  readonly optional?: true
}
export type WantedKind = 'clientUsername' | 'aclProfile' | 'clientProfile' | 'queue'

export interface EventApiTopics {
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
}

/** What somebody has access to on a broker, with everything that was looked up. */
export interface Granted {
  readonly accessRequestId: string
  readonly policy: ClassOfServicePolicy
  readonly eventApis: readonly { readonly id: string; readonly topics: EventApiTopics }[]
}

export interface Client {
  readonly accountId: string
  readonly registrationId: string
  readonly granted: readonly Granted[]
  readonly credentials: readonly { readonly key: string; readonly secret: string }[]
}

const sort = (texts: Iterable<string>): readonly string[] => [...new Set(texts)].sort()

/** All that one registration should have on a broker that clients reach over MQTT, the shared client profile included. */
export function wantedOf({ accountId, registrationId, granted, credentials }: Client): readonly Wanted[] {
  if (granted.length === 0) return []
  const profile = clientProfileOf(granted)
  const all = granted.flatMap(({ eventApis }) => eventApis.map(({ topics }) => topics))
  const aclProfile: Wanted = {
    kind: 'aclProfile',
    name: registrationId,
    attributes: {
      clientConnectDefaultAction: 'allow',
      publishTopicDefaultAction: 'disallow',
      subscribeTopicDefaultAction: 'disallow',
    },
    members: {
      publishTopicExceptions: sort(all.flatMap(({ publish }) => publish.map((topic) => `smf,${topic}`))),
      subscribeTopicExceptions: sort(all.flatMap(({ subscribe }) => subscribe.map((topic) => `smf,${topic}`))),
    },
  }
  const usernames = credentials.map(
    ({ key, secret }): Wanted => ({
      kind: 'clientUsername',
      name: key,
      attributes: {
        enabled: true,
        aclProfileName: registrationId,
        clientProfileName: profile.name,
        guaranteedEndpointPermissionOverrideEnabled: false,
        subscriptionManagerEnabled: false,
      },
      members: {},
      secret,
    }),
  )
  const owners = credentials.map(({ key }) => key).sort()
  const queues = granted.flatMap((grant) => queuesOf({ accountId, registrationId, owners }, grant))
  return [profile, aclProfile, ...usernames, ...queues]
}

function clientProfileOf(granted: readonly Granted[]): Wanted {
  const guaranteed = granted.filter(({ policy }) => policy.messageDeliveryMode === 'guaranteed')
  const some = (way: keyof EventApiTopics): boolean =>
    guaranteed.some(({ eventApis }) => eventApis.some(({ topics }) => topics[way].length > 0))
  const [send, receive] = [some('publish'), some('subscribe')]
  const words = [...(send ? ['send'] : []), ...(receive ? ['receive', 'create'] : [])]
  return {
    kind: 'clientProfile',
    name: `keymesh-${words.length === 0 ? 'direct' : words.join('-')}`,
    attributes: {
      allowGuaranteedMsgSendEnabled: send,
      allowGuaranteedMsgReceiveEnabled: receive,
      allowGuaranteedEndpointCreateEnabled: receive,
      allowTransactedSessionsEnabled: send || receive,
      allowBridgeConnectionsEnabled: false,
    },
    members: {},
  }
}

function queuesOf(
  owner: { readonly accountId: string; readonly registrationId: string; readonly owners: readonly string[] },
  { accessRequestId, policy, eventApis }: Granted,
): readonly Wanted[] {
  const { accountId, registrationId, owners } = owner
  if (policy.messageDeliveryMode !== 'guaranteed') return []
  const ids = { accountId, registrationId, accessRequestId }
  const groups =
    policy.queueType === 'combined'
      ? [{ name: queueName(ids), apis: eventApis }]
      : eventApis.map((api) => ({ name: queueName({ ...ids, eventApiId: api.id }), apis: [api] }))
  return groups.flatMap(({ name, apis }): readonly Wanted[] => {
    const subscriptions = sort(apis.flatMap(({ topics }) => topics.subscribe))
    if (subscriptions.length === 0) return []
    return [
      {
        kind: 'queue',
        name,
        attributes: {
          accessType: policy.accessType,
          permission: 'no-access',
          ingressEnabled: true,
          egressEnabled: true,
          maxMsgSpoolUsage: policy.maxMsgSpoolUsage,
          maxTtl: policy.maximumTimeToLive,
          respectTtlEnabled: policy.maximumTimeToLive > 0,
        },
        members: { subscriptions },
        ...(owners.length === 0 ? { optional: true } : { owners }),
      },
    ]
  })
}
