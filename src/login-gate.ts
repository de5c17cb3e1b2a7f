import { AsyncResource } from 'node:async_hooks'
import PQueue from 'p-queue'
import {
  DEFAULT_LOGIN_SETTINGS,
  type LoginSettings,
  type MessagingSettings,
  type Protocol,
} from './domain/catalogue.ts'
import { isEndpointTrouble, notVerified, type Verdict } from './domain/verdict.ts'
import type { ConnectionSlots } from './reconcile/connection-slots.ts'
import type { LoginAttempt, LoginPort, LoginTarget } from './reconcile/login-port.ts'
import { OneAtATime } from './reconcile/one-at-a-time.ts'
import type { LoginControl } from './reconcile/store-port.ts'

export interface LoginGateOptions {
  readonly messaging: MessagingSettings
  readonly msgVpnName: string
  /** The last ones on record. */
  readonly controls: readonly LoginControl[]
  readonly login: LoginPort
  readonly now: () => number
  readonly timeoutMs: number
  /** A wrong password is tried over each protocol once in this time. */
  readonly controlEveryMs: number
}

/**
 * An endpoint that did not answer is not asked again for this long: whoever logs in there meets the same. Nor is a wrong
 * password tried again that proved nothing.
 */
const TROUBLE_MS = 15_000

/** Where logins of one broker wait for their turn, with what is known of its endpoints. */
export class LoginGate {
  readonly targets: ReadonlyMap<Protocol, LoginTarget>
  /** Logins of client usernames that may have few connections. */
  readonly limited = new OneAtATime()
  readonly #options: LoginGateOptions
  readonly #queue: PQueue
  readonly #trouble = new Map<Protocol, { readonly verdict: Verdict; readonly untilMs: number }>()
  readonly #controls: Map<Protocol, LoginControl>

  constructor(options: LoginGateOptions) {
    const settings = options.messaging.logins ?? DEFAULT_LOGIN_SETTINGS
    this.#options = options
    this.targets = targetsOf(options, settings)
    this.#queue = new PQueue({
      concurrency: settings.maxConcurrent,
      // In tenths of a second, so that a pace is a pace and not a burst each second.
      interval: 1000 / Math.min(settings.maxPerSecond, 10),
      intervalCap: Math.max(1, Math.floor(settings.maxPerSecond / 10)),
    })
    this.#controls = new Map(options.controls.map((control) => [control.protocol, control]))
  }

  /** Logs in when its turn has come, if that leaves the client its last connection. Throws when nobody can tell. */
  async login(
    target: LoginTarget,
    attempt: LoginAttempt,
    slots: ConnectionSlots | null,
    signal?: AbortSignal,
  ): Promise<Verdict> {
    const { now, login, timeoutMs } = this.#options
    const { protocol } = target
    try {
      return await this.#queue.add(
        // Whoever makes room starts it; it belongs to who asked.
        AsyncResource.bind(async () => {
          const trouble = this.#trouble.get(protocol)
          if (trouble !== undefined && trouble.untilMs > now()) return trouble.verdict
          const refusal = slots === null ? null : await slots.refusal()
          if (refusal !== null) return refusal
          const verdict = await login.probe(target, attempt, { timeoutMs, ...(signal && { signal }) })
          if (isEndpointTrouble(verdict) && signal?.aborted !== true) {
            this.#trouble.set(protocol, { verdict, untilMs: now() + TROUBLE_MS })
          } else this.#trouble.delete(protocol)
          return verdict
        }),
        { ...(signal && { signal }) },
      )
    } catch (error) {
      if (signal?.aborted === true) return notVerified('timeout', 'the work was stopped before its turn')
      throw error
    }
  }

  isControlDue(protocol: Protocol): boolean {
    const { now, controlEveryMs } = this.#options
    const known = this.#controls.get(protocol)
    if (known === undefined) return true
    return now() - known.checkedAtMs >= (known.outcome === 'not-verified' ? TROUBLE_MS : controlEveryMs)
  }

  keepControl(control: LoginControl): void {
    this.#controls.set(control.protocol, control)
  }
}

function targetsOf(
  { messaging: { host, protocols, caCertificate }, msgVpnName }: LoginGateOptions,
  settings: LoginSettings,
): ReadonlyMap<Protocol, LoginTarget> {
  const shared = { host, msgVpnName, ...(caCertificate === undefined ? {} : { caCertificate }) }
  const exposed = protocols.filter(({ protocol }) => isOn(settings, protocol))
  return new Map(exposed.map(({ protocol, port }) => [protocol, { ...shared, protocol, port }]))
}

const isOn = ({ off }: LoginSettings, protocol: Protocol): boolean => off !== 'all' && !off.includes(protocol)
