import type { Protocol } from './domain/catalogue.ts'
import { Secret } from './domain/secret.ts'
import { controlOf, type NegativeControl, notVerified, provesLogin, type Verdict } from './domain/verdict.ts'
import { LoginGate, type LoginGateOptions } from './login-gate.ts'
import { allDone } from './reconcile/concurrently.ts'
import { ConnectionSlots } from './reconcile/connection-slots.ts'
import type { LoginPort, LoginTarget } from './reconcile/login-port.ts'
import type { BrokerFacts, ClientUsernameConnections } from './reconcile/ports.ts'
import type { LoginControl, LoginRecord } from './reconcile/store-port.ts'
import type { BrokerKey } from './reconcile/sweep-port.ts'
import type { ControlAttempt, CredentialToProve, ProveOptions, Verifier } from './reconcile/verify.ts'
import { readMessaging } from './store/broker-settings.ts'
import type { Database } from './store/database.ts'
import { readControls, recordControl } from './store/login-controls.ts'

export interface BrokerLoginsOptions extends Pick<LoginGateOptions, 'login' | 'now' | 'timeoutMs' | 'controlEveryMs'> {
  readonly db: Database
  /** Reads the message VPN's authentication before anybody logs in. Throws when the management side does not answer. */
  readonly facts: (broker: BrokerKey, signal?: AbortSignal) => Promise<BrokerFacts>
  /** Asked before a login, so that it does not take a client's last connection; see `BrokerPort.connections`. */
  readonly connections: (
    broker: BrokerKey,
    clientUsername: string,
    signal?: AbortSignal,
  ) => Promise<ClientUsernameConnections | null>
  /** ASCII text that is nobody's password. */
  readonly wrongPassword: () => string
  readonly observer?: LoginObserver
}

/** Told what logins come to; no name of a client username gets there. */
export interface LoginObserver {
  /** One login that is tried. */
  probe(broker: BrokerKey, protocol: Protocol, work: () => Promise<Verdict>): Promise<Verdict>
  /** What is known of a credential's login, whether or not one was tried. */
  verdict(broker: BrokerKey, protocol: Protocol, verdict: Verdict): void
  /** What a wrong password came to. */
  control(broker: BrokerKey, protocol: Protocol, outcome: NegativeControl): void
}

interface KnownGate {
  readonly fingerprint: string
  readonly gate: LoginGate
}

/** One broker's gate, and who is to pass it. */
interface Passage {
  readonly broker: BrokerKey
  readonly gate: LoginGate
  /** Null: its client profile does not limit the client username. */
  readonly slots: ConnectionSlots | null
  readonly signal: AbortSignal | undefined
}

/** Proves logins at the pace of each broker: one gate per broker and process. Changed settings make a new one. */
export class BrokerLogins implements Verifier {
  readonly #options: BrokerLoginsOptions
  readonly #gates = new Map<string, KnownGate>()

  constructor(options: BrokerLoginsOptions) {
    this.#options = options
  }

