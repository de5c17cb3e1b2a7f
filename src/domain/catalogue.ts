import type { AccountId, BrokerId, EventApiId, ProductId } from './ids.ts'

/** The eleven protocols of the specification, section 2.1. */
export const PROTOCOLS = [
  'smfc',
  'smf',
  'smfs',
  'amqp',
  'amqps',
  'mqtt',
  'secure-mqtt',
  'mqttws',
  'secure-mqttws',
  'http',
  'https',
] as const
export type Protocol = (typeof PROTOCOLS)[number]

export const isProtocol = (text: string): text is Protocol => PROTOCOLS.some((protocol) => protocol === text)

export interface ProtocolEndpoint {
  readonly protocol: Protocol
  readonly port: number
}

/** How much Keymesh may change on a broker. */
export const POLICY_MODES = ['observe-only', 'create-only', 'full'] as const
export type PolicyMode = (typeof POLICY_MODES)[number]

/** What happens to a broker object that has a name we want and is not in the ledger. */
export const ADOPTIONS = ['never', 'identical', 'always'] as const
export type Adoption = (typeof ADOPTIONS)[number]

/** Whether an action that drops live clients runs by itself. */
export const DISRUPTIVE_POLICIES = ['allow', 'window', 'manual'] as const
export type DisruptivePolicy = (typeof DISRUPTIVE_POLICIES)[number]

export interface BrokerPolicy {
  readonly mode: PolicyMode
  readonly adopt: Adoption
  readonly disruptive: DisruptivePolicy
  /** Daily window in UTC for `disruptive: window`; minutes since midnight, half-open, may wrap. */
  readonly window: { readonly fromMinute: number; readonly toMinute: number } | null
  /** Registrations that may be withdrawn from the broker at once before a person is asked. */
  readonly maxWithdrawals: number
  /** The same as a percentage of the registrations on the broker; counts from `maxWithdrawals` up. */
  readonly maxWithdrawalsPercent: number
  /** `delete` removes a withdrawn queue even when it holds messages. */
  readonly queuesWithMessages: 'keep' | 'delete'
  /** `consume` lets every client of the message VPN that knows the name read from a queue. */
  readonly queuePermission: 'no-access' | 'consume'
}

export const DEFAULT_BROKER_POLICY: BrokerPolicy = {
  mode: 'full',
  adopt: 'never',
  disruptive: 'manual',
  window: null,
  maxWithdrawals: 10,
  maxWithdrawalsPercent: 30,
  queuesWithMessages: 'keep',
  queuePermission: 'no-access',
}

/** SEMP settings of a broker, without the password, which the store keeps sealed. */
export interface ManagementSettings {
  readonly url: string
  readonly msgVpnName: string
  readonly username: string
  /** PEM certificates that the broker's TLS certificate must chain to. */
  readonly caCertificate?: string
  readonly maxConcurrentRequests: number
  /** No limit when absent. */
  readonly maxRequestsPerSecond?: number
  readonly requestTimeoutMs: number
}

export interface MessagingSettings {
  readonly host: string
  readonly protocols: readonly ProtocolEndpoint[]
  /** PEM certificates of the messaging listeners, where they differ from the system's. */
  readonly caCertificate?: string
  readonly logins?: LoginSettings
}

/** How Keymesh proves credentials on a broker by logging in. */
export interface LoginSettings {
  readonly off: 'all' | readonly Protocol[]
  readonly maxPerSecond: number
  readonly maxConcurrent: number
}

export const DEFAULT_LOGIN_SETTINGS: LoginSettings = { off: [], maxPerSecond: 100, maxConcurrent: 16 }

export interface Broker {
  readonly accountId: AccountId
  readonly id: BrokerId
  readonly name: string
  readonly kind: 'solace'
  readonly eventMeshId: string | null
  readonly management: ManagementSettings | null
  readonly messaging: MessagingSettings | null
  readonly policy: BrokerPolicy
}

/** `client`: the document describes what clients of the API do (AsyncAPI 2.x); `provider`: what the provider does. */
export type Viewpoint = 'client' | 'provider'

/** One channel of an Event API, already in the client's view. */
export interface Channel {
  /** The channel name with its `{parameter}`s. */
  readonly name: string
  readonly clientMayPublish: boolean
  readonly clientMaySubscribe: boolean
  /** Values of a parameter's enum; absent when the parameter is unbound. */
  readonly parameterEnums: Readonly<Record<string, readonly string[]>>
}

export interface EventApi {
  readonly id: EventApiId
  readonly version: string
  readonly name: string
  readonly displayName: string
  readonly description: string
  readonly channels: readonly Channel[]
}

export interface ClassOfServicePolicy {
  readonly messageDeliveryMode: 'direct' | 'guaranteed'
  readonly accessType: 'exclusive' | 'non-exclusive'
  readonly queueType: 'combined' | 'single'
  /** Seconds; 0 or -1: messages do not expire. */
  readonly maximumTimeToLive: number
  /** MB. 0 switches the broker's quota off and is refused unless `unlimitedMsgSpoolUsage` says so. */
  readonly maxMsgSpoolUsage: number
}

export interface Plan {
  readonly id: string
  readonly name: string
  readonly classOfServicePolicy: ClassOfServicePolicy
}

export type ProductState = 'DRAFT' | 'RELEASED' | 'DEPRECATED' | 'RETIRED' | 'DELETED'

export interface ProductVersionKey {
  readonly productId: ProductId
  readonly version: string
}
