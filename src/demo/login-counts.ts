import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { PROTOCOLS, type Protocol } from '../domain/catalogue.ts'
import { brokerId, consumerKey, registrationId } from '../domain/ids.ts'
import { Secret } from '../domain/secret.ts'
import { provesLogin } from '../domain/verdict.ts'
import { concurrently } from '../reconcile/concurrently.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** Of one protocol, over all brokers: how many stored passwords were taken, and how many wrong ones were refused. */
export interface LoginCount {
  readonly accepted: number
  readonly refusedWrong: number
}

export type LoginCounts = Readonly<Record<Protocol, LoginCount>>

const SIDE_BY_SIDE = 8
const TIMEOUT_MS = 10_000

/** Logs in with every credential on its broker over every protocol, once as stored and once with a wrong password. */
export async function countLogins(
  context: Context,
  { sandbox, brokers }: { readonly sandbox: Sandbox; readonly brokers: readonly string[] },
  signal: AbortSignal,
): Promise<LoginCounts> {
  // Every login that is under way listens to it.
  setMaxListeners(0, signal)
  const counts = new Map(PROTOCOLS.map((protocol) => [protocol, { accepted: 0, refusedWrong: 0 }]))
  const logins = (await credentialsOnBrokers(context)).flatMap((credential) => {
    const simulated = sandbox.broker(brokers.indexOf(credential.pair.brokerId))
    const { caCertificate, msgVpnName } = simulated
    return simulated.endpoints.map(({ protocol, port }) => ({
      credential,
      target: { protocol, port, host: 'localhost', msgVpnName, caCertificate },
    }))
  })
  await concurrently(logins, SIDE_BY_SIDE, async ({ credential: { pair, username }, target }) => {
    const stored = await context.reconcileStore.secret(pair, consumerKey(username))
    const count = counts.get(target.protocol)
    if (stored === null || count === undefined) return
    const limits = { timeoutMs: TIMEOUT_MS, signal }
    const right = await context.login.probe(target, { username, password: stored.secret }, limits)
    const wrong = await context.login.probe(target, { username, password: new Secret(randomUUID()) }, limits)
    if (provesLogin(right)) count.accepted += 1
    if (wrong.outcome === 'rejected') count.refusedWrong += 1
  })
  return Object.fromEntries(counts) as LoginCounts
}

/** Client usernames that the brokers confirmed, by the ledger. */
export async function credentialsOnBrokers({ db, accountId }: Context) {
  const { rows } = await sql<{ broker: string; registration: string; username: string }>`
    select l.broker_id as broker, l.registration_id as registration, l.name as username
    from ledger l join credentials c on c.account_id = l.account_id and c.consumer_key = l.name and c.retired_at is null
    where l.account_id = ${accountId} and l.kind = 'clientUsername' and l.applied is not null and l.withdrawn_at is null
    order by 1, 3`.execute(db)
  return rows.map(({ broker, registration, username }) => ({
    username,
    pair: { accountId, brokerId: brokerId(broker), registrationId: registrationId(registration) },
  }))
}