  async protocols(broker: BrokerKey): Promise<readonly Protocol[]> {
    return [...((await this.#gate(broker))?.targets.keys() ?? [])]
  }

  async prove(
    broker: BrokerKey,
    credentials: readonly CredentialToProve[],
    { signal, meanwhile }: ProveOptions = {},
  ): Promise<readonly LoginRecord[]> {
    const gate = await this.#gate(broker)
    if (gate === null || credentials.length === 0) return []
    const { authentication } = await this.#authentication(broker, signal)
    const logins = credentials.map((credential) =>
      authentication === null
        ? this.#proveCredential({ broker, gate, signal }, credential)
        : credential.protocols.map((protocol) => this.#record(broker, credential, protocol, authentication)),
    )
    const timer = meanwhile && setInterval(() => void meanwhile.task(), meanwhile.everyMs)
    try {
      return (await allDone(logins)).flat()
    } finally {
      clearInterval(timer)
    }
  }

  async control(
    broker: BrokerKey,
    { protocol, consumerKey }: ControlAttempt,
    signal?: AbortSignal,
  ): Promise<LoginControl> {
    const gate = await this.#gate(broker)
    const target = gate?.targets.get(protocol)
    if (gate === null || target === undefined) return this.#controlOf(protocol, notExposed(protocol))
    const { authentication } = await this.#authentication(broker, signal)
    if (authentication !== null) return this.#keepControl(broker, gate, this.#controlOf(protocol, authentication))
    const slots = await this.#slots(broker, consumerKey, signal)
    const attempt = () => this.#tryWrongPassword({ broker, gate, slots, signal }, target, consumerKey)
    return slots === null ? attempt() : gate.limited.run(consumerKey, attempt)
  }

  async #proveCredential(
    passage: Omit<Passage, 'slots'>,
    credential: CredentialToProve,
  ): Promise<readonly LoginRecord[]> {
    const { broker, gate, signal } = passage
    const { consumerKey, protocols } = credential
    const slots = await this.#slots(broker, consumerKey, signal)
    const probe = async (protocol: Protocol): Promise<LoginRecord> =>
      this.#record(broker, credential, protocol, await this.#probe({ ...passage, slots }, credential, protocol))
    if (slots === null) return allDone(protocols.map(probe))
    return gate.limited.run(consumerKey, async () => {
      const records: LoginRecord[] = []
      for (const protocol of protocols) records.push(await probe(protocol))
      return records
    })
  }

  #record(
    broker: BrokerKey,
    { consumerKey, version }: CredentialToProve,
    protocol: Protocol,
    verdict: Verdict,
  ): LoginRecord {
    this.#options.observer?.verdict(broker, protocol, verdict)
    return { consumerKey, protocol, credentialVersion: version, verdict, checkedAtMs: this.#options.now() }
  }

  /** Null when the client username may have more connections than a probe can take, or nobody logs in any more. */
  async #slots(broker: BrokerKey, clientUsername: string, signal?: AbortSignal): Promise<ConnectionSlots | null> {
    const { connections, now } = this.#options
    try {
      return await ConnectionSlots.open({ count: () => connections(broker, clientUsername, signal), now })
    } catch (error) {
      if (signal?.aborted === true) return null
      throw error
    }
  }

  /** A verdict when no password that we wrote is asked for, so that no login could prove it. */
  async #authentication(broker: BrokerKey, signal?: AbortSignal): Promise<{ readonly authentication: Verdict | null }> {
    const { basicAuthentication: basic, msgVpnEnabled } = await this.#options.facts(broker, signal)
    if (!msgVpnEnabled) return { authentication: { outcome: 'vpn-down', detail: 'the message VPN is shut down' } }
    if (basic.enabled && basic.type === 'internal') return { authentication: null }
    const detail = basic.enabled
      ? `basic authentication of the message VPN is ${basic.type}, not internal`
      : 'basic authentication of the message VPN is off'
    return { authentication: notVerified('authentication-type', detail) }
  }

  async #probe(passage: Passage, credential: CredentialToProve, protocol: Protocol): Promise<Verdict> {
    const { gate, slots, signal } = passage
    const target = gate.targets.get(protocol)
    if (target === undefined) return notExposed(protocol)
    const { consumerKey: username, secret: password } = credential
    const verdict = await gate.login(target, { username, password }, slots, signal)
    if (provesLogin(verdict) && gate.isControlDue(protocol)) await this.#tryWrongPassword(passage, target, username)
    return verdict
  }

  /** The negative control: without it an accepted login proves nothing. */
  async #tryWrongPassword(
    { broker, gate, slots, signal }: Passage,
    target: LoginTarget,
    username: string,
  ): Promise<LoginControl> {
    const { protocol } = target
    // Set at once, so that logins side by side try one wrong password together.
    gate.keepControl(this.#controlOf(protocol, notVerified('unknown', 'under way')))
    const password = new Secret(this.#options.wrongPassword())
    const verdict = await gate.login(target, { username, password }, slots, signal)
    return this.#keepControl(broker, gate, this.#controlOf(protocol, verdict))
  }

  async #keepControl(broker: BrokerKey, gate: LoginGate, control: LoginControl): Promise<LoginControl> {
    gate.keepControl(control)
    this.#options.observer?.control(broker, control.protocol, control.outcome)
    await recordControl(this.#options.db, broker, control)
    return control
  }

  #controlOf(protocol: Protocol, verdict: Verdict): LoginControl {
    const detail = 'detail' in verdict ? verdict.detail : ''
    return { protocol, outcome: controlOf(verdict), detail, checkedAtMs: this.#options.now() }
  }

  #observed({ accountId, brokerId }: BrokerKey): LoginPort {
    const { login, observer } = this.#options
    if (observer === undefined) return login
    return {
      probe: (target, attempt, limits) =>
        observer.probe({ accountId, brokerId }, target.protocol, () => login.probe(target, attempt, limits)),
    }
  }

  async #gate(broker: BrokerKey): Promise<LoginGate | null> {
    const { db } = this.#options
    const found = await readMessaging(db, broker)
    if (found === null) return null
    const fingerprint = JSON.stringify(found)
    const key = JSON.stringify([broker.accountId, broker.brokerId])
    const known = this.#gates.get(key)
    if (known?.fingerprint === fingerprint) return known.gate
    const controls = await readControls(db, broker)
    const raced = this.#gates.get(key)
    if (raced?.fingerprint === fingerprint) return raced.gate
    const gate = new LoginGate({ ...this.#options, ...found, controls, login: this.#observed(broker) })
    this.#gates.set(key, { fingerprint, gate })
    return gate
  }
}

const notExposed = (protocol: Protocol): Verdict =>
  notVerified('switched-off', `${protocol} is not exposed, or its logins are off`)
