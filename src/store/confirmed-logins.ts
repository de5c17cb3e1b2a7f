import { sql } from 'kysely'
import { consumerKey, type RegistrationId, registrationId } from '../domain/ids.ts'
import type { BrokerKey, ConfirmedLogin } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

const CHUNK = 100

/** See `SweepStore.confirmedLogins`. Keyset pages: memory does not grow with the broker. */
export async function* confirmedLogins(
  db: Database,
  { accountId, brokerId }: BrokerKey,
  registration: RegistrationId | null,
  signal?: AbortSignal,
): AsyncIterable<readonly ConfirmedLogin[]> {
  let after = ''
  for (;;) {
    signal?.throwIfAborted()
    const { rows } = await sql<{ registration: string; key: string; version: number }>`
      select c.registration_id as registration, c.consumer_key as key, c.secret_version as version
      from pairs p
      join credentials c on c.account_id = p.account_id and c.registration_id = p.registration_id and c.retired_at is null
      join ledger l on l.account_id = p.account_id and l.broker_id = p.broker_id and l.kind = 'clientUsername'
        and l.name = c.consumer_key and l.registration_id = p.registration_id
        and l.confirmed_credential_version = c.secret_version and l.withdrawn_at is null
      where p.account_id = ${accountId} and p.broker_id = ${brokerId} and p.wanted
        and (${registration}::text is null or p.registration_id = ${registration})
        and c.consumer_key > ${after}
      order by c.consumer_key limit ${CHUNK}`.execute(db)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map((row) => ({
      pair: { accountId, brokerId, registrationId: registrationId(row.registration) },
      consumerKey: consumerKey(row.key),
      version: row.version,
    }))
    after = last.key
  }
}
