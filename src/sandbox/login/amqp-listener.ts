import type { Buffer } from 'node:buffer'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import rhea, { type Connection, type Container, type EventContext } from 'rhea'
import type { ConnectedClient } from '../account-table.ts'
import type { StartListener } from './listener.ts'
import type { AccessOutcome, MsgVpnAccess } from './msg-vpn-access.ts'
import { openPort } from './open-port.ts'

/** From the connection to the open of AMQP, as for a client that never logs in. */
const LOGIN_TIMEOUT_MS = 10_000
/** For a client to answer a close. */
const GOODBYE_MS = 1000
/** More than any login needs; the library would keep a frame of any length. */
const MAX_LOGIN_BYTES = 65_536

interface Refusal {
  readonly condition: string
  readonly description: string
}

/**
 * SASL has one outcome for everything that is wrong with a username and its password. What is wrong with something
 * else needs a text, and the first frame that has room for one is the close after the open, with a condition of AMQP
 * 1.0, 2.8.15; which of them a real broker takes is not documented.
 */
const REFUSED_AFTER_OPEN: Readonly<Partial<Record<AccessOutcome, Refusal>>> = {
  'msg-vpn-shutdown': { condition: 'amqp:not-allowed', description: 'Message VPN Unavailable' },
  'connect-denied': { condition: 'amqp:unauthorized-access', description: 'Forbidden' },
  'too-many-connections': { condition: 'amqp:resource-limit-exceeded', description: 'Too Many Clients' },
}

const NO_BASIC_AUTHENTICATION: AccessOutcome = 'basic-authentication-shutdown'

/** What the library asks of the server's side of a SASL mechanism. */
interface Mechanism {
  outcome: boolean | undefined
  username: string | undefined
  start(response: Buffer | null | undefined): void
}

/** AMQP 1.0: SASL PLAIN; links that publish to topics, whose messages are dropped. */
export const startAmqpListener: StartListener = async ({ protocol, host, port, tls, msgVpn }) => {
  const sessions = new Set<AmqpSession>()
  const onClient = (socket: Socket): void => {
    const session = new AmqpSession(socket, msgVpn)
    sessions.add(session)
    socket.on('close', () => sessions.delete(session))
  }
  const server = tls === null ? createServer(onClient) : createTlsServer({ ...tls }, onClient)
  const open = await openPort(server, { host, port })
  return {
    protocol,
    port: open.port,
    async close() {
      for (const session of sessions) session.destroy()
      await open.close()
    },
  }
}

class AmqpSession {
  readonly #socket: Socket
  readonly #msgVpn: MsgVpnAccess
  readonly #connection: Connection
  /** Undefined until SASL has ended. */
  #outcome: AccessOutcome | undefined
  #clientUsername = ''
  #client: ConnectedClient | null = null
  #receivedBytes = 0
  #timer: NodeJS.Timeout

  constructor(socket: Socket, msgVpn: MsgVpnAccess) {
    this.#socket = socket
    this.#msgVpn = msgVpn
    this.#timer = setTimeout(() => this.destroy(), LOGIN_TIMEOUT_MS)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('close', () => this.#onClose())
    socket.on('data', (chunk: Buffer) => this.#countUntilOpen(chunk))
    // One container for a connection: the mechanisms that it offers depend on the message VPN at that time.
    const container = rhea.create_container({ id: 'keymesh-sandbox' })
    container.sasl_server_mechanisms = this.#mechanisms()
    this.#listen(container)
    this.#connection = container.create_connection(connectionOptions(socket))
    this.#connection.accept(socket)
  }

  destroy(): void {
    // With an error, since the library stops its timers on `end` and `error` only.
    this.#socket.destroy(new Error('The sandbox closes the connection'))
  }

  /** Without a prototype, whose names a client could ask for. */
  #mechanisms(): Record<string, () => Mechanism> {
    const isPlain = this.#msgVpn.login('', '') !== NO_BASIC_AUTHENTICATION
    const offered: Record<string, () => Mechanism> = isPlain
      ? { PLAIN: () => this.#plain() }
      : { ANONYMOUS: () => this.#anonymous() }
    return Object.assign(Object.create(null), offered)
  }

  #plain(): Mechanism {
    const mechanism: Mechanism = {
      outcome: undefined,
      username: undefined,
      start: (response) => {
        const [, username = '', password = ''] = (response?.toString('utf8') ?? '').split('\0')
        this.#clientUsername = username
        this.#outcome = this.#msgVpn.login(username, password)
        mechanism.outcome = this.#outcome === 'accepted' || this.#outcome in REFUSED_AFTER_OPEN
        mechanism.username = username
        // After the outcome is written.
        if (!mechanism.outcome) setImmediate(() => this.#socket.end())
      },
    }
    return mechanism
  }

  /** A message VPN without basic authentication lets everyone in, as its default client username. */
  #anonymous(): Mechanism {
    const mechanism: Mechanism = {
      outcome: undefined,
      username: undefined,
      start: () => {
        this.#clientUsername = 'default'
        this.#outcome = 'accepted'
        mechanism.outcome = true
        mechanism.username = this.#clientUsername
      },
    }
    return mechanism
  }

  #listen(container: Container): void {
    container.on('connection_open', () => this.#onOpen())
    container.on('receiver_open', (context: EventContext) => this.#onPublisher(context))
    container.on('sender_open', ({ sender }: EventContext) => {
      sender?.close({ condition: 'amqp:not-implemented', description: 'The sandbox delivers no messages' })
    })
    // Without listeners the library throws, or prints what it received.
    for (const event of ['protocol_error', 'error']) container.on(event, () => this.destroy())
    for (const event of ['connection', 'session', 'sender', 'receiver']) {
      container.on(`${event}_error`, () => {})
      container.on(`${event}_close`, () => {})
    }
    container.on('disconnected', () => {})
  }

  #onOpen(): void {
    clearTimeout(this.#timer)
    const refusal = this.#outcome === undefined ? undefined : REFUSED_AFTER_OPEN[this.#outcome]
    if (refusal !== undefined) {
      this.#leave(refusal)
      return
    }
    this.#client = this.#msgVpn.connect(this.#clientUsername, () =>
      this.#leave({ condition: 'amqp:connection:forced', description: 'The broker disconnected the client' }),
    )
  }

  #onPublisher({ receiver }: EventContext): void {
    const address = receiver?.target?.address ?? ''
    const topic = address.replace(/^topic:\/\//, '')
    if (topic === '' || topic.startsWith('queue://')) {
      receiver?.close({ condition: 'amqp:not-implemented', description: 'The sandbox takes messages for topics' })
    } else if (!this.#msgVpn.allows(this.#clientUsername, 'publish', topic)) {
      receiver?.close({ condition: 'amqp:unauthorized-access', description: 'Publish ACL Denied' })
    } else {
      receiver?.set_target({ address })
    }
  }

  #leave(refusal: Refusal): void {
    this.#connection.close(refusal)
    this.#timer = setTimeout(() => this.destroy(), GOODBYE_MS)
  }

  #countUntilOpen(chunk: Buffer): void {
    if (this.#client !== null) return
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > MAX_LOGIN_BYTES) this.destroy()
  }

  #onClose(): void {
    clearTimeout(this.#timer)
    if (this.#client !== null) this.#msgVpn.disconnect(this.#client)
    this.#client = null
  }
}

const connectionOptions = (socket: Socket) => ({
  port: socket.localPort ?? 0,
  reconnect: false,
  // Missing in the library's types. Without it who leaves SASL out is let in as anonymous.
  require_sasl: true,
  max_frame_size: MAX_LOGIN_BYTES,
})
