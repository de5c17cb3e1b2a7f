import { sql } from 'kysely'
import { Secret } from '../domain/secret.ts'
import type { Database } from './database.ts'
import { accessRequestContent, isoTime, registrationContent, revisionOf } from './import-content.ts'
import type { AccessRequestWrite, CredentialUpdate, NewCredential, RegistrationWrite } from './import-plan.ts'
import { inChunks } from './in-chunks.ts'
import type { RandomSource } from './random-source.ts'
import { credentialPlace, type Sealer } from './sealer-port.ts'

/** 62^24 keys: nobody meets or guesses one. */
export const CONSUMER_KEY_LENGTH = 24
const CONSUMER_SECRET_LENGTH = 40
const QUEUE_NONCE_LENGTH = 26

/** Generations are raised afterwards, by what was touched; a new registration begins at 0 for that. */
export async function writeRegistrations(
  db: Database,
  accountId: string,
  writes: readonly RegistrationWrite[],
): Promise<void> {
  await forgetDeletedRequests(
    db,
    accountId,
    writes.filter(({ isNew }) => isNew).map(({ registration }) => registration.id),
  )
  await inChunks(writes, (chunk) =>
    db
      .insertInto('registrations')
      .values(
        chunk.map(({ registration, isDeclared }) => ({
          account_id: accountId,
          id: registration.id,
          name: registration.name,
          source: registration.source,
          source_owner: registration.sourceOwner,
          application_domain_id: registration.applicationDomainId,
          filters: JSON.stringify(registration.filters),
          attributes: JSON.stringify(registration.attributes),
          declared: isDeclared,
          generation: 0,
          revision: revisionOf(registrationContent(registration)),
        })),
      )
      .onConflict((on) =>
        on.columns(['account_id', 'id']).doUpdateSet((eb) => ({
          name: eb.ref('excluded.name'),
          source: eb.ref('excluded.source'),
          source_owner: eb.ref('excluded.source_owner'),
          application_domain_id: eb.ref('excluded.application_domain_id'),
          filters: eb.ref('excluded.filters'),
          attributes: eb.ref('excluded.attributes'),
          declared: sql`excluded.declared or (registrations.declared and registrations.deleted_at is null)`,
          revision: eb.ref('excluded.revision'),
          created_at: sql`case when registrations.deleted_at is null then registrations.created_at else now() end`,
          updated_at: sql`now()`,
          deleted_at: null,
        })),
      )
      .execute(),
  )
}

