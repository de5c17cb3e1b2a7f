import type { Duplex } from 'node:stream'
import { generate, type Packet, parser, writeToStream } from 'mqtt-packet'

/** How long a client that was sent away may take to hear it and leave. */
const GOODBYE_TIMEOUT_MS = 1_000

// The library would keep a buffer for each of 65,536 numbers.
writeToStream.cacheNumbers = false

export interface MqttLimits {
  /** From the connection to its CONNECT packet. */
  readonly connectTimeoutMs: number
  readonly maxPacketBytes: number
  /** What a client may leave unread before it is cut off. */
  readonly maxUnreadBytes: number
}

export interface MqttWireEvents {
  onPacket(packet: Packet): void
  onMalformed(): void
  onTooLarge(): void
  /** Called once, whoever closed. */
  onClose(): void
}

/** MQTT packets over a stream of bytes. */
export class MqttWire {
  /** Of the CONNECT packet: it says how all others are written. */
  protocolVersion: 4 | 5 = 4
  readonly #stream: Duplex
  readonly #limits: MqttLimits
  readonly #events: MqttWireEvents
  readonly #parser = parser()
  #ended = false
  #goodbye: NodeJS.Timeout | undefined

  constructor(stream: Duplex, limits: MqttLimits, events: MqttWireEvents) {
    this.#stream = stream
    this.#limits = limits
    this.#events = events
    this.#parser.on('packet', (packet) => {
      if (!this.#ended) events.onPacket(packet)
    })
    this.#parser.on('error', () => {
      if (!this.#ended) events.onMalformed()
    })
    stream.on('data', (chunk: Buffer) => this.#receive(chunk))
    stream.on('error', () => stream.destroy())
    // A WebSocket's stream would stay open to write after its client has gone.
    stream.on('end', () => stream.destroy())
    stream.on('close', () => {
      this.#ended = true
      clearTimeout(this.#goodbye)
      events.onClose()
    })
  }

  /** False when nothing was sent: the packet is larger than the client takes, or holds what cannot be written. */
  send(packet: Packet, maxBytes = Number.POSITIVE_INFINITY): boolean {
    if (this.#ended || !this.#stream.writable) return false
    const bytes = this.#encode(packet)
    if (bytes === null || bytes.length > maxBytes) return false
    this.#stream.write(bytes)
    if (this.#stream.writableLength > this.#limits.maxUnreadBytes) this.#stream.destroy()
    return true
  }

  /** Closes the connection when what was sent is out; nothing more is read. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#stream.end()
    this.#goodbye = setTimeout(() => this.#stream.destroy(), GOODBYE_TIMEOUT_MS)
  }

  /** The library reads properties that it refuses to write. */
  #encode(packet: Packet): Buffer | null {
    try {
      return generate(packet, { protocolVersion: this.protocolVersion })
    } catch {
      return null
    }
  }

  /** What comes after the end is read and thrown away: a reset would take our last words from the client. */
  #receive(chunk: Buffer): void {
    if (this.#ended) return
    try {
      const unread = this.#parser.parse(chunk)
      if (unread > this.#limits.maxPacketBytes && !this.#ended) this.#events.onTooLarge()
    } catch {
      if (!this.#ended) this.#events.onMalformed()
    }
  }
}
