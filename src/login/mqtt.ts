import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { MqttClient } from 'mqtt'
import { hasUnsafeCharacters } from '../domain/names.ts'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget, ProbeLimits } from '../reconcile/login-port.ts'
import { atDeadline, TIMED_OUT } from './deadline.ts'
import { CLOSED, openMqttTransport } from './mqtt-transport.ts'
import { networkFailure } from './network-failure.ts'

/** Of a Solace broker, in characters. */
const MAX_USERNAME_LENGTH = 189
const MAX_PASSWORD_LENGTH = 128

/** For the broker to close after our DISCONNECT. */
const GOODBYE_MS = 500
/** The first byte of a CONNACK, and more bytes than one has. */
const CONNACK = 0x20
const MAX_ANSWER_BYTES = 1_024

const ACCEPTED: Verdict = { outcome: 'accepted' }
const NOT_MQTT = notVerified('protocol', 'The port does not speak MQTT 3.1.1.')

/** MQTT 3.1.1, protocols `mqtt`, `secure-mqtt`, `mqttws` and `secure-mqttws`: CONNECT, CONNACK, DISCONNECT. */
export function createMqttLogin(): LoginPort {
  return {
    async probe(target, attempt, limits) {
      const problem = inputProblem(attempt)
      return problem === null ? new MqttProbe(target, attempt).run(limits) : notVerified('bad-input', problem)
    },
  }
}

/** What no broker takes: sent anyway, it would come back as a rejection of a credential that was never tried. */
function inputProblem({ username, password }: LoginAttempt): string | null {
  return (
    textProblem('username', username, MAX_USERNAME_LENGTH) ??
    textProblem('password', password.reveal(), MAX_PASSWORD_LENGTH)
  )
}

function textProblem(name: string, text: string, maxLength: number): string | null {
  if (text === '') return `The ${name} is empty.`
  if (text.length > maxLength) return `The ${name} has more than ${maxLength} characters.`
  return hasUnsafeCharacters(text) ? `The ${name} has characters that cannot be printed.` : null
}

class MqttProbe {
  readonly #target: LoginTarget
  readonly #attempt: LoginAttempt
  #stage: 'transport' | 'login' | 'goodbye' = 'transport'
  #stream: Duplex | null = null
  #goodbye: NodeJS.Timeout | undefined
  #receivedBytes = 0
  #end: (verdict: Verdict) => void = () => {}

  constructor(target: LoginTarget, attempt: LoginAttempt) {
    this.#target = target
    this.#attempt = attempt
  }

  /** The password goes out only after the transport is open: never to a host whose certificate is not good. */
  run(limits: ProbeLimits): Promise<Verdict> {
    return new Promise((resolve) => {
      const callOff = atDeadline(limits, () => this.#fail(TIMED_OUT))
      this.#end = (verdict) => {
        this.#end = () => {}
        callOff()
        clearTimeout(this.#goodbye)
        const stream = this.#stream
        if (stream === null || stream.closed) {
          resolve(verdict)
          return
        }
        stream.once('close', () => resolve(verdict))
        stream.destroy()
      }
      try {
        this.#stream = openMqttTransport(this.#target, {
          onOpen: () => this.#login(),
          onFailure: (verdict) => this.#fail(verdict),
        })
        // Also when the other side ends without a word, and when the library gives up.
        this.#stream.on('close', () => this.#fail(CLOSED))
      } catch (error) {
        this.#end(networkFailure(error))
      }
    })
  }

  /** The broker's answer stands, whatever becomes of the connection after it. */
  #fail(verdict: Verdict): void {
    this.#end(this.#stage === 'goodbye' ? ACCEPTED : verdict)
  }

  #login(): void {
    const stream = this.#stream
    if (stream === null || stream.destroyed) return
    this.#stage = 'login'
    const client = new MqttClient(() => stream, {
      // 23 letters and digits are what every broker takes (MQTT 3.1.1, 3.1.3.1).
      clientId: `keymesh${randomBytes(8).toString('hex')}`,
      username: this.#attempt.username,
      password: this.#attempt.password.reveal(),
      protocolVersion: 4,
      clean: true,
      reconnectPeriod: 0,
      resubscribe: false,
      // The library would keep a buffer for each of 65,536 numbers, and can log every packet, passwords included.
      writeCache: false,
      log: () => {},
    })
    // Stays to the end: the library may have more than one error to tell.
    client.on('error', () => this.#fail(NOT_MQTT))
    client.on('packetreceive', (packet) => {
      if (this.#stage !== 'login') return
      if (packet.cmd !== 'connack') this.#fail(NOT_MQTT)
      else if (packet.returnCode !== 0) this.#end(refusal(packet.returnCode ?? -1))
    })
    client.on('connect', () => {
      if (stream.destroyed) return
      this.#stage = 'goodbye'
      this.#goodbye = setTimeout(() => this.#end(ACCEPTED), GOODBYE_MS)
      client.end()
    })
    stream.on('data', (chunk: Buffer) => {
      const isFirst = this.#receivedBytes === 0
      this.#receivedBytes += chunk.length
      if ((isFirst && chunk[0] !== CONNACK) || this.#receivedBytes > MAX_ANSWER_BYTES) this.#fail(NOT_MQTT)
    })
  }
}

/**
 * The return codes of MQTT 3.1.1, 3.2.2.3, and the reason codes of MQTT 5 for a broker that answers with one of those.
 * Brokers differ in which of `bad user name or password` and `not authorized` they say of a wrong password or of a
 * client username that is shut down, so both are a rejection. `Server unavailable` is all that 3.1.1 has for a message
 * VPN that is shut down and for too many connections, so it is `busy`, which claims neither.
 */
function refusal(code: number): Verdict {
  const said = (text: string) => `The broker ${text} (CONNACK code ${code}).`
  switch (code) {
    case 4:
    case 0x86:
      return { outcome: 'rejected', detail: said('refused the username or the password') }
    case 5:
    case 0x87:
      return { outcome: 'rejected', detail: said('did not authorize the login') }
    case 3:
    case 0x88:
      return {
        outcome: 'busy',
        detail: said('is not available: its message VPN may be shut down, or take no more connections'),
      }
    case 0x89:
    case 0x8b:
    case 0x97:
    case 0x9f:
      return { outcome: 'busy', detail: said('takes no more connections now') }
    case 0x8c:
      return notVerified('authentication-type', said('offers no login with a password'))
    case 1:
    case 2:
    case 0x81:
    case 0x82:
    case 0x84:
    case 0x85:
      return notVerified('protocol', said('does not take such a login packet'))
    case 0x9c:
    case 0x9d:
      return notVerified('protocol', said('sends clients to another server'))
    // A ban is as often of an address or a client id as of a username, and says nothing of the password.
    case 0x8a:
      return notVerified('unknown', said('has banned this client'))
    default:
      return notVerified('unknown', said('refused the login for a reason of its own'))
  }
}
