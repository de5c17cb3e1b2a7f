import type { Protocol } from '../domain/catalogue.ts'
import type { LoginRecord, Pair, ReconcileStore } from './store-port.ts'
import type { BrokerKey, ConfirmedLogin, SweepStore } from './sweep-port.ts'
import type { CredentialToProve, Verifier } from './verify.ts'

export interface ProveConfirmedDependencies {
  readonly verifier: Verifier
  readonly store: Pick<ReconcileStore, 'secret'>
  readonly sweepStore: Pick<SweepStore, 'recordLogins'>
}

export interface LoginOfPair {
  readonly pair: Pair
  readonly login: LoginRecord
}

/** Logs in with credentials that the broker has confirmed, of any registrations, and keeps the verdicts. */
export async function proveConfirmed<Confirmed extends ConfirmedLogin>(
  { verifier, store, sweepStore }: ProveConfirmedDependencies,
  broker: BrokerKey,
  confirmed: readonly Confirmed[],
  {
    protocolsOf,
    signal,
  }: { readonly protocolsOf: (login: Confirmed) => readonly Protocol[]; readonly signal?: AbortSignal },
): Promise<readonly LoginOfPair[]> {
  const credentials = await Promise.all(
    confirmed.map(async (login): Promise<readonly CredentialToProve[]> => {
      const { pair, consumerKey, version } = login
      const stored = await store.secret(pair, consumerKey)
      // A newer secret is proved by the run that brings it to the broker.
      if (stored?.version !== version) return []
      return [{ consumerKey, version, secret: stored.secret, protocols: protocolsOf(login) }]
    }),
  )
  const pairOf = new Map(confirmed.map(({ consumerKey, pair }) => [consumerKey, pair]))
  const logins = (await verifier.prove(broker, credentials.flat(), signal && { signal })).flatMap((login) => {
    const pair = pairOf.get(login.consumerKey)
    return pair === undefined ? [] : [{ pair, login }]
  })
  signal?.throwIfAborted()
  await sweepStore.recordLogins(logins)
  return logins
}
