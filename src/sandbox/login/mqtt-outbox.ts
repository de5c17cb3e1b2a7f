import type { MqttWire } from './mqtt-wire.ts'
import type { RoutedMessage } from './topic-router.ts'

/** Messages that may wait for an acknowledgement, whatever more the client offers. */
const MAX_UNACKNOWLEDGED = 255
const MAX_WAITING = 1_000
const MAX_MESSAGE_ID = 65_535

export interface MqttOutboxOptions {
  /** Of MQTT 5; as many as there are ids in 3.1.1. */
  readonly receiveMaximum: number
  /** A message that makes a larger packet is dropped (MQTT 5, 3.1.2.11.4). */
  readonly maximumPacketSize: number
}

/** The messages on their way to one client; QoS 1 ones keep a window, and nothing is sent twice. */
export class MqttOutbox {
  readonly #wire: MqttWire
  readonly #window: number
  readonly #maximumPacketSize: number
  readonly #unacknowledged = new Set<number>()
  readonly #waiting: RoutedMessage[] = []
  #lastId = 0

  constructor(wire: MqttWire, { receiveMaximum, maximumPacketSize }: MqttOutboxOptions) {
    this.#wire = wire
    this.#window = Math.min(receiveMaximum, MAX_UNACKNOWLEDGED)
    this.#maximumPacketSize = maximumPacketSize
  }

  /** False when too many messages wait: the client does not keep up. */
  put(message: RoutedMessage, qos: 0 | 1): boolean {
    if (qos === 0) {
      this.#send(message, 0)
    } else if (this.#unacknowledged.size < this.#window) {
      this.#sendGuaranteed(message)
    } else {
      if (this.#waiting.length >= MAX_WAITING) return false
      this.#waiting.push(message)
    }
    return true
  }

  /** False when the id is not one that waits. */
  acknowledge(messageId: number): boolean {
    if (!this.#unacknowledged.delete(messageId)) return false
    const next = this.#waiting.shift()
    if (next !== undefined) this.#sendGuaranteed(next)
    return true
  }

  #sendGuaranteed(message: RoutedMessage): void {
    do this.#lastId = (this.#lastId % MAX_MESSAGE_ID) + 1
    while (this.#unacknowledged.has(this.#lastId))
    if (this.#send(message, 1)) this.#unacknowledged.add(this.#lastId)
  }

  #send({ topic, payload, properties }: RoutedMessage, qos: 0 | 1): boolean {
    return this.#wire.send(
      {
        cmd: 'publish',
        topic,
        payload,
        qos,
        dup: false,
        retain: false,
        ...(qos === 1 ? { messageId: this.#lastId } : {}),
        ...(this.#wire.protocolVersion === 5 ? { properties: { ...properties } } : {}),
      },
      this.#maximumPacketSize,
    )
  }
}
