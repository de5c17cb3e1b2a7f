import type { Protocol } from '../domain/catalogue.ts'
import type { Secret } from '../domain/secret.ts'
import type { Verdict } from '../domain/verdict.ts'

/** Where and how a client logs in. */
export interface LoginTarget {
  readonly protocol: Protocol
  readonly host: string
  readonly port: number
  /** Sent by SMF alone; the other protocols have a port per message VPN. */
  readonly msgVpnName: string
  /** PEM certificates that the listener's certificate must chain to; the system's when absent. */
  readonly caCertificate?: string
}

export interface LoginAttempt {
  readonly username: string
  readonly password: Secret
}

export interface ProbeLimits {
  /** From the call to the verdict, name look-up and goodbye included. */
  readonly timeoutMs: number
  /** An aborted probe ends at once with `not-verified`, reason `timeout`. */
  readonly signal?: AbortSignal
}

/**
 * A messaging client that logs in once and leaves. Never throws, never retries, never outlives its deadline, leaves
 * nothing open, and has no secret in its verdict.
 */
export interface LoginPort {
  probe(target: LoginTarget, attempt: LoginAttempt, limits: ProbeLimits): Promise<Verdict>
}
