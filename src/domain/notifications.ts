import { isAddress, isRefusedAddress, type Network } from './refused-addresses.ts'

/** What operators are told of, by name in subscriptions and payloads. */
export const NOTIFICATION_KINDS = [
  'drift.found',
  'drift.unrepairable',
  'broker.down',
  'broker.back',
  'credential.expiring',
  'access-request.waiting',
] as const
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number]

/** `test` is sent on request and cannot be subscribed to. */
export type SentKind = NotificationKind | 'test'

/** Most notifications that one delivery lists; the others are counted. */
export const MAX_LISTED = 100

/**
 * How many of each kind a digest lists when it cannot list all: kinds share the places evenly, and what one does not need
 * goes to the others, so that a wave of one kind does not hide a single notification of another.
 */
export function listedOf<Kind extends string>(
  counts: ReadonlyMap<Kind, number>,
  places: number,
): ReadonlyMap<Kind, number> {
  const listed = new Map<Kind, number>()
  let left = Math.max(0, places)
  const waiting = [...counts].sort(([, one], [, other]) => one - other)
  waiting.forEach(([kind, count], index) => {
    const share = Math.min(count, Math.floor(left / (waiting.length - index)))
    listed.set(kind, share)
    left -= share
  })
  return listed
}

const RETRY_BASE_MS = 10_000
const RETRY_CAP_MS = 3_600_000

/**
 * Until a delivery is tried again: exponential up to an hour, jittered over the upper half, so that what failed together
 * does not return together. `attempts` is 1 after the first failure; `random` is in [0, 1). A receiver that names a
 * longer time is given that, up to the hour.
 */
export function retryDelayMs(attempts: number, random: number, askedMs: number | null = null): number {
  const fullMs = Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 2 ** Math.min(20, attempts - 1))
  const delayMs = Math.round(fullMs * (0.5 + random / 2))
  return Math.max(delayMs, Math.min(askedMs ?? 0, RETRY_CAP_MS))
}

/** What came of one attempt to deliver. */
export type DeliveryAttempt =
  | { readonly outcome: 'delivered'; readonly status: number }
  /** The receiver refused this one (a 4xx); others may fare better. */
  | { readonly outcome: 'refused'; readonly status: number; readonly message: string }
  /** The receiver asks for no more: HTTP 410. */
  | { readonly outcome: 'gone'; readonly status: number; readonly message: string }
  /** The receiver is unreachable, failing or busy: any other delivery would meet the same. */
  | {
      readonly outcome: 'failed'
      readonly status: number | null
      readonly message: string
      readonly retryAfterMs: number | null
    }

export interface ReceiverRules {
  readonly allowHttp: boolean
  /** Networks that are sent to although they are private. */
  readonly allowed: readonly Network[]
}

/**
 * Why nothing may be sent to a URL, to be put after its name; null when nothing in the URL itself speaks against it. A
 * name is judged by the addresses that it leads to when a connection is made.
 */
export function receiverProblem(
  { protocol, hostname, hash }: URL,
  { allowHttp, allowed }: ReceiverRules,
): string | null {
  if (protocol !== 'https:' && protocol !== 'http:') return 'must begin with https://'
  if (protocol === 'http:' && !allowHttp) return 'must begin with https:// (KEYMESH_NOTIFICATION_HTTP allows http://)'
  if (hash !== '') return 'must not have a fragment'
  if (isAddress(hostname) && isRefusedAddress(hostname, allowed)) {
    return 'leads to a private or reserved address, which KEYMESH_NOTIFICATION_NETWORKS does not allow'
  }
  return null
}
