import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { z } from 'zod'
import { InvalidInputError } from '../domain/errors.ts'
import type { AccountId } from '../domain/ids.ts'
import type { NotificationKind } from '../domain/notifications.ts'
import { conflict, notFound } from '../domain/refusals.ts'
import { Secret } from '../domain/secret.ts'
import type { Database } from './database.ts'
import {
  type EndpointAnswer,
  type EndpointPlace,
  type EndpointRow,
  endpointRevision,
  requireEndpoint,
} from './notification-endpoints-view.ts'
import type { RandomSource } from './random-source.ts'
import { notificationEndpointPlace, type Sealer } from './sealer-port.ts'

/** As many as an account can have: each of them gets a row for each fact. */
export const MAX_ENDPOINTS = 20
const SIGNING_BYTES = 32
const MAX_OVERLAPS = 3

/** What is sealed of an endpoint. */
const endpointSecrets = z.strictObject({
  url: z.string(),
  signing: z.string(),
  /** Older signing secrets that still sign. */
  previous: z.array(z.strictObject({ signing: z.string(), untilMs: z.number() })),
})
export type EndpointSecrets = z.infer<typeof endpointSecrets>

export interface EndpointWriter {
  readonly db: Database
  readonly sealer: Sealer
  readonly random: RandomSource
}

export interface GivenEndpoint {
  readonly name: string
  readonly url: Secret
  readonly kinds: readonly NotificationKind[]
  readonly enabled: boolean
}

/** The URL as it may be shown: its path is, its user, password and query are not. */
export const shownAddress = (url: Secret): string => {
  const { origin, pathname, search } = new URL(url.reveal())
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}

/** As Standard Webhooks writes them: `whsec_` and the key in base64. */
const newSigningSecret = (): string => `whsec_${randomBytes(SIGNING_BYTES).toString('base64')}`

/** The signing secret is shown here and when it is rotated, never again. Throws InvalidInputError or CONFLICT. */
export async function createEndpoint(
  { db, sealer, random }: EndpointWriter,
  accountId: AccountId,
  given: GivenEndpoint,
): Promise<EndpointAnswer & { readonly signingSecret: Secret }> {
  const id = random.id()
  const signing = newSigningSecret()
  const secrets = await sealed(sealer, { accountId, endpointId: id }, 1, {
    url: given.url.reveal(),
    signing,
    previous: [],
  })
  return await db.transaction().execute(async (trx) => {
    await lockEndpoints(trx, accountId)
    const rows = await trx
      .selectFrom('notification_endpoints')
      .select('name')
      .where('account_id', '=', accountId)
      .execute()
    if (rows.length >= MAX_ENDPOINTS) {
      throw conflict(`The account has ${MAX_ENDPOINTS} notification endpoints, which is the most it can have.`)
    }
    if (rows.some(({ name }) => name === given.name)) throw nameTaken()
    await trx
      .insertInto('notification_endpoints')
      .values({
        account_id: accountId,
        id,
        name: given.name,
        kinds: [...given.kinds],
        enabled: given.enabled,
        address: shownAddress(given.url),
        secrets,
        secrets_version: 1,
      })
      .execute()
    const answer = await requireEndpoint(trx, { accountId, endpointId: id })
    return { ...answer, signingSecret: new Secret(signing) }
  })
}

/** What is absent stays. */
export interface EndpointChange {
  readonly name?: string
  readonly url?: Secret
  readonly kinds?: readonly NotificationKind[]
  readonly enabled?: boolean
}

/** Throws NOT_FOUND, InvalidInputError, or what `check` throws. Another URL is tried at once. */
export async function changeEndpoint(
  { db, sealer }: EndpointWriter,
  place: EndpointPlace,
  change: EndpointChange,
  check: (revision: string) => void,
): Promise<EndpointAnswer> {
  return await db.transaction().execute(async (trx) => {
    await lockEndpoints(trx, place.accountId)
    const row = await lockedRow(trx, place)
    check(endpointRevision(row))
    if (change.name !== undefined && change.name !== row.name) await refuseTakenName(trx, place, change.name)
    await trx
      .updateTable('notification_endpoints')
      .set({
        ...(change.name === undefined ? {} : { name: change.name }),
        ...(change.kinds === undefined ? {} : { kinds: [...change.kinds] }),
        ...(change.enabled === undefined ? {} : { enabled: change.enabled, disabled_reason: null }),
        ...(change.enabled === true || change.url !== undefined
          ? { blocked_until: null, failing_since: null, last_error: null }
          : {}),
        ...(change.url === undefined ? {} : await withUrl(sealer, place, row, change.url)),
      })
      .where('account_id', '=', place.accountId)
      .where('id', '=', place.endpointId)
      .execute()
    return await requireEndpoint(trx, place)
  })
}

