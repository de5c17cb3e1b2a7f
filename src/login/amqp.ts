import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { connect as connectInClearText, type Socket } from 'node:net'
import { connect as connectWithTls } from 'node:tls'
import rhea, { type Connection, type EventContext } from 'rhea'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget, ProbeLimits } from '../reconcile/login-port.ts'
import { fromBrokerWords, quoted } from './broker-words.ts'
import { atDeadline, TIMED_OUT } from './deadline.ts'
import { networkFailure } from './network-failure.ts'
import { tlsClientOptions } from './tls-client-options.ts'

/** How long an open connection is watched: a broker that refuses after SASL opens, and closes with its reason. */
const GRACE_MS = 100
/** For the broker's answer to our close. */
const GOODBYE_MS = 500
/** More than any login needs; the library would keep a frame of any length in memory. */
const MAX_RECEIVED_BYTES = 65_536

const NOTHING = Buffer.alloc(0)
const ACCEPTED: Verdict = { outcome: 'accepted' }
const CLOSED = notVerified('closed', 'The connection was closed before the login was answered.')
const NOT_AMQP = notVerified('protocol', 'The port does not speak AMQP 1.0 with SASL.')

/** The library can print every frame, and one of them holds the password. */
const printers: Readonly<Record<'frames' | 'raw', { enabled: boolean }>> = createRequire(import.meta.url)(
  'rhea/lib/log.js',
)
printers.frames.enabled = false
printers.raw.enabled = false

/** AMQP 1.0, protocols `amqp` and `amqps`: SASL PLAIN, open, close. */
export function createAmqpLogin(): LoginPort {
  return {
    async probe(target, attempt, limits) {
      const problem = inputProblem(attempt)
      if (problem !== null) return notVerified('bad-input', problem)
      return new AmqpProbe(target, attempt).run(limits)
    },
  }
}

/** An empty one would make clients log in as anonymous, which proves nothing. */
function inputProblem({ username, password }: LoginAttempt): string | null {
  const secret = password.reveal()
  if (username === '') return 'The username is empty.'
  if (secret === '') return 'The password is empty.'
  return `${username}${secret}`.includes('\0') ? 'SASL PLAIN takes no NUL in a username or password.' : null
}

class AmqpProbe {
  readonly #target: LoginTarget
  readonly #attempt: LoginAttempt
  readonly #connection: Connection
  #stage: 'login' | 'open' | 'goodbye' = 'login'
  #hasSentPassword = false
  #receivedBytes = 0
  #socket: Socket | null = null
  #timer: NodeJS.Timeout | undefined
  #end: (verdict: Verdict) => void = () => {}

