import { randomBytes } from 'node:crypto'
import { PROTOCOLS, type Protocol, type ProtocolEndpoint } from '../../domain/catalogue.ts'
import { type CertificateAuthority, createCertificateAuthority } from '../certificates.ts'
import { startAmqpListener } from './amqp-listener.ts'
import type { Listener, StartListener, TlsMaterial } from './listener.ts'
import { startMqttListener } from './mqtt-listener.ts'
import type { MsgVpnAccess } from './msg-vpn-access.ts'
import { startRestListener } from './rest-listener.ts'
import { startSmfListener } from './smf-listener.ts'

const STARTERS: Readonly<Record<Protocol, { readonly start: StartListener; readonly tls: boolean }>> = {
  smf: { start: startSmfListener, tls: false },
  smfs: { start: startSmfListener, tls: true },
  smfc: { start: startSmfListener, tls: false },
  amqp: { start: startAmqpListener, tls: false },
  amqps: { start: startAmqpListener, tls: true },
  mqtt: { start: startMqttListener, tls: false },
  'secure-mqtt': { start: startMqttListener, tls: true },
  mqttws: { start: startMqttListener, tls: false },
  'secure-mqttws': { start: startMqttListener, tls: true },
  http: { start: startRestListener, tls: false },
  https: { start: startRestListener, tls: true },
}

/** Protocols to listen on, each with its port; 0 takes any free one. */
export type LoginPorts = Readonly<Partial<Record<Protocol, number>>>

export const ALL_LOGIN_PORTS: LoginPorts = Object.fromEntries(PROTOCOLS.map((protocol) => [protocol, 0]))

export interface LoginListenersOptions {
  readonly host: string
  readonly ports: LoginPorts
  readonly msgVpn: MsgVpnAccess
  readonly msgVpnNamed: (name: string) => MsgVpnAccess | undefined
}

/** The ports where clients of one simulated broker log in, with a certificate of the broker's own authority. */
export class LoginListeners {
  readonly #options: LoginListenersOptions
  #authority: Promise<CertificateAuthority> | null = null
  #certificate = ''
  #ports: LoginPorts
  #listeners: readonly Listener[] = []

  constructor(options: LoginListenersOptions) {
    this.#options = options
    this.#ports = options.ports
  }

  /** What listens now, in the order of the specification's protocols. */
  get endpoints(): readonly ProtocolEndpoint[] {
    return this.#listeners.map(({ protocol, port }) => ({ protocol, port }))
  }

  /** PEM, to trust; empty before the first start. */
  get caCertificate(): string {
    return this.#certificate
  }

  /** Listens, on the same ports as before when it was stopped. When one cannot listen, none stays up. */
  async start(): Promise<void> {
    const { host, msgVpn, msgVpnNamed } = this.#options
    const wanted = PROTOCOLS.filter((protocol) => this.#ports[protocol] !== undefined)
    if (wanted.length === 0) return
    const tls = await this.#material()
    const listeners: Listener[] = []
    try {
      for (const protocol of wanted) {
        const { start, tls: isSecure } = STARTERS[protocol]
        const port = this.#ports[protocol] ?? 0
        listeners.push(await start({ protocol, host, port, tls: isSecure ? tls : null, msgVpn, msgVpnNamed }))
      }
    } catch (error) {
      await Promise.all(listeners.map((listener) => listener.close()))
      throw error
    }
    this.#listeners = listeners
    this.#ports = Object.fromEntries(listeners.map(({ protocol, port }) => [protocol, port]))
  }

  async stop(): Promise<void> {
    const listeners = this.#listeners
    this.#listeners = []
    await Promise.all(listeners.map((listener) => listener.close()))
  }

  async #material(): Promise<TlsMaterial> {
    // A name of its own, so that several authorities can be trusted at once: they are looked up by it.
    this.#authority ??= createCertificateAuthority(`Keymesh sandbox ${randomBytes(4).toString('hex')}`)
    const authority = await this.#authority
    this.#certificate = authority.certificate
    return authority.issue({ names: ['localhost', '127.0.0.1', '::1'] })
  }
}
