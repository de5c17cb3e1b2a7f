import type { ISubscribePacket, ISubscription } from 'mqtt-packet'
import { REASONS } from './mqtt-reasons.ts'
import { type FilterProblem, filterProblem, parentOf } from './mqtt-topics.ts'
import { fromMqtt } from './topic-access.ts'
import { reaches } from './topic-router.ts'

const MAX_SUBSCRIPTIONS = 10_000
/** A SUBACK of MQTT 3.1.1 has one word for all refusals. */
const FAILURE = 0x80

interface Subscription {
  /** In SMF syntax. */
  readonly filters: readonly string[]
  readonly qos: 0 | 1
  /** The client does not want what it publishes itself. */
  readonly noLocal: boolean
}

/** The reason code that a SUBSCRIBE ends its connection with, or null. */
export function subscribeProblem(packet: ISubscribePacket, protocolVersion: 4 | 5): number | null {
  if ((packet.messageId ?? 0) < 1) return REASONS.malformedPacket
  if (packet.subscriptions.length === 0) return REASONS.protocolError
  if (packet.properties?.subscriptionIdentifier !== undefined) return REASONS.subscriptionIdsNotSupported
  // Only MQTT 5 can say of one filter that it makes no sense.
  const isFatal = (problem: FilterProblem | null) =>
    problem === 'too-long' || (problem === 'malformed' && protocolVersion === 4)
  return packet.subscriptions.some(({ topic }) => isFatal(filterProblem(topic))) ? REASONS.topicFilterInvalid : null
}

/** What one client has subscribed to. As on Solace brokers, QoS 2 is granted as 1. */
export class MqttSubscriptions {
  /** By the filter as the client wrote it. */
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #protocolVersion: 4 | 5
  readonly #isAllowed: (filter: string) => boolean

  /** `isAllowed` takes a filter in SMF syntax. */
  constructor(protocolVersion: 4 | 5, isAllowed: (filter: string) => boolean) {
    this.#protocolVersion = protocolVersion
    this.#isAllowed = isAllowed
  }

  /** The granted QoS, or the code of a refusal. */
  add({ topic, qos, nl }: ISubscription): number {
    const refusal = this.#refusalOf(topic)
    if (refusal !== null) return this.#protocolVersion === 5 ? refusal : FAILURE
    const parent = parentOf(topic)
    const filters = [topic, ...(parent === null ? [] : [parent])].map(fromMqtt).filter(this.#isAllowed)
    const granted = qos === 0 ? 0 : 1
    this.#subscriptions.set(topic, { filters, qos: granted, noLocal: nl === true })
    return granted
  }

  /** False when there is none. */
  remove(topic: string): boolean {
    return this.#subscriptions.delete(topic)
  }

  /** The QoS to deliver with, the highest of all subscriptions that reach the topic; null when none does. */
  qosFor(topic: string, isOwn: boolean): 0 | 1 | null {
    let highest: 0 | 1 | null = null
    for (const { filters, qos, noLocal } of this.#subscriptions.values()) {
      if (noLocal && isOwn) continue
      if (filters.some((filter) => reaches(filter, topic))) highest = highest === 1 ? 1 : qos
    }
    return highest
  }

  #refusalOf(topic: string): number | null {
    const problem = filterProblem(topic)
    if (problem === 'shared') return REASONS.sharedSubscriptionsNotSupported
    if (problem !== null) return REASONS.topicFilterInvalid
    if (!this.#isAllowed(fromMqtt(topic))) return REASONS.notAuthorized
    const isNew = !this.#subscriptions.has(topic)
    return isNew && this.#subscriptions.size >= MAX_SUBSCRIPTIONS ? REASONS.quotaExceeded : null
  }
}
