import { sql } from 'kysely'
import { type DocumentRecord, eventApiKey, type KnownCatalogue, type ReadDocument } from '../domain/remote-catalogue.ts'
import type { Database } from './database.ts'

interface DocumentRow extends Omit<DocumentRecord, 'readAtMs'> {
  readonly id: string
  readonly version: string
  readonly readAt: Date
}

/** What a pass has to know of what is stored. */
export async function readKnownCatalogue(db: Database, accountId: string): Promise<KnownCatalogue> {
  const products = await sql<{ id: string }>`
    select distinct product_id as id from product_versions
    where account_id = ${accountId} and state <> 'DELETED'`.execute(db)
  const registrations = await sql<{ id: string }>`
    select id from registrations where account_id = ${accountId} and deleted_at is null`.execute(db)
  // A document that can be used counts while its Event API is there.
  const documents = await sql<DocumentRow>`
    select d.event_api_id as id, d.version, d.listed_digest as "listedDigest", d.document_digest as "documentDigest",
      d.read_at as "readAt", d.problem
    from followed_documents d
    left join event_apis a on a.account_id = d.account_id and a.id = d.event_api_id and a.version = d.version
    where d.account_id = ${accountId} and (a.id is not null or d.problem is not null)`.execute(db)
  return {
    products: new Set(products.rows.map(({ id }) => id)),
    registrations: new Set(registrations.rows.map(({ id }) => id)),
    documents: new Map(
      documents.rows.map(({ id, version, readAt, ...record }) => [
        eventApiKey(id, version),
        { ...record, readAtMs: readAt.getTime() },
      ]),
    ),
  }
}

interface EventApiName {
  readonly id: string
  readonly version: string
}

/** Remembers what was read, and forgets what no product names any more. */
export async function rememberDocuments(
  trx: Database,
  accountId: string,
  { read, named }: { readonly read: readonly ReadDocument[]; readonly named: readonly EventApiName[] },
): Promise<void> {
  await sql`
    delete from followed_documents d where d.account_id = ${accountId} and not exists (
      select from jsonb_to_recordset(${JSON.stringify(named)}::jsonb) as n(id text, version text)
      where n.id = d.event_api_id and n.version = d.version)`.execute(trx)
  if (read.length === 0) return
  const rows = read.map(({ readAtMs, ...rest }) => ({ ...rest, readAt: new Date(readAtMs).toISOString() }))
  await sql`
    insert into followed_documents (account_id, event_api_id, version, listed_digest, document_digest, read_at, problem)
    select ${accountId}, n.id, n.version, n."listedDigest", n."documentDigest", n."readAt", n.problem
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as n(
      id text, version text, "listedDigest" text, "documentDigest" text, "readAt" timestamptz, problem text)
    on conflict (account_id, event_api_id, version) do update set listed_digest = excluded.listed_digest,
      document_digest = excluded.document_digest, read_at = excluded.read_at, problem = excluded.problem`.execute(trx)
}
