import type { Protocol } from '../domain/catalogue.ts'
import type { RegistrationId } from '../domain/ids.ts'
import { concurrently } from './concurrently.ts'
import { type ProveConfirmedDependencies, proveConfirmed } from './prove-confirmed.ts'
import type { BrokerKey, DueLogin, SweepStore } from './sweep-port.ts'

export interface RotationDependencies extends ProveConfirmedDependencies {
  readonly sweepStore: Pick<SweepStore, 'dueLogins' | 'recordLogins'>
  readonly now: () => number
  /** Each credential is proved once in this time. */
  readonly proveEveryMs: number
}

export interface Rotation {
  readonly probed: number
  /** Registrations with a login that the broker refused: their passwords are to be written again. */
  readonly refused: ReadonlySet<RegistrationId>
}

/** The most that one sweep probes, and how many verdicts are kept at a time. */
const MOST_PER_SWEEP = 20_000
const TOGETHER = 50

/** Proves the credentials whose turn has come, each over the one protocol that waited longest. Writes to no broker. */
export async function rotateLogins(
  { verifier, store, sweepStore, now, proveEveryMs }: RotationDependencies,
  broker: BrokerKey,
  signal?: AbortSignal,
): Promise<Rotation> {
  const protocols = await verifier.protocols(broker)
  if (protocols.length === 0) return { probed: 0, refused: new Set() }
  const due = await sweepStore.dueLogins(broker, { nowMs: now(), periodMs: proveEveryMs, limit: MOST_PER_SWEEP })
  const refused = new Set<RegistrationId>()
  let probed = 0

  const probe = async (chunk: readonly DueLogin[]): Promise<void> => {
    signal?.throwIfAborted()
    const logins = await proveConfirmed({ verifier, store, sweepStore }, broker, chunk, {
      protocolsOf: ({ checkedAtMs }) => [longestAgo(protocols, checkedAtMs)],
      ...(signal && { signal }),
    })
    probed += logins.length
    for (const { pair, login } of logins) if (login.verdict.outcome === 'rejected') refused.add(pair.registrationId)
  }
  await concurrently(chunks(due), 2, probe)
  return { probed, refused }
}

/** Never before first, then the longest ago; in the broker's order among equals. */
export function longestAgo(
  protocols: readonly Protocol[],
  checkedAtMs: Readonly<Partial<Record<Protocol, number>>>,
): Protocol {
  const [first, ...others] = protocols
  if (first === undefined) throw new TypeError('there is no protocol to choose from')
  const at = (protocol: Protocol): number => checkedAtMs[protocol] ?? Number.NEGATIVE_INFINITY
  return others.reduce((oldest, protocol) => (at(protocol) < at(oldest) ? protocol : oldest), first)
}

function* chunks(due: readonly DueLogin[]): Iterable<readonly DueLogin[]> {
  for (let start = 0; start < due.length; start += TOGETHER) yield due.slice(start, start + TOGETHER)
}
