import type { Protocol } from '../domain/catalogue.ts'
import type { RegistrationId } from '../domain/ids.ts'
import { provesLogin } from '../domain/verdict.ts'
import { inOrder } from './concurrently.ts'
import { type ProveConfirmedDependencies, proveConfirmed } from './prove-confirmed.ts'
import type { LoginControl, LoginRecord, Pair } from './store-port.ts'
import type { BrokerKey, SweepStore } from './sweep-port.ts'
import type { Verifier } from './verify.ts'

/** A slow login holds up those after its chunk no longer than this many chunks take. */
const CHUNKS_AT_ONCE = 4

export interface VerifyBrokerDependencies extends ProveConfirmedDependencies {
  readonly sweepStore: Pick<SweepStore, 'confirmedLogins' | 'recordLogins'>
}

export interface VerifyBrokerRequest {
  readonly broker: BrokerKey
  /** Only its credentials; all when absent. */
  readonly registrationId?: RegistrationId
  /** Only over this one; over all that the broker exposes when absent. */
  readonly protocol?: Protocol
  readonly signal?: AbortSignal
}

export type VerifyFinding =
  /** Comes first: what will be logged in over. Empty: the broker exposes nothing of it, or its logins are off. */
  | { readonly type: 'protocols'; readonly protocols: readonly Protocol[] }
  /** Once per protocol, when there is a credential to try a wrong password of. */
  | { readonly type: 'control'; readonly control: LoginControl }
  | { readonly type: 'login'; readonly pair: Pair; readonly login: LoginRecord }

/**
 * Logs in now with every credential whose password the broker has confirmed, and tries a wrong password over each
 * protocol. Verdicts are kept; nothing is written to the broker. Chunk by chunk: memory does not grow with the broker.
 */
export async function* verifyBroker(
  { verifier, store, sweepStore }: VerifyBrokerDependencies,
  { broker, registrationId, protocol, signal }: VerifyBrokerRequest,
): AsyncIterable<VerifyFinding> {
  const exposed = await verifier.protocols(broker)
  const protocols = exposed.filter((each) => protocol === undefined || each === protocol)
  yield { type: 'protocols', protocols }
  if (protocols.length === 0) return
  const prove = { protocolsOf: () => protocols, ...(signal && { signal }) }
  const chunks = sweepStore.confirmedLogins(broker, registrationId ?? null, signal)
  let isFirst = true
  for await (const logins of inOrder(chunks, CHUNKS_AT_ONCE, (chunk) =>
    proveConfirmed({ verifier, store, sweepStore }, broker, chunk, prove),
  )) {
    for (const { pair, login } of logins) yield { type: 'login', pair, login }
    if (!isFirst || logins.length === 0) continue
    isFirst = false
    yield* tryWrongPasswords(verifier, broker, {
      protocols,
      logins: logins.map(({ login }) => login),
      ...(signal && { signal }),
    })
  }
}

interface WrongPasswords {
  readonly protocols: readonly Protocol[]
  readonly logins: readonly LoginRecord[]
  readonly signal?: AbortSignal
}

/** Of a credential whose own password was just taken, where there is one: then the refusal is about the password. */
async function* tryWrongPasswords(
  verifier: Verifier,
  broker: BrokerKey,
  { protocols, logins, signal }: WrongPasswords,
): AsyncIterable<VerifyFinding> {
  for (const protocol of protocols) {
    const tried = logins.filter((login) => login.protocol === protocol)
    const chosen = tried.find(({ verdict }) => provesLogin(verdict)) ?? tried[0]
    if (chosen === undefined) continue
    const control = await verifier.control(broker, { protocol, consumerKey: chosen.consumerKey }, signal)
    signal?.throwIfAborted()
    yield { type: 'control', control }
  }
}
