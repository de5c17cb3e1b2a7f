import PQueue from 'p-queue'
import {
  DEFAULT_LOGIN_SETTINGS,
  type LoginSettings,
  type MessagingSettings,
  type Protocol,
} from './domain/catalogue.ts'
import { Secret } from './domain/secret.ts'
import { controlOf, isEndpointTrouble, notVerified, provesLogin, type Verdict } from './domain/verdict.ts'
import type { LoginPort, LoginTarget } from './reconcile/login-port.ts'
import type { BrokerFacts } from './reconcile/ports.ts'
import type { LoginRecord } from './reconcile/store-port.ts'
import type { BrokerKey } from './reconcile/sweep-port.ts'
import type { CredentialToProve, ProveOptions, Verifier } from './reconcile/verify.ts'
import { readMessaging } from './store/broker-settings.ts'
import type { Database } from './store/database.ts'
import { type LoginControl, readControls, recordControl } from './store/login-controls.ts'

export interface BrokerLoginsOptions {
  readonly db: Database
  readonly login: LoginPort
  /** Reads the message VPN's authentication before anybody logs in. Throws when the management side does not answer. */
  readonly facts: (broker: BrokerKey, signal?: AbortSignal) => Promise<BrokerFacts>
  readonly now: () => number
  /** ASCII text that is nobody's password. */
  readonly wrongPassword: () => string
  readonly timeoutMs: number
  /** A wrong password is tried on each broker and protocol once in this time. */
  readonly controlEveryMs: number
}

/** An endpoint that did not answer is not asked again for this long: whoever logs in there meets the same. */
const TROUBLE_MS = 15_000

interface Gate {
  readonly fingerprint: string
  readonly queue: PQueue
  readonly targets: ReadonlyMap<Protocol, LoginTarget>
  readonly trouble: Map<Protocol, { readonly verdict: Verdict; readonly untilMs: number }>
  readonly controls: Map<Protocol, LoginControl>
}

/**
 * One gate per broker and process: its pace, what is known of its endpoints, and when a wrong password was last tried.
 * Changed settings make a new one.
 */
export class BrokerLogins implements Verifier {
  readonly #options: BrokerLoginsOptions
  readonly #gates = new Map<string, Gate>()

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
    const logins = credentials.flatMap((credential) =>
      credential.protocols.map(async (protocol): Promise<LoginRecord> => {
        const verdict = authentication ?? (await this.#probe(broker, gate, { credential, protocol }, signal))
        return {
          consumerKey: credential.consumerKey,
          protocol,
          credentialVersion: credential.version,
          verdict,
          checkedAtMs: this.#options.now(),
        }
      }),
    )
    const timer = meanwhile && setInterval(() => void meanwhile.task(), meanwhile.everyMs)
    try {
      return await Promise.all(logins)
    } finally {
      clearInterval(timer)
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

  async #probe(
    broker: BrokerKey,
    gate: Gate,
    { credential, protocol }: { readonly credential: CredentialToProve; readonly protocol: Protocol },
    signal?: AbortSignal,
  ): Promise<Verdict> {
    const target = gate.targets.get(protocol)
    if (target === undefined) return notVerified('switched-off', `${protocol} is not exposed, or its logins are off`)
    const username = credential.consumerKey
    const verdict = await this.#login(gate, target, { username, password: credential.secret }, signal)
    if (provesLogin(verdict)) await this.#control(broker, gate, target, username, signal)
    return verdict
  }

  /** Waits for its turn. */
  async #login(
    gate: Gate,
    target: LoginTarget,
    attempt: { readonly username: string; readonly password: Secret },
    signal?: AbortSignal,
  ): Promise<Verdict> {
    const { now, login, timeoutMs } = this.#options
    try {
      return await gate.queue.add(
        async () => {
          const trouble = gate.trouble.get(target.protocol)
          if (trouble !== undefined && trouble.untilMs > now()) return trouble.verdict
          const verdict = await login.probe(target, attempt, { timeoutMs, ...(signal && { signal }) })
          if (isEndpointTrouble(verdict) && signal?.aborted !== true) {
            gate.trouble.set(target.protocol, { verdict, untilMs: now() + TROUBLE_MS })
          } else gate.trouble.delete(target.protocol)
          return verdict
        },
        { ...(signal && { signal }) },
      )
    } catch (error) {
      if (signal?.aborted === true) return notVerified('timeout', 'the work was stopped before its turn')
      throw error
    }
  }

  /** The negative control: without it an accepted login proves nothing. */
  async #control(broker: BrokerKey, gate: Gate, target: LoginTarget, username: string, signal?: AbortSignal) {
    const { now, controlEveryMs, db, wrongPassword } = this.#options
    const known = gate.controls.get(target.protocol)
    if (known !== undefined && now() - known.checkedAtMs < controlEveryMs) return
    // Set at once, so that logins side by side try one wrong password together.
    gate.controls.set(target.protocol, {
      protocol: target.protocol,
      outcome: 'not-verified',
      detail: 'under way',
      checkedAtMs: now(),
    })
    const verdict = await this.#login(gate, target, { username, password: new Secret(wrongPassword()) }, signal)
    const control: LoginControl = {
      protocol: target.protocol,
      outcome: controlOf(verdict),
      detail: 'detail' in verdict ? verdict.detail : '',
      checkedAtMs: now(),
    }
    if (control.outcome === 'not-verified') gate.controls.delete(target.protocol)
    else gate.controls.set(target.protocol, control)
    await recordControl(db, broker, control)
  }

  async #gate(broker: BrokerKey): Promise<Gate | null> {
    const found = await readMessaging(this.#options.db, broker)
    if (found === null) return null
    const fingerprint = JSON.stringify(found)
    const key = JSON.stringify([broker.accountId, broker.brokerId])
    const known = this.#gates.get(key)
    if (known?.fingerprint === fingerprint) return known
    const controls = await readControls(this.#options.db, broker)
    const gate = newGate(fingerprint, found, controls)
    const raced = this.#gates.get(key)
    if (raced?.fingerprint === fingerprint) return raced
    this.#gates.set(key, gate)
    return gate
  }
}

function newGate(
  fingerprint: string,
  { messaging, msgVpnName }: { readonly messaging: MessagingSettings; readonly msgVpnName: string },
  controls: readonly LoginControl[],
): Gate {
  const settings = messaging.logins ?? DEFAULT_LOGIN_SETTINGS
  const { host, caCertificate } = messaging
  const targets = messaging.protocols
    .filter(({ protocol }) => isOn(settings, protocol))
    .map(
      ({ protocol, port }): LoginTarget => ({
        protocol,
        host,
        port,
        msgVpnName,
        ...(caCertificate && { caCertificate }),
      }),
    )
  return {
    fingerprint,
    queue: new PQueue({
      concurrency: settings.maxConcurrent,
      // In tenths of a second, so that a pace is a pace and not a burst each second.
      interval: 1000 / Math.min(settings.maxPerSecond, 10),
      intervalCap: Math.max(1, Math.floor(settings.maxPerSecond / 10)),
    }),
    targets: new Map(targets.map((target) => [target.protocol, target])),
    trouble: new Map(),
    controls: new Map(
      controls.filter(({ outcome }) => outcome !== 'not-verified').map((control) => [control.protocol, control]),
    ),
  }
}

const isOn = ({ off }: LoginSettings, protocol: Protocol): boolean => off !== 'all' && !off.includes(protocol)
