import { z } from 'zod'
import type { Secret } from '../domain/secret.ts'
import type { CredentialReader } from './credentials-view.ts'
import { revisionOf } from './import-content.ts'
import type { RegistrationPlace } from './registrations-change.ts'
import type { WebhookDefinition } from './schema.ts'
import { webhookPlace } from './sealer-port.ts'

/** A webhook; its name is unique in the registration and is its id. */
export interface WebhookView {
  readonly name: string
  readonly definition: WebhookDefinition
  /** JSON of `WebhookSecrets`; null: there are none. */
  readonly secrets: Secret | null
  readonly revision: string
}

const header = z.strictObject({ headerName: z.string(), headerValue: z.string() })

const webhookSecrets = z.strictObject({
  authentication: z
    .strictObject({
      basicAuth: z.strictObject({ username: z.string(), password: z.string() }).optional(),
      headerAuth: header.optional(),
    })
    .optional(),
  requestHeaders: z.array(header).optional(),
})

/** What is sealed of a webhook. */
export type WebhookSecrets = z.infer<typeof webhookSecrets>

export const parseWebhookSecrets = (secrets: Secret | null): WebhookSecrets =>
  secrets === null ? {} : webhookSecrets.parse(JSON.parse(secrets.reveal()))

interface WebhookRow {
  readonly account_id: string
  readonly registration_id: string
  readonly id: string
  readonly name: string
  readonly definition: WebhookDefinition
  readonly secrets: string | null
  readonly secrets_version: number
}

export const webhookRevision = (row: Pick<WebhookRow, 'id' | 'name' | 'definition' | 'secrets_version'>): string =>
  revisionOf([row.id, row.name, row.definition, row.secrets_version])

const opened = async ({ sealer }: CredentialReader, row: WebhookRow): Promise<WebhookView> => ({
  name: row.name,
  definition: row.definition,
  secrets:
    row.secrets === null
      ? null
      : await sealer.open(row.secrets, webhookPlace(row.account_id, row.id, row.secrets_version)),
  revision: webhookRevision(row),
})

/** By registration, oldest first. */
export async function readWebhooks(
  reader: CredentialReader,
  accountId: string,
  registrationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly WebhookView[]>> {
  if (registrationIds.length === 0) return new Map()
  const rows = await reader.db
    .selectFrom('webhooks')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('registration_id', 'in', registrationIds)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const groups = new Map<string, WebhookView[]>()
  for (const row of rows) {
    const group = groups.get(row.registration_id) ?? []
    groups.set(row.registration_id, group)
    group.push(await opened(reader, row))
  }
  return groups
}

/** Null when the registration has no webhook of this name. */
export async function findWebhook(
  reader: CredentialReader,
  { accountId, registrationId }: RegistrationPlace,
  name: string,
): Promise<WebhookView | null> {
  const row = await reader.db
    .selectFrom('webhooks')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('registration_id', '=', registrationId)
    .where('name', '=', name)
    .executeTakeFirst()
  return row === undefined ? null : await opened(reader, row)
}
