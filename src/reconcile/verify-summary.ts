import type { Protocol } from '../domain/catalogue.ts'
import { type LoginStanding, standingOf } from '../domain/verdict.ts'
import type { LoginControl } from './store-port.ts'
import { describeVerdict } from './verify.ts'
import type { VerifyFinding } from './verify-broker.ts'

/** What logins of one broker came to over one protocol. */
export interface ProtocolSummary {
  readonly protocol: Protocol
  readonly counts: Readonly<Record<LoginStanding, number>>
  /** Null: there was no credential to try a wrong password of. */
  readonly control: LoginControl | null
}

export type FoundLogin = Extract<VerifyFinding, { type: 'login' }>

/** Logins that came to the same. */
export interface Unverified {
  readonly protocol: Protocol
  readonly why: string
  readonly count: number
}

const MOST_LISTED = 100

interface Row {
  readonly counts: Record<LoginStanding, number>
  control: LoginControl | null
}

/** Sums up what `verifyBroker` finds on one broker; its size does not grow with the number of credentials. */
export class VerifySummary {
  readonly #rows = new Map<Protocol, Row>()
  readonly #rejected: FoundLogin[] = []
  readonly #unverified = new Map<string, { protocol: Protocol; why: string; count: number }>()

  add(finding: VerifyFinding): void {
    switch (finding.type) {
      case 'protocols':
        for (const protocol of finding.protocols) this.#row(protocol)
        return
      case 'control':
        this.#row(finding.control.protocol).control = finding.control
        return
      case 'login':
        this.#addLogin(finding)
        return
      default:
        finding satisfies never
    }
  }

  /** In the order in which the broker lists its protocols. */
  get protocols(): readonly ProtocolSummary[] {
    return [...this.#rows].map(([protocol, { counts, control }]) => ({ protocol, counts, control }))
  }

  /** The first of those that the broker rejected; `count` says how many there are. */
  get rejected(): readonly FoundLogin[] {
    return this.#rejected
  }

  /** The most common ones. */
  get unverified(): readonly Unverified[] {
    return [...this.#unverified.values()].sort((a, b) => b.count - a.count)
  }

  count(standing: LoginStanding): number {
    return this.protocols.reduce((sum, { counts }) => sum + counts[standing], 0)
  }

  /** Every login was accepted and nothing accepts anything; with `strict`, also that everything could be verified. */
  isGood({ strict }: { readonly strict: boolean }): boolean {
    const controls = this.protocols.map(({ control }) => control?.outcome)
    if (this.count('rejected') > 0 || controls.includes('accepts-anything')) return false
    return !strict || (this.count('not-verified') === 0 && !controls.includes('not-verified'))
  }

  #addLogin(finding: FoundLogin): void {
    const { protocol, verdict } = finding.login
    const standing = standingOf(verdict.outcome)
    this.#row(protocol).counts[standing] += 1
    if (standing === 'rejected' && this.#rejected.length < MOST_LISTED) this.#rejected.push(finding)
    if (standing === 'not-verified') this.#addUnverified(protocol, describeVerdict(verdict))
  }

  #addUnverified(protocol: Protocol, why: string): void {
    const isKnown = this.#unverified.has(JSON.stringify([protocol, why]))
    const told = isKnown || this.#unverified.size < MOST_LISTED ? why : 'for other reasons'
    const key = JSON.stringify([protocol, told])
    const known = this.#unverified.get(key)
    if (known === undefined) this.#unverified.set(key, { protocol, why: told, count: 1 })
    else known.count += 1
  }

  #row(protocol: Protocol): Row {
    const known = this.#rows.get(protocol)
    if (known !== undefined) return known
    const row: Row = { counts: { accepted: 0, rejected: 0, 'not-verified': 0 }, control: null }
    this.#rows.set(protocol, row)
    return row
  }
}

/** What a wrong password came to, for a person. */
export function describeControl(control: LoginControl | null): string {
  if (control === null) return 'not tried: no credential'
  switch (control.outcome) {
    case 'refused':
      return 'refuses a wrong password'
    case 'accepts-anything':
      return 'ACCEPTS ANYTHING'
    case 'not-verified':
      return `not verified${control.detail === '' ? '' : `: ${control.detail}`}`
    default: {
      const unreachable: never = control.outcome
      return unreachable
    }
  }
}
