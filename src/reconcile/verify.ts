import { objectKey } from '../domain/broker-object.ts'
import type { Protocol } from '../domain/catalogue.ts'
import { type ConsumerKey, consumerKey } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import { blocksLive, provesLogin, type Verdict } from '../domain/verdict.ts'
import { type Action, actionRef } from './plan.ts'
import type { PlannedRegistration } from './plan-registration.ts'
import type { DriftRecord, LoginControl, LoginRecord, Pair, ReconcileStore } from './store-port.ts'
import type { BrokerKey } from './sweep-port.ts'

/** A credential to log in with, and over what. */
export interface CredentialToProve {
  readonly consumerKey: ConsumerKey
  readonly version: number
  readonly secret: Secret
  readonly protocols: readonly Protocol[]
}

/** Logs in to brokers at the pace that each of them allows. */
export interface Verifier {
  /** What the broker exposes and nobody switched off; empty when there is nothing to log in to. */
  protocols(broker: BrokerKey): Promise<readonly Protocol[]>
  /** One record per credential and protocol. Throws only when the store or the broker's management side does. */
  prove(
    broker: BrokerKey,
    credentials: readonly CredentialToProve[],
    options?: ProveOptions,
  ): Promise<readonly LoginRecord[]>
  /** Tries a wrong password of the client username over the protocol now, and keeps what it came to. */
  control(broker: BrokerKey, attempt: ControlAttempt, signal?: AbortSignal): Promise<LoginControl>
}

export interface ControlAttempt {
  readonly protocol: Protocol
  readonly consumerKey: ConsumerKey
}

export interface ProveOptions {
  readonly signal?: AbortSignal
  /** Called again and again while logins wait for their turn. */
  readonly meanwhile?: { readonly everyMs: number; readonly task: () => Promise<unknown> }
}

export interface VerifyRequest extends ProveOptions {
  readonly pair: Pair
  readonly planned: PlannedRegistration
  readonly executed: readonly Action[]
}

/**
 * The logins of one registration after its apply: all credentials over all protocols when something was written, else
 * what was never proved in this version, or was refused the last time.
 */
export async function verifyLogins(
  { verifier, store }: { readonly verifier: Verifier; readonly store: Pick<ReconcileStore, 'logins' | 'secret'> },
  { pair, planned, executed, ...options }: VerifyRequest,
): Promise<readonly LoginRecord[]> {
  const ready = readyCredentials(planned)
  if (ready.length === 0) return []
  const protocols = await verifier.protocols(pair)
  if (protocols.length === 0) return []
  const known = executed.length > 0 ? [] : await store.logins(pair)
  const open = ready.flatMap(({ key, version }) => {
    const wanted = openProtocols(
      protocols,
      known.filter(({ consumerKey: each }) => each === key),
      version,
    )
    return wanted.length === 0 ? [] : [{ key, version, protocols: wanted }]
  })
  const credentials = await Promise.all(
    open.map(async ({ key, version, protocols: wanted }): Promise<readonly CredentialToProve[]> => {
      const stored = await store.secret(pair, key)
      // A newer secret raised the generation: the run that brings it to the broker proves it.
      return stored?.version === version
        ? [{ consumerKey: key, version, secret: stored.secret, protocols: wanted }]
        : []
    }),
  )
  const toProve = credentials.flat()
  return toProve.length === 0 ? [] : verifier.prove(pair, toProve, options)
}

/** Client usernames on which nothing is held and that are ours. */
function readyCredentials({ plan, desired }: PlannedRegistration): readonly { key: ConsumerKey; version: number }[] {
  if (plan.refused !== null) return []
  const blocked = new Set([
    ...plan.conflicts.map(({ object }) => objectKey(object)),
    ...plan.steps.filter(({ decision }) => decision === 'held').map(({ action }) => objectKey(actionRef(action))),
  ])
  return Object.entries(desired.credentialVersions)
    .filter(([name]) => !blocked.has(objectKey({ kind: 'clientUsername', name })))
    .map(([name, version]) => ({ key: consumerKey(name), version }))
}

