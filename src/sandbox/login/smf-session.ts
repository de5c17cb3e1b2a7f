import type { ConnectedClient } from '../account-table.ts'
import type { ListenerOptions } from './listener.ts'
import type { AccessOutcome, MsgVpnAccess } from './msg-vpn-access.ts'
import {
  type ClientControl,
  decodeClientControl,
  decodeSubscription,
  encodeClientControl,
  LOGIN_MESSAGE,
  UPDATE_MESSAGE,
} from './smf-control.ts'
import { SmfFramer } from './smf-framer.ts'
import {
  CLIENT_CONTROL_PROTOCOL,
  decodeSmf,
  encodeSmf,
  KEEP_ALIVE_PROTOCOL,
  type SmfMessage,
  type SmfResponse,
  SmfSyntaxError,
  SUBSCRIPTION_PROTOCOL,
} from './smf-message.ts'

/** A login is a few hundred bytes; a stranger gets no more memory than that needs. */
const MAX_LOGIN_LENGTH = 16 * 1024
const MAX_MESSAGE_LENGTH = 64 * 1024

const OK: SmfResponse = { code: 200, text: 'OK' }
const UNAUTHORIZED: SmfResponse = { code: 401, text: 'Unauthorized' }
const MSG_VPN_NOT_ALLOWED: SmfResponse = { code: 403, text: 'Message VPN Not Allowed' }
const NO_CLIENT_CERTIFICATES: SmfResponse = { code: 403, text: 'Client Certificate Authentication Is Shutdown' }
const SUBSCRIPTION_DENIED: SmfResponse = { code: 403, text: 'Subscription ACL Denied' }

/** What a broker answers, by the causes that Solace's reference gives for each error of its clients. */
const ANSWERS: Readonly<Record<AccessOutcome, SmfResponse>> = {
  accepted: OK,
  'unknown-username': UNAUTHORIZED,
  'wrong-password': UNAUTHORIZED,
  shutdown: { code: 403, text: 'Client Username Is Shutdown' },
  'msg-vpn-shutdown': { code: 503, text: 'Message VPN Unavailable' },
  'basic-authentication-shutdown': { code: 403, text: 'Basic Authentication is Shutdown' },
  'connect-denied': { code: 403, text: 'Forbidden' },
  'too-many-connections': { code: 503, text: 'Too Many Clients' },
}

const BASIC_AUTHENTICATION = 0
const CLIENT_CERTIFICATE_AUTHENTICATION = 1

export interface SmfConnection {
  send(message: Buffer): void
  /** After what was sent. */
  end(): void
  /** At once. */
  destroy(): void
}

interface LoggedIn {
  readonly access: MsgVpnAccess
  readonly username: string
  readonly client: ConnectedClient
}

/** What one client says, and what it is told; the bytes come and go through its connection. */
export class SmfSession {
  readonly #options: ListenerOptions
  readonly #inboxTopic: string
  readonly #connection: SmfConnection
  readonly #framer = new SmfFramer()
  #loggedIn: LoggedIn | null = null
  #ended = false

  constructor(options: ListenerOptions, inboxTopic: string, connection: SmfConnection) {
    this.#options = options
    this.#inboxTopic = inboxTopic
    this.#connection = connection
  }

  get isLoggedIn(): boolean {
    return this.#loggedIn !== null
  }

  /** Bytes that make no sense end the connection. */
  receive(chunk: Buffer): void {
    if (this.#ended) return
    try {
      const maxLength = this.isLoggedIn ? MAX_MESSAGE_LENGTH : MAX_LOGIN_LENGTH
      for (const message of this.#framer.push(chunk, maxLength)) {
        if (this.#ended) return
        this.#take(decodeSmf(message))
      }
    } catch {
      this.#ended = true
      this.#connection.destroy()
    }
  }

  /** The connection is gone. */
  closed(): void {
    this.#ended = true
    if (this.#loggedIn !== null) this.#loggedIn.access.disconnect(this.#loggedIn.client)
    this.#loggedIn = null
  }

  #take(message: SmfMessage): void {
    if (this.#loggedIn === null) {
      if (message.protocol !== CLIENT_CONTROL_PROTOCOL) throw new SmfSyntaxError('a message before the login')
      this.#login(message)
      return
    }
    switch (message.protocol) {
      case CLIENT_CONTROL_PROTOCOL:
        this.#update(message)
        break
      case SUBSCRIPTION_PROTOCOL:
        this.#subscribe(message, this.#loggedIn)
        break
      case KEEP_ALIVE_PROTOCOL:
        this.#answer(message, null, Buffer.alloc(0))
        break
      // Messages that are published, and whatever else there is, go nowhere here.
    }
  }

  #login(message: SmfMessage): void {
    const control = decodeClientControl(message.body)
    if (control.messageType !== LOGIN_MESSAGE) throw new SmfSyntaxError('an update before the login')
    const access = control.msgVpnName === null ? this.#options.msgVpn : this.#options.msgVpnNamed(control.msgVpnName)
    const username = message.username ?? ''
    const response = answerToLogin(access, control, username, message.password ?? '')
    if (access === undefined || response !== OK) {
      this.#answerControl(message, response, {})
      this.#ended = true
      this.#connection.end()
      return
    }
    const client = access.connect(username, () => this.#connection.destroy())
    this.#loggedIn = { access, username, client }
    this.#answerControl(message, OK, { inboxTopic: this.#inboxTopic })
  }

  #update(message: SmfMessage): void {
    if (decodeClientControl(message.body).messageType !== UPDATE_MESSAGE) throw new SmfSyntaxError('a second login')
    this.#answerControl(message, OK, {})
  }

  #subscribe(message: SmfMessage, { access, username }: LoggedIn): void {
    const { kind, topic } = decodeSubscription(message.body)
    const allowed =
      kind === 'remove' || topic.startsWith(`${this.#inboxTopic}/`) || access.allows(username, 'subscribe', topic)
    this.#answer(message, allowed ? OK : SUBSCRIPTION_DENIED, message.body)
  }

  #answerControl(message: SmfMessage, response: SmfResponse, control: Partial<ClientControl>): void {
    const body = encodeClientControl({
      messageType: LOGIN_MESSAGE,
      msgVpnName: null,
      inboxTopic: null,
      authenticationScheme: BASIC_AUTHENTICATION,
      ...control,
    })
    this.#answer(message, response, body)
  }

  #answer({ protocol, correlationTag }: SmfMessage, response: SmfResponse | null, body: Buffer): void {
    const answer = { protocol, timeToLive: 1, correlationTag, username: null, password: null, response, body }
    this.#connection.send(encodeSmf(answer))
  }
}

function answerToLogin(
  access: MsgVpnAccess | undefined,
  { authenticationScheme }: ClientControl,
  username: string,
  password: string,
): SmfResponse {
  if (access === undefined) return MSG_VPN_NOT_ALLOWED
  if (authenticationScheme === CLIENT_CERTIFICATE_AUTHENTICATION) return NO_CLIENT_CERTIFICATES
  if (authenticationScheme !== BASIC_AUTHENTICATION) return UNAUTHORIZED
  return ANSWERS[access.login(username, password)]
}