  constructor(target: LoginTarget, attempt: LoginAttempt) {
    this.#target = target
    this.#attempt = attempt
    // A broker takes the container's id as the client's name, which must not be in use.
    const container = rhea.create_container({ id: `keymesh-probe-${randomUUID()}` })
    container.on('error', () => this.#end(NOT_AMQP))
    const options = {
      hostname: target.host,
      host: target.host,
      port: target.port,
      reconnect: false,
      // Missing in the library's types.
      sasl_mechanisms: this.#mechanisms(),
      connection_details: () => ({
        host: target.host,
        port: target.port,
        connect: (_port: number, _host: string, _options: unknown, onConnected: () => void) => this.#dial(onConnected),
      }),
    }
    this.#connection = container.create_connection(options)
    this.#connection.on('connection_open', () => this.#onOpen())
    this.#connection.on('connection_error', (context: EventContext) => this.#end(this.#refusal(context.error)))
    this.#connection.on('connection_close', () => this.#onClose())
    this.#connection.on('disconnected', (context: EventContext) => this.#onDisconnected(context.error))
    // Dispatched with the error itself; without a listener the library prints what it received, or throws.
    this.#connection.on('protocol_error', () => this.#end(NOT_AMQP))
    this.#connection.on('error', () => this.#end(NOT_AMQP))
  }

  run(limits: ProbeLimits): Promise<Verdict> {
    return new Promise((resolve) => {
      const callOff = atDeadline(limits, () => this.#end(this.#stage === 'goodbye' ? ACCEPTED : TIMED_OUT))
      this.#end = (verdict) => {
        this.#end = () => {}
        clearTimeout(this.#timer)
        callOff()
        const socket = this.#socket
        if (socket === null || socket.closed) return resolve(verdict)
        socket.once('close', () => resolve(verdict))
        // With an error, since the library stops its timers on `end` and `error` only.
        socket.destroy(new Error('The probe is over'))
      }
      try {
        this.#connection.connect()
      } catch (error) {
        this.#end(networkFailure(error))
      }
    })
  }

  /** PLAIN and nothing else, whatever the broker offers. Without a prototype, which has names to offer as well. */
  #mechanisms(): Record<string, () => object> {
    const { username, password } = this.#attempt
    const plain = {
      start: (callback: (problem: unknown, response: Buffer) => void): void => {
        this.#hasSentPassword = true
        callback(undefined, Buffer.from(`\0${username}\0${password.reveal()}`, 'utf8'))
      },
      step: (_challenge: unknown, callback: (problem: string) => void): void => callback('unexpected'),
    }
    return Object.assign(Object.create(null), { PLAIN: () => plain })
  }

  #dial(onConnected: () => void): Socket {
    const { protocol, host, port } = this.#target
    const socket =
      protocol === 'amqps'
        ? connectWithTls({ host, port, ...tlsClientOptions(this.#target) }, onConnected)
        : connectInClearText({ host, port }, onConnected)
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#receivedBytes += chunk.length
      if (this.#receivedBytes > MAX_RECEIVED_BYTES) this.#end(NOT_AMQP)
      // What came together with SASL's last frame waits in the library until it is called again.
      process.nextTick(() => {
        if (!socket.destroyed) this.#connection.input(NOTHING)
      })
    })
    return socket
  }

  #onOpen(): void {
    if (!this.#hasSentPassword) {
      this.#end(NOT_AMQP)
      return
    }
    this.#stage = 'open'
    this.#timer = setTimeout(() => {
      this.#stage = 'goodbye'
      this.#connection.close()
      this.#timer = setTimeout(() => this.#end(ACCEPTED), GOODBYE_MS)
    }, GRACE_MS)
  }

  /** Comes after `connection_error` as well, when the end is already decided. */
  #onClose(): void {
    this.#end(
      this.#stage === 'goodbye' ? ACCEPTED : notVerified('closed', 'The broker opened the connection and closed it.'),
    )
  }

  #onDisconnected(error: unknown): void {
    const failure = () => (error === undefined ? CLOSED : networkFailure(error))
    this.#end(this.#stage === 'goodbye' ? ACCEPTED : failure())
  }

  #refusal(error: unknown): Verdict {
    const condition = textOf(error, 'condition')
    const description = textOf(error, 'description')
    if (this.#stage === 'login') return saslRefusal(description)
    return fromBrokerWords(description) ?? this.#closeRefusal(condition, description)
  }

  /**
   * The conditions of AMQP 1.0, 2.8.15 and 2.8.16, on a connection whose SASL outcome was good: none of them is about
   * the password.
   */
  #closeRefusal(condition: string, description: string): Verdict {
    const said = `${condition}${quoted(description, this.#attempt)}`
    switch (condition) {
      case 'amqp:not-allowed':
      case 'amqp:unauthorized-access':
        return { outcome: 'denied', detail: `The login is good; the broker then closed with ${said}.` }
      case 'amqp:resource-limit-exceeded':
      case 'amqp:connection:forced':
        return { outcome: 'busy', detail: `The broker opened the connection and closed it with ${said}.` }
      case 'amqp:not-implemented':
      case 'amqp:decode-error':
      case 'amqp:invalid-field':
      case 'amqp:frame-size-too-small':
      case 'amqp:connection:framing-error':
        return notVerified('protocol', `The broker closed the connection with ${said}.`)
      default:
        return notVerified(
          'unknown',
          `The broker closed the connection${quoted(`${condition} ${description}`, this.#attempt)}.`,
        )
    }
  }
}

/**
 * What the library makes of SASL's end: the outcome's number is in the text alone, and its condition is the same for a
 * wrong password and for a broker that does not ask for one.
 */
function saslRefusal(description: string): Verdict {
  if (description.startsWith('No suitable mechanism')) {
    return notVerified('authentication-type', 'The broker offers no login with a password (SASL PLAIN).')
  }
  switch (description) {
    case 'Failed to authenticate: 1':
      return { outcome: 'rejected', detail: 'The broker refused the username or the password (SASL outcome 1).' }
    case 'Failed to authenticate: 4':
      return { outcome: 'busy', detail: 'The broker cannot check logins at the moment (SASL outcome 4).' }
    case 'Failed to authenticate: 2':
    case 'Failed to authenticate: 3':
      return notVerified('unknown', `The broker failed to check the login (SASL outcome ${description.at(-1)}).`)
    default:
      return NOT_AMQP
  }
}

function textOf(error: unknown, property: 'condition' | 'description'): string {
  if (typeof error !== 'object' || error === null) return ''
  const text = (error as Readonly<Record<string, unknown>>)[property]
  return typeof text === 'string' ? text : ''
}
