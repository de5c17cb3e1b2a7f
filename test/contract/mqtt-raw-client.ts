import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { generate, type Packet, parser } from 'mqtt-packet'
import { until } from './login-fixtures.ts'

/** Says to an MQTT port what no proper client would, and keeps what comes back. */
export class MqttRawClient implements AsyncDisposable {
  readonly packets: Packet[] = []
  readonly #socket: Socket
  readonly #version: 4 | 5
  #closed = false

  private constructor(socket: Socket, version: 4 | 5) {
    this.#socket = socket
    this.#version = version
    const reader = parser({ protocolVersion: version })
    reader.on('packet', (packet) => this.packets.push(packet))
    reader.on('error', () => socket.destroy())
    socket.on('data', (chunk) => reader.parse(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#closed = true
    })
  }

  static async open(port: number, version: 4 | 5 = 4): Promise<MqttRawClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new MqttRawClient(socket, version)
  }

  send(data: Packet | readonly number[] | Buffer): void {
    if (Buffer.isBuffer(data)) this.#socket.write(data)
    else if ('cmd' in data) this.#socket.write(generate(data, { protocolVersion: this.#version }))
    else this.#socket.write(Buffer.from(data))
  }

  /** Reads nothing more. */
  pause(): void {
    this.#socket.pause()
  }

  /** Nothing more comes from this side. */
  finish(): void {
    this.#socket.end()
  }

  /** The first packet of a kind; waits for it. */
  async packet<Command extends Packet['cmd']>(cmd: Command): Promise<Packet & { cmd: Command }> {
    const isIt = (packet: Packet): packet is Packet & { cmd: Command } => packet.cmd === cmd
    await until(() => this.packets.some(isIt))
    const found = this.packets.find(isIt)
    if (found === undefined) throw new Error('expected a packet')
    return found
  }

  async closed(): Promise<void> {
    await until(() => this.#closed)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
    await this.closed()
  }
}
