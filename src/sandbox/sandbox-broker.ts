import type { ProtocolEndpoint } from '../domain/catalogue.ts'
import type { Values } from './attribute.ts'
import { BrokerModel } from './broker-model.ts'
import { ControlApi, type ControlledBroker } from './control-api.ts'
import { FaultPlan, type FaultRule } from './faults.ts'
import { LoginListeners, type LoginPorts } from './login/login-listeners.ts'
import { MsgVpnAccess } from './login/msg-vpn-access.ts'
import { MsgVpnState } from './msg-vpn-state.ts'
import { RequestCounters } from './request-counters.ts'
import { seededRandom } from './seeded-random.ts'
import { SempApi } from './semp-api.ts'
import { type PagingOptions, UNEVEN_PAGES } from './semp-paging.ts'
import { SempServer } from './semp-server.ts'
import { DEFAULT_SESSION_OPTIONS, type SessionOptions, Sessions } from './sessions.ts'

export interface SandboxBrokerOptions {
  readonly name?: string
  /** The message VPN that `state` shows. */
  readonly msgVpnName?: string
  /** More message VPNs on the same broker; `stateOf` shows them. */
  readonly otherMsgVpnNames?: readonly string[]
  /** Values of the message VPNs, such as `{ authenticationBasicType: 'none' }`. */
  readonly msgVpn?: Readonly<Values>
  readonly username?: string
  readonly password?: string
  /** `major.minor`; 2.49 when absent. */
  readonly sempVersion?: string
  /** `vpn`: the SEMP user may not write client profiles (code 72); `read-only`: nothing. `global` when absent. */
  readonly sempScope?: 'vpn' | 'global' | 'read-only'
  readonly sessions?: Partial<SessionOptions>
  /** Short and empty pages; `UNEVEN_PAGES` when absent, `FULL_PAGES` switches them off. */
  readonly paging?: PagingOptions
  readonly latencyMs?: number
  readonly faults?: readonly FaultRule[]
  /** A fixed port; any free one when absent. */
  readonly port?: number
  /** PEM texts; with them the SEMP server speaks TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Where clients of the message VPN log in, such as `{ mqtt: 1883, smf: 0 }` or `ALL_LOGIN_PORTS`; nowhere when absent. */
  readonly logins?: LoginPorts
}

export interface BrokerDefaults {
  readonly index: number
  readonly host: string
  readonly port: number
  readonly seed: number
  readonly tls: { readonly key: string; readonly cert: string } | null
}

/** One simulated broker. */
export class SandboxBroker implements ControlledBroker {
  readonly name: string
  readonly msgVpnName: string
  /** The SEMP user. */
  readonly username: string
  readonly password: string
  readonly requests = new RequestCounters()
  readonly state: MsgVpnState
  readonly sessions: Sessions
  readonly #model: BrokerModel
  readonly #faults: FaultPlan
  readonly #server: SempServer
  readonly #logins: LoginListeners
  readonly #host: string
  #port: number

  constructor(options: SandboxBrokerOptions, defaults: BrokerDefaults) {
    const seed = defaults.seed + defaults.index
    this.name = options.name ?? `broker-${defaults.index + 1}`
    this.msgVpnName = options.msgVpnName ?? 'sandbox'
    this.username = options.username ?? 'admin'
    this.password = options.password ?? 'admin'
    this.#host = defaults.host
    this.#port = options.port ?? defaults.port
    this.#model = new BrokerModel({
      seed,
      sempVersion: options.sempVersion ?? '2.49',
      msgVpnNames: [this.msgVpnName, ...(options.otherMsgVpnNames ?? [])],
      msgVpnValues: options.msgVpn ?? {},
      sempScope: options.sempScope ?? 'global',
      paging: options.paging ?? UNEVEN_PAGES,
    })
    this.state = new MsgVpnState(this.#model, this.msgVpnName)
    this.sessions = new Sessions({ ...DEFAULT_SESSION_OPTIONS, ...options.sessions })
    this.#faults = new FaultPlan(seededRandom(seed))
    this.#faults.set(options.faults ?? [])
    this.#server = new SempServer({
      api: new SempApi(this.#model),
      control: new ControlApi(this),
      sessions: this.sessions,
      faults: this.#faults,
      counters: this.requests,
      username: this.username,
      password: this.password,
      tls: options.tls ?? defaults.tls,
    })
    this.#server.latencyMs = options.latencyMs ?? 0
    const names = [this.msgVpnName, ...(options.otherMsgVpnNames ?? [])]
    const msgVpns = new Map(names.map((name) => [name, new MsgVpnAccess(this.#model, name)]))
    this.#logins = new LoginListeners({
      host: this.#host,
      ports: options.logins ?? {},
      msgVpn: msgVpns.get(this.msgVpnName) ?? new MsgVpnAccess(this.#model, this.msgVpnName),
      msgVpnNamed: (name) => (this.#model.msgVpns.get(name) === undefined ? undefined : msgVpns.get(name)),
    })
  }

  /** `http://127.0.0.1:8080`, without the API's path. */
  get url(): string {
    return this.#server.origin
  }

  get port(): number {
    return this.#port
  }

  /** Ports that clients log in on, while the broker runs. */
  get endpoints(): readonly ProtocolEndpoint[] {
    return this.#logins.endpoints
  }

  /** PEM certificate of the authority that signed what the ports with TLS show. */
  get caCertificate(): string {
    return this.#logins.caCertificate
  }

  stateOf(msgVpnName: string): MsgVpnState {
    return msgVpnName === this.msgVpnName ? this.state : new MsgVpnState(this.#model, msgVpnName)
  }

  /** Replaces the rules; none switches misbehaviour off. */
  setFaults(rules: readonly FaultRule[]): void {
    this.#faults.set(rules)
  }

  setLatencyMs(latencyMs: number): void {
    this.#server.latencyMs = latencyMs
  }

  /** Removes every object but the reserved ones; counters, faults and sessions stay. */
  wipe(): void {
    this.#model.reset()
  }

  objectCounts(): Readonly<Record<string, number>> {
    const { clientUsernames, clientProfiles, aclProfiles, queues } = this.state
    return {
      clientUsernames: clientUsernames.size,
      clientProfiles: clientProfiles.size,
      aclProfiles: aclProfiles.size,
      queues: queues.size,
    }
  }

  /** Listens, on the same port as before when it was stopped. */
  async start(): Promise<void> {
    this.#port = await this.#server.start(this.#host, this.#port)
    await this.#logins.start()
  }

  /** Closes the port and every connection; objects stay, sessions end as with a restart. */
  async stop(): Promise<void> {
    await this.#logins.stop()
    await this.#server.stop()
    this.sessions.clear()
  }
}