async function withUrl(sealer: Sealer, place: EndpointPlace, row: EndpointRow, url: Secret) {
  const version = row.secrets_version + 1
  const secrets = { ...(await openSecrets(sealer, place, row)), url: url.reveal() }
  return {
    address: shownAddress(url),
    secrets: await sealed(sealer, place, version, secrets),
    secrets_version: version,
  }
}

/** The older secret signs beside the new one for `overlapMs`, so that receivers change over in their own time. */
export async function rotateSigningSecret(
  { db, sealer }: EndpointWriter,
  place: EndpointPlace,
  { nowMs, overlapMs }: { readonly nowMs: number; readonly overlapMs: number },
): Promise<EndpointAnswer & { readonly signingSecret: Secret }> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockedRow(trx, place)
    const before = await openSecrets(sealer, place, row)
    const signing = newSigningSecret()
    const older = overlapMs > 0 ? [{ signing: before.signing, untilMs: nowMs + overlapMs }] : []
    const previous =
      overlapMs > 0
        ? [...older, ...before.previous.filter(({ untilMs }) => untilMs > nowMs)].slice(0, MAX_OVERLAPS)
        : []
    const version = row.secrets_version + 1
    await trx
      .updateTable('notification_endpoints')
      .set({
        secrets: await sealed(sealer, place, version, { ...before, signing, previous }),
        secrets_version: version,
      })
      .where('account_id', '=', place.accountId)
      .where('id', '=', place.endpointId)
      .execute()
    return { ...(await requireEndpoint(trx, place)), signingSecret: new Secret(signing) }
  })
}

/** With everything that was or is to be sent to it. Throws NOT_FOUND, or what `check` throws. */
export async function deleteEndpoint(
  db: Database,
  place: EndpointPlace,
  check: (revision: string) => void,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    check(endpointRevision(await lockedRow(trx, place)))
    await trx
      .deleteFrom('notification_endpoints')
      .where('account_id', '=', place.accountId)
      .where('id', '=', place.endpointId)
      .execute()
  })
}

export async function openSecrets(
  sealer: Sealer,
  { accountId, endpointId }: EndpointPlace,
  row: { readonly secrets: string; readonly secrets_version: number },
): Promise<EndpointSecrets> {
  const opened = await sealer.open(row.secrets, notificationEndpointPlace(accountId, endpointId, row.secrets_version))
  return endpointSecrets.parse(JSON.parse(opened.reveal()))
}

const sealed = (
  sealer: Sealer,
  { accountId, endpointId }: EndpointPlace,
  version: number,
  secrets: EndpointSecrets,
): Promise<string> =>
  sealer.seal(new Secret(JSON.stringify(secrets)), notificationEndpointPlace(accountId, endpointId, version))

async function lockedRow(trx: Database, { accountId, endpointId }: EndpointPlace) {
  const row = await trx
    .selectFrom('notification_endpoints')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', endpointId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (row === undefined) throw notFound('notification endpoint', endpointId)
  return row
}

/** Names and the number of endpoints are looked at by one writer at a time. */
const lockEndpoints = (trx: Database, accountId: AccountId) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`notification endpoints ${accountId}`}, 0))`.execute(trx)

async function refuseTakenName(trx: Database, { accountId }: EndpointPlace, name: string): Promise<void> {
  const taken = await trx
    .selectFrom('notification_endpoints')
    .select('id')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst()
  if (taken !== undefined) throw nameTaken()
}

const nameTaken = () =>
  new InvalidInputError('The request', [
    { path: 'name', message: 'is not unique: the account has a notification endpoint of this name' },
  ])
