/** What a login with a stored credential came to. Only the broker's explicit answer is anything but `not-verified`. */
export type Verdict =
  | { readonly outcome: 'accepted' }
  /** The login is good; the topic of the probe, or the address of the client, is not allowed. */
  | { readonly outcome: 'denied'; readonly detail: string }
  | { readonly outcome: 'rejected'; readonly detail: string }
  /** The broker says that the client username is shut down. */
  | { readonly outcome: 'disabled'; readonly detail: string }
  | { readonly outcome: 'vpn-unknown'; readonly detail: string }
  | { readonly outcome: 'vpn-down'; readonly detail: string }
  /** Too many connections, or a broker that says it cannot serve now. */
  | { readonly outcome: 'busy'; readonly detail: string }
  | { readonly outcome: 'not-verified'; readonly reason: NotVerifiedReason; readonly detail: string }

export const VERDICT_OUTCOMES = [
  'accepted',
  'denied',
  'rejected',
  'disabled',
  'vpn-unknown',
  'vpn-down',
  'busy',
  'not-verified',
] as const satisfies readonly Verdict['outcome'][]
export type VerdictOutcome = Verdict['outcome']

/** Why nothing was proved. The four of TLS tell what the certificate lacks. */
export const NOT_VERIFIED_REASONS = [
  'dns',
  'refused',
  'timeout',
  'closed',
  'tls-untrusted',
  'tls-expired',
  'tls-wrong-name',
  'tls-failed',
  'protocol',
  'client-not-installed',
  'bad-input',
  'authentication-type',
  'connection-limit',
  'switched-off',
  'unknown',
] as const
export type NotVerifiedReason = (typeof NOT_VERIFIED_REASONS)[number]

export const notVerified = (reason: NotVerifiedReason, detail: string): Verdict => ({
  outcome: 'not-verified',
  reason,
  detail,
})

/** The password is right, whatever else the broker thinks of the client. */
export const provesLogin = (verdict: Verdict): boolean => verdict.outcome === 'accepted' || verdict.outcome === 'denied'

/** A credential with such a verdict does not work for its owner: it holds back LIVE. */
export const blocksLive = (verdict: Verdict): boolean =>
  verdict.outcome === 'rejected' || verdict.outcome === 'disabled'

/** What an outcome says to the owner of the credential: it logs in, it does not, or nobody knows. */
export type LoginStanding = 'accepted' | 'rejected' | 'not-verified'

export function standingOf(outcome: VerdictOutcome): LoginStanding {
  switch (outcome) {
    case 'accepted':
    case 'denied':
      return 'accepted'
    case 'rejected':
    case 'disabled':
    case 'vpn-unknown':
    case 'vpn-down':
      return 'rejected'
    case 'busy':
    case 'not-verified':
      return 'not-verified'
    default: {
      const unreachable: never = outcome
      return unreachable
    }
  }
}

/** The endpoint itself did not answer: the next probe of any credential would meet the same. */
export const isEndpointTrouble = (verdict: Verdict): boolean =>
  verdict.outcome === 'not-verified' && ENDPOINT_TROUBLE.has(verdict.reason)

const ENDPOINT_TROUBLE: ReadonlySet<NotVerifiedReason> = new Set([
  'dns',
  'refused',
  'timeout',
  'tls-untrusted',
  'tls-expired',
  'tls-wrong-name',
  'tls-failed',
  'protocol',
  'client-not-installed',
])

/** What a deliberately wrong password came to: only `refused` makes an accepted login a proof. */
export const NEGATIVE_CONTROLS = ['refused', 'accepts-anything', 'not-verified'] as const
export type NegativeControl = (typeof NEGATIVE_CONTROLS)[number]

export function controlOf(verdict: Verdict): NegativeControl {
  if (provesLogin(verdict)) return 'accepts-anything'
  return verdict.outcome === 'rejected' ? 'refused' : 'not-verified'
}
