import type { Protocol } from '../../src/domain/catalogue.ts'
import type { ConsumerKey } from '../../src/domain/ids.ts'
import type { NegativeControl, Verdict } from '../../src/domain/verdict.ts'
import type { LoginControl, LoginRecord } from '../../src/reconcile/store-port.ts'
import type { ControlAttempt, CredentialToProve, Verifier } from '../../src/reconcile/verify.ts'
import type { FakeBroker } from './fake-broker.ts'

export const REJECTED: Verdict = { outcome: 'rejected', detail: 'wrong password' }

/** Logs in to a fake broker: what its passwords say, unless a protocol was told to answer otherwise. */
export class FakeVerifier implements Verifier {
  readonly attempts: { readonly consumerKey: ConsumerKey; readonly protocol: Protocol; readonly version: number }[] = []
  readonly controls: ControlAttempt[] = []
  /** What a wrong password comes to. */
  controlOutcome: NegativeControl = 'refused'
  readonly answers = new Map<Protocol, Verdict>()
  exposed: readonly Protocol[]
  readonly #broker: FakeBroker
  readonly #now: () => number

  constructor(broker: FakeBroker, exposed: readonly Protocol[], now: () => number) {
    this.#broker = broker
    this.exposed = exposed
    this.#now = now
  }

  async protocols(): Promise<readonly Protocol[]> {
    return this.exposed
  }

  async prove(_broker: unknown, credentials: readonly CredentialToProve[]): Promise<readonly LoginRecord[]> {
    return credentials.flatMap(({ consumerKey, version, secret, protocols }) =>
      protocols.map((protocol) => {
        this.attempts.push({ consumerKey, protocol, version })
        const stored = this.#broker.passwords.get(consumerKey)
        const verdict = this.answers.get(protocol) ?? (stored === secret.reveal() ? ACCEPTED : REJECTED)
        return { consumerKey, protocol, credentialVersion: version, verdict, checkedAtMs: this.#now() }
      }),
    )
  }

  async control(_broker: unknown, attempt: ControlAttempt): Promise<LoginControl> {
    this.controls.push(attempt)
    return { protocol: attempt.protocol, outcome: this.controlOutcome, detail: '', checkedAtMs: this.#now() }
  }
}

const ACCEPTED: Verdict = { outcome: 'accepted' }