/** A registration that comes back starts with the requests it brings. */
async function forgetDeletedRequests(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    delete from access_requests a using registrations r
    where a.account_id = ${accountId} and a.registration_id = any(${ids})
      and r.account_id = a.account_id and r.id = a.registration_id and r.deleted_at is not null`.execute(db)
}

const stays = sql`(excluded.state = 'APPROVED' and access_requests.approved_at is not null
  and access_requests.state in ('LIVE', 'ERROR'))`

/** A request that went LIVE or into ERROR while it was being written does not fall back to APPROVED. */
export function writeAccessRequests(
  db: Database,
  random: RandomSource,
  accountId: string,
  writes: readonly AccessRequestWrite[],
): Promise<void> {
  return inChunks(writes, (chunk) =>
    db
      .insertInto('access_requests')
      .values(
        chunk.map((request) => ({
          account_id: accountId,
          registration_id: request.registrationId,
          id: request.id,
          product_id: request.productId,
          product_version: request.productVersion,
          plan_id: request.planId,
          state: request.state,
          filters: JSON.stringify(request.filters),
          // Ignored for a request that has one.
          queue_nonce: random.token(QUEUE_NONCE_LENGTH),
          approved_at: dateOrNull(request.approvedAtMs),
          expires_at: dateOrNull(request.expiresAtMs),
          expired_at: dateOrNull(request.expiredAtMs),
          revision: revisionOf(accessRequestContent(request)),
        })),
      )
      .onConflict((on) =>
        on.columns(['account_id', 'registration_id', 'id']).doUpdateSet((eb) => ({
          product_id: eb.ref('excluded.product_id'),
          product_version: eb.ref('excluded.product_version'),
          plan_id: eb.ref('excluded.plan_id'),
          state: sql`case when ${stays} then access_requests.state else excluded.state end`,
          reason: sql`case when ${stays} then access_requests.reason end`,
          filters: eb.ref('excluded.filters'),
          approved_at: eb.ref('excluded.approved_at'),
          expires_at: eb.ref('excluded.expires_at'),
          expired_at: eb.ref('excluded.expired_at'),
          revision: eb.ref('excluded.revision'),
        })),
      )
      .execute(),
  )
}

/** Seals before anything is stored; what the writes leave open is generated. */
export async function insertCredentials(
  db: Database,
  { sealer, random }: { readonly sealer: Sealer; readonly random: RandomSource },
  accountId: string,
  writes: readonly NewCredential[],
): Promise<void> {
  await inChunks(writes, async (chunk) => {
    const rows = await Promise.all(
      chunk.map(async (credential) => {
        const id = random.id()
        const consumerKey = credential.consumerKey ?? random.token(CONSUMER_KEY_LENGTH)
        const secret = credential.secret ?? new Secret(random.token(CONSUMER_SECRET_LENGTH))
        return {
          account_id: accountId,
          registration_id: credential.registrationId,
          id,
          name: credential.name,
          consumer_key: consumerKey,
          secret: await sealer.seal(secret, credentialPlace(accountId, id, credential.secretVersion)),
          secret_version: credential.secretVersion,
          revision: credentialRevision(consumerKey, credential.secretVersion, credential.expiresAtMs),
          expires_at: dateOrNull(credential.expiresAtMs),
        }
      }),
    )
    await db.insertInto('credentials').values(rows).execute()
  })
}

/** New secrets and expiry times; a credential that had expired works again when its new expiry time allows. */
export async function updateCredentials(
  db: Database,
  sealer: Sealer,
  accountId: string,
  writes: readonly CredentialUpdate[],
): Promise<void> {
  await inChunks(writes, async (chunk) => {
    const rows = await Promise.all(
      chunk.map(async ({ id, secret, expiresAtMs, consumerKey, version }) => ({
        id,
        secret: secret === null ? null : await sealer.seal(secret, credentialPlace(accountId, id, version)),
        version,
        // A year of five digits has a sign and zeros before it in ISO 8601, which PostgreSQL does not read.
        expiresAt: isoTime(expiresAtMs)?.replace(/^\+0*/, '') ?? null,
        revision: credentialRevision(consumerKey, version, expiresAtMs),
      })),
    )
    await sql`
      update credentials c
      set secret = coalesce(w.secret, c.secret), secret_version = w.version, revision = w.revision,
          issued_at = case when w.secret is null then c.issued_at else now() end,
          expires_at = w."expiresAt",
          retired_at = case when w."expiresAt" is null or w."expiresAt" > now() then null else c.retired_at end
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as w(id text, secret text, version integer, "expiresAt" timestamptz, revision text)
      where c.account_id = ${accountId} and c.id = w.id`.execute(db)
  })
}

/** Without the secret: nothing derived from it is stored beside the sealed one. */
const credentialRevision = (consumerKey: string, version: number, expiresAtMs: number | null): string =>
  revisionOf({ consumerKey, version, expiresAt: isoTime(expiresAtMs) })

export async function retireCredentials(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update credentials set retired_at = now()
    where account_id = ${accountId} and id = any(${ids}) and retired_at is null`.execute(db)
}

/** Soft: the row stays until the brokers are clean. */
export async function deleteRegistrations(db: Database, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update credentials set retired_at = now()
    where account_id = ${accountId} and registration_id = any(${ids}) and retired_at is null`.execute(db)
  await sql`
    update access_requests set state = 'REVOKED', approved_at = null, reason = null
    where account_id = ${accountId} and registration_id = any(${ids}) and state <> 'REVOKED'`.execute(db)
  await sql`
    update registrations set deleted_at = now(), updated_at = now()
    where account_id = ${accountId} and id = any(${ids}) and deleted_at is null`.execute(db)
}

export async function deleteAccessRequests(
  db: Database,
  accountId: string,
  keys: readonly { readonly registrationId: string; readonly id: string }[],
): Promise<void> {
  if (keys.length === 0) return
  await sql`
    delete from access_requests a
    using jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as w("registrationId" text, id text)
    where a.account_id = ${accountId} and a.registration_id = w."registrationId" and a.id = w.id`.execute(db)
}

const dateOrNull = (timeMs: number | null): Date | null => (timeMs === null ? null : new Date(timeMs))
