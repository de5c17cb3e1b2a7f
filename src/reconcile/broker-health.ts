import { codeOf } from '../domain/errors.ts'

/**
 * Whether a broker takes work: `closed` is the good state, as of a circuit. `open` rests until `retryAtMs`; then one run
 * alone, the prober, finds out. A prober that dies gives way when its time is over, so no broker rests for ever.
 */
export type BrokerHealth =
  | { readonly state: 'closed'; readonly failures: number }
  | { readonly state: 'open'; readonly failures: number; readonly retryAtMs: number }
  | { readonly state: 'half-open'; readonly failures: number; readonly prober: string; readonly proberUntilMs: number }

export const HEALTHY: BrokerHealth = { state: 'closed', failures: 0 }

/** Failures in a row after which a broker rests. */
const OPENS_AFTER = 5
const REST_BASE_MS = 5_000
/** No rest is longer. */
export const REST_CAP_MS = 2 * 60_000
/** How long the prober has the broker to itself. */
export const PROBER_MS = 60_000

export type Admission =
  | { readonly to: 'run' }
  /** Only for who then writes itself into the store as the prober. */
  | { readonly to: 'probe' }
  /** `isTried`: a prober is at work, and may know more in a moment. */
  | { readonly to: 'rest'; readonly untilMs: number; readonly isTried: boolean }

export function admission(health: BrokerHealth, nowMs: number): Admission {
  switch (health.state) {
    case 'closed':
      return { to: 'run' }
    case 'open':
      return until({ endMs: health.retryAtMs, longestMs: REST_CAP_MS, isTried: false }, nowMs)
    case 'half-open':
      return until({ endMs: health.proberUntilMs, longestMs: PROBER_MS, isTried: true }, nowMs)
    default: {
      const unreachable: never = health
      return unreachable
    }
  }
}

interface Rest {
  readonly endMs: number
  readonly longestMs: number
  readonly isTried: boolean
}

/** More than `longestMs` is left when the clock was set back: that rest is over. */
function until({ endMs, longestMs, isTried }: Rest, nowMs: number): Admission {
  const isOver = nowMs >= endMs || endMs - nowMs > longestMs
  return isOver ? { to: 'probe' } : { to: 'rest', untilMs: endMs, isTried }
}

/** `prober` is who failed, when it was the prober. `random` is in [0, 1). */
export function afterFailure(
  health: BrokerHealth,
  { nowMs, random, prober }: { readonly nowMs: number; readonly random: number; readonly prober: string | null },
): BrokerHealth {
  const failures = health.failures + 1
  switch (health.state) {
    case 'closed':
      return failures < OPENS_AFTER ? { state: 'closed', failures } : opened(failures, nowMs, random)
    case 'open':
      // Began before the broker was found to be sick, and says nothing new.
      return health
    case 'half-open':
      return health.prober === prober ? opened(failures, nowMs, random) : health
    default: {
      const unreachable: never = health
      return unreachable
    }
  }
}

function opened(failures: number, nowMs: number, random: number): BrokerHealth {
  const fullMs = Math.min(REST_CAP_MS, REST_BASE_MS * 2 ** Math.min(20, failures - OPENS_AFTER))
  return { state: 'open', failures, retryAtMs: nowMs + Math.round(fullMs * (0.75 + random / 4)) }
}

/** The broker itself did not answer as it should: any other work there would meet the same. */
export const isBrokerTrouble = (error: unknown): boolean => TROUBLE.has(codeOf(error))

const TROUBLE: ReadonlySet<string> = new Set([
  'BROKER_ANSWER_TOO_LARGE',
  'BROKER_ANSWER_UNEXPECTED',
  'BROKER_CONNECTION_FAILED',
  'BROKER_CONNECTION_LOST',
  'BROKER_GATEWAY_ERROR',
  'BROKER_INTERNAL_ERROR',
  'BROKER_NAME_UNRESOLVED',
  'BROKER_TIMEOUT',
  'BROKER_TLS_UNTRUSTED',
  'BROKER_TOO_MANY_REQUESTS',
  'BROKER_UNAVAILABLE',
  'BROKER_UNREACHABLE',
  'MSG_VPN_NOT_FOUND',
  'SEMP_FAILED',
  'SEMP_LOGIN_REFUSED',
  'SEMP_SESSIONS_EXHAUSTED',
  'SEMP_TIME_OUT',
])