/** After a refusal all of them: only beside one that is taken does it show that the password is right. */
function openProtocols(
  protocols: readonly Protocol[],
  known: readonly LoginRecord[],
  version: number,
): readonly Protocol[] {
  const ofVersion = known.filter(({ credentialVersion }) => credentialVersion === version)
  if (ofVersion.some(({ verdict }) => blocksLive(verdict))) return protocols
  return protocols.filter((protocol) => !ofVersion.some((login) => login.protocol === protocol))
}

/** What the logins of one run come to. */
export type LoginsOutcome =
  | { readonly result: 'good' }
  /** Refused with the confirmed password, which is to be written once more. */
  | { readonly result: 'reapply'; readonly reason: string }
  /** A person has to look: writing the password again cannot help, or did not. */
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'disabled'; readonly reason: string }

/** Pure. `reapplied` tells of a client username whether its password was written again for this refusal already. */
export function loginsOutcome(
  logins: readonly LoginRecord[],
  reapplied: (clientUsername: string) => boolean,
): LoginsOutcome {
  const refused = logins.find(({ verdict }) => verdict.outcome === 'rejected')
  if (refused !== undefined) {
    const { consumerKey: name, protocol, verdict } = refused
    const proved = provedOver(logins, name)
    const said = `The broker rejects the login of client username ${name} over ${protocol} (${describeVerdict(verdict)})`
    if (proved !== null) {
      const reason = `${said}, though it accepts the same password over ${proved}. Check who may log in over ${protocol}.`
      return { result: 'refused', reason }
    }
    if (!reapplied(name)) return { result: 'reapply', reason: `${said}. The password is written again.` }
    const reason = `${said}, though the password was written again. Check the authentication settings of the message VPN; \`keymesh reapply\` writes it once more.`
    return { result: 'refused', reason }
  }
  const disabled = logins.find(({ verdict }) => verdict.outcome === 'disabled')
  if (disabled === undefined) return { result: 'good' }
  const reason = `The broker says over ${disabled.protocol} that client username ${disabled.consumerKey} is shut down, though it was just enabled. It is looked at again.`
  return { result: 'disabled', reason }
}

/** The protocol over which the broker took the same password, or null. */
const provedOver = (logins: readonly LoginRecord[], key: ConsumerKey): Protocol | null =>
  logins.find(({ consumerKey: other, verdict }) => other === key && provesLogin(verdict))?.protocol ?? null

/** Short text for a person, such as `not verified: dns, no such host`. */
export function describeVerdict(verdict: Verdict): string {
  switch (verdict.outcome) {
    case 'accepted':
      return 'accepted'
    case 'not-verified':
      return `not verified: ${verdict.reason}${verdict.detail === '' ? '' : `, ${verdict.detail}`}`
    case 'denied':
    case 'rejected':
    case 'disabled':
    case 'vpn-unknown':
    case 'vpn-down':
    case 'busy':
      return verdict.detail === '' ? verdict.outcome : `${verdict.outcome}: ${verdict.detail}`
    default: {
      const unreachable: never = verdict
      return unreachable
    }
  }
}

/** A password that was written again is on record with what logins said before and after it. */
export function withVerdicts(
  records: readonly DriftRecord[],
  { before, logins }: { readonly before: readonly LoginRecord[]; readonly logins: readonly LoginRecord[] },
): readonly DriftRecord[] {
  return records.map((record) => {
    if (record.drift.kind !== 'password') return record
    const { name } = record.drift.object
    const refused = before.filter(({ consumerKey: key, verdict }) => key === name && verdict.outcome === 'rejected')
    const after = logins.filter(({ consumerKey: key }) => key === name)
    const isRefusedStill = after.some(({ verdict }) => verdict.outcome === 'rejected')
    const drift = {
      ...record.drift,
      before: refused.length === 0 ? record.drift.before : verdictsByProtocol(refused),
      after: verdictsByProtocol(after),
    }
    return { drift, action: isRefusedStill && record.action === 'repaired' ? 'failed' : record.action }
  })
}

const verdictsByProtocol = (logins: readonly LoginRecord[]): Readonly<Record<string, string>> =>
  Object.fromEntries(logins.map(({ protocol, verdict }) => [`login over ${protocol}`, describeVerdict(verdict)]))
