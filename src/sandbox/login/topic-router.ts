import type { MsgVpnAccess } from './msg-vpn-access.ts'
import { matches } from './topic-access.ts'

/** What a message says beside its payload; the names are MQTT's. */
export interface MessageProperties {
  readonly contentType?: string
  readonly responseTopic?: string
  readonly correlationData?: Buffer
  readonly payloadFormatIndicator?: boolean
  readonly userProperties?: Readonly<Record<string, string | string[]>>
}

export interface RoutedMessage {
  /** In SMF syntax. */
  readonly topic: string
  readonly payload: Buffer
  /** To be delivered at least once rather than at most once. */
  readonly guaranteed: boolean
  readonly properties: MessageProperties
  readonly publisher: Subscriber | null
}

/** A client that may receive messages; it knows its own filters. */
export interface Subscriber {
  /** True when one of its filters reaches the topic. Must not throw. */
  deliver(message: RoutedMessage): boolean
}

/** Hands messages to the clients of one message VPN that are connected now, whatever protocol they speak. Nothing is kept. */
export class TopicRouter {
  readonly #subscribers = new Set<Subscriber>()

  join(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber)
  }

  leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber)
  }

  /** How many clients it went to. */
  publish(message: RoutedMessage): number {
    let count = 0
    for (const subscriber of this.#subscribers) if (subscriber.deliver(message)) count += 1
    return count
  }
}

const routers = new WeakMap<MsgVpnAccess, TopicRouter>()

/** The one router of a message VPN. */
export function routerOf(msgVpn: MsgVpnAccess): TopicRouter {
  let router = routers.get(msgVpn)
  if (router === undefined) {
    router = new TopicRouter()
    routers.set(msgVpn, router)
  }
  return router
}

/**
 * Whether a filter, in SMF syntax, brings a message to its subscriber. A wildcard in the first level does not reach
 * what a broker keeps for itself: topics that begin with `$` (MQTT 3.1.1, 4.7.2) or `#`.
 */
export function reaches(filter: string, topic: string): boolean {
  return matches(filter, topic) && !(/^[$#]/.test(topic) && /^(?:\*|>$)/.test(filter))
}
