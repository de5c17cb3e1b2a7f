import { InvalidInputError } from '../domain/errors.ts'
import { notFound } from '../domain/refusals.ts'
import { Secret } from '../domain/secret.ts'
import type { CredentialReader } from './credentials-view.ts'
import type { Database } from './database.ts'
import type { RandomSource } from './random-source.ts'
import { changeRegistration, type RegistrationPlace, type RevisionCheck, refused } from './registrations-change.ts'
import type { WebhookDefinition } from './schema.ts'
import { webhookPlace } from './sealer-port.ts'
import {
  findWebhook,
  parseWebhookSecrets,
  type WebhookSecrets,
  type WebhookView,
  webhookRevision,
} from './webhooks-view.ts'

// Webhooks are stored and shown; no broker has them yet, so no generation is raised.

/** As many as one answer can hold. */
export const MAX_WEBHOOKS = 999
const GENERATED_NAME_LENGTH = 11

export interface WebhookWriter extends CredentialReader {
  readonly random: RandomSource
}

export interface GivenWebhook {
  /** Null: generated. */
  readonly name: string | null
  readonly definition: WebhookDefinition
  readonly secrets: WebhookSecrets
}

/** Throws NOT_FOUND, InvalidInputError for a name that is taken or an unknown broker. */
export async function createWebhook(
  writer: WebhookWriter,
  place: RegistrationPlace,
  given: GivenWebhook,
): Promise<WebhookView> {
  const { accountId, registrationId } = place
  const { result } = await changeRegistration(writer.db, place, async (trx) => {
    const name = given.name ?? writer.random.token(GENERATED_NAME_LENGTH)
    await refuseTakenName(trx, place, name)
    await refuseTooMany(trx, place)
    await refuseUnknownBrokers(trx, accountId, given.definition)
    const id = writer.random.id()
    await trx
      .insertInto('webhooks')
      .values({
        account_id: accountId,
        id,
        registration_id: registrationId,
        name,
        definition: JSON.stringify(given.definition),
        secrets: await sealed(writer, accountId, id, { secrets: given.secrets, version: 1 }),
        secrets_version: 1,
      })
      .execute()
    return { result: await requireWebhook({ ...writer, db: trx }, place, name), touched: false }
  })
  return result
}

/** What is absent stays. */
export interface WebhookUpdate {
  readonly name: string | undefined
  readonly definition: Partial<WebhookDefinition>
  readonly secrets: WebhookSecrets
}

/** Throws NOT_FOUND, InvalidInputError, or what `check` throws. */
export async function updateWebhook(
  writer: WebhookWriter,
  place: RegistrationPlace & { readonly name: string },
  update: WebhookUpdate,
  check: RevisionCheck,
): Promise<WebhookView> {
  const { accountId } = place
  const { result } = await changeRegistration(writer.db, place, async (trx) => {
    const row = await lockedRow(trx, place)
    check(webhookRevision(row))
    const { name = row.name } = update
    if (name !== row.name) await refuseTakenName(trx, place, name)
    const definition = { ...row.definition, ...given(update.definition) }
    await refuseUnknownBrokers(trx, accountId, update.definition)
    const view = await requireWebhook({ ...writer, db: trx }, place, row.name)
    const before = parseWebhookSecrets(view.secrets)
    const secrets = { ...before, ...given(update.secrets) }
    const version = JSON.stringify(secrets) === JSON.stringify(before) ? row.secrets_version : row.secrets_version + 1
    await trx
      .updateTable('webhooks')
      .set({
        name,
        definition: JSON.stringify(definition),
        secrets:
          version === row.secrets_version ? row.secrets : await sealed(writer, accountId, row.id, { secrets, version }),
        secrets_version: version,
      })
      .where('account_id', '=', accountId)
      .where('id', '=', row.id)
      .execute()
    return { result: await requireWebhook({ ...writer, db: trx }, place, name), touched: false }
  })
  return result
}

/** Throws NOT_FOUND, or what `check` throws. */
export async function deleteWebhook(
  db: Database,
  place: RegistrationPlace & { readonly name: string },
  check: RevisionCheck,
): Promise<void> {
  await changeRegistration(db, place, async (trx) => {
    const row = await lockedRow(trx, place)
    check(webhookRevision(row))
    await trx.deleteFrom('webhooks').where('account_id', '=', place.accountId).where('id', '=', row.id).execute()
    return { result: undefined, touched: false }
  })
}

/** Throws NOT_FOUND. */
export async function requireWebhook(
  reader: CredentialReader,
  place: RegistrationPlace,
  name: string,
): Promise<WebhookView> {
  const webhook = await findWebhook(reader, place, name)
  if (webhook === null) throw notFound('webhook', name)
  return webhook
}

/** Without what is absent. */
const given = <Fields extends object>(fields: Fields): Partial<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>

async function sealed(
  { sealer }: WebhookWriter,
  accountId: string,
  id: string,
  { secrets, version }: { readonly secrets: WebhookSecrets; readonly version: number },
): Promise<string | null> {
  const present = given(secrets)
  if (Object.keys(present).length === 0) return null
  return await sealer.seal(new Secret(JSON.stringify(present)), webhookPlace(accountId, id, version))
}

const webhooksOf = (db: Database, { accountId, registrationId }: RegistrationPlace) =>
  db.selectFrom('webhooks').where('account_id', '=', accountId).where('registration_id', '=', registrationId)

async function lockedRow(db: Database, place: RegistrationPlace & { readonly name: string }) {
  const row = await webhooksOf(db, place).where('name', '=', place.name).selectAll().forUpdate().executeTakeFirst()
  if (row === undefined) throw notFound('webhook', place.name)
  return row
}

async function refuseTakenName(db: Database, place: RegistrationPlace, name: string): Promise<void> {
  const taken = await webhooksOf(db, place).where('name', '=', name).select('id').executeTakeFirst()
  if (taken !== undefined) throw refused('name', 'is not unique: the registration has a webhook of this name')
}

async function refuseTooMany(db: Database, place: RegistrationPlace): Promise<void> {
  const { count } = await webhooksOf(db, place)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count < MAX_WEBHOOKS) return
  throw refused('request', `the registration has ${MAX_WEBHOOKS} webhooks, which is the most it can have`)
}

async function refuseUnknownBrokers(
  db: Database,
  accountId: string,
  { gatewayMessagingServiceIds: ids = [] }: Partial<WebhookDefinition>,
): Promise<void> {
  if (ids.length === 0) return
  const rows = await db
    .selectFrom('brokers')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', 'in', ids)
    .execute()
  const known = new Set(rows.map(({ id }) => id))
  const problems = ids.flatMap((id, index) =>
    known.has(id)
      ? []
      : [{ path: `gatewayMessagingServiceIds[${index}]`, message: `there is no gateway ${JSON.stringify(id)}` }],
  )
  if (problems.length > 0) throw new InvalidInputError('The request', problems)
}
