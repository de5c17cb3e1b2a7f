import { type ObjectRef, objectKey } from '../domain/broker-object.ts'
import { codeOf } from '../domain/errors.ts'
import type { Action } from './plan.ts'
import type { RegistrationFacts } from './plan-registration.ts'
import type { BrokerPort } from './ports.ts'
import type { Confirmation, Pair, ReconcileStore } from './store-port.ts'

/**
 * Client usernames of ours whose credential is live no more and that the broker was not yet seen to have switched off.
 * Needs no desired state: what cannot be expressed or is refused for something else keeps none of them enabled.
 */
export function revokedUsernames({ registration, ledger, policy }: RegistrationFacts): readonly ObjectRef[] {
  // Any other mode changes nothing that exists.
  if (policy.mode !== 'full') return []
  const live = new Set<string>(registration.credentials.map(({ consumerKey }) => consumerKey))
  return ledger
    .filter(({ object, registrationId }) => object.kind === 'clientUsername' && registrationId !== null)
    .filter(({ object, applied }) => !live.has(object.name) && applied?.attributes.enabled !== false)
    .map(({ object }) => object)
}

export interface RevokeDependencies {
  readonly broker: Pick<BrokerPort, 'facts' | 'get' | 'update'>
  /** Throws when the write may not be made. */
  readonly beforeWrite: () => Promise<void>
  readonly signal?: AbortSignal | undefined
}

/**
 * Switches them off, side by side, and answers what was written. Throws the first failure after all were tried. Safe
 * without a lease: whoever holds it wants them off too, or may not write any more.
 */
export async function disableRevoked(
  { broker, beforeWrite, signal }: RevokeDependencies,
  facts: RegistrationFacts,
): Promise<readonly Action[]> {
  const revoked = revokedUsernames(facts)
  if (revoked.length === 0) return []
  await broker.facts(signal)
  const disabled: Action[] = []
  const results = await Promise.allSettled(
    revoked.map(async (ref) => {
      const observed = await broker.get(ref, signal)
      if (observed === null || observed.attributes.enabled === false) return
      await beforeWrite()
      await broker.update(ref, { enabled: false }, null, signal).catch((error: unknown) => {
        if (codeOf(error) !== 'NOT_FOUND') throw error
      })
      disabled.push(disabling(ref))
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return disabled
}

/** Not of a registration that leaves the broker: the guard against mass withdrawal has its say there. */
export async function disableStaying(
  dependencies: RevokeDependencies,
  facts: RegistrationFacts,
): Promise<readonly Action[]> {
  return facts.registration.accessRequests.length === 0 ? [] : disableRevoked(dependencies, facts)
}

export interface RevokedAtOnce {
  readonly disabled: readonly Action[]
  /** The first failure, or null. */
  readonly error: unknown
}

export const NOTHING_REVOKED: RevokedAtOnce = { disabled: [], error: null }

/** Not even behind the run that holds the lease: that one may not write any more, its generation is over. */
export async function revokeAtOnce(
  { store, broker }: { readonly store: Pick<ReconcileStore, 'facts'>; readonly broker: RevokeDependencies['broker'] },
  { pair, signal }: { readonly pair: Pair; readonly signal?: AbortSignal },
): Promise<RevokedAtOnce> {
  try {
    const facts = await store.facts(pair)
    if (facts === null) return NOTHING_REVOKED
    const beforeWrite = () => Promise.resolve()
    return { disabled: await disableRevoked({ broker, beforeWrite, signal }, facts), error: null }
  } catch (error) {
    return { disabled: [], error }
  }
}

const disabling = ({ kind, name }: ObjectRef): Action => ({
  type: 'update',
  kind,
  name,
  changes: { enabled: { before: true, after: false } },
  disables: [],
  reason: 'no-longer-wanted',
})

/** So that the next run knows it, and takes one that is on again for drift. */
export function confirmDisabled(
  { ledger }: Pick<RegistrationFacts, 'ledger'>,
  disabled: readonly Action[],
): readonly Confirmation[] {
  const names = new Set(disabled.map((action) => (action.type === 'update' ? objectKey(action) : '')))
  return ledger.flatMap(({ object, applied, confirmedCredentialVersion }) => {
    if (applied === null || !names.has(objectKey(object))) return []
    return {
      object,
      applied: { ...applied, attributes: { ...applied.attributes, enabled: false } },
      credentialVersion: confirmedCredentialVersion,
      passwordWritten: false,
      passwordReapplied: false,
    }
  })
}
