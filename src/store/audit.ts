import { type Selectable, sql } from 'kysely'
import type { Database } from './database.ts'
import type { AuditTable } from './schema.ts'

/** Who did it: a user, with or without an API token, or somebody on the host. */
export interface AuditActor {
  readonly kind: AuditTable['actor_kind']
  /** Of the user, or of the API token. */
  readonly id: string | null
  /** Of the user. */
  readonly name: string
}

export interface AuditEntry {
  readonly atMs: number
  /** Null: before an account was chosen. */
  readonly accountId: string | null
  readonly who: AuditActor
  /** Such as `credential.read`; a stable name. */
  readonly what: string
  /** The object, by its path or name. Never a secret. */
  readonly subject: string
  readonly outcome: AuditTable['outcome']
  readonly requestId?: string | null
  readonly address?: string | null
}

const MAX_TEXT = 512

/** Records who did what. Give it the transaction of the change, where there is one. */
export async function audit(db: Database, entry: AuditEntry): Promise<void> {
  await db
    .insertInto('audit')
    .values({
      at: new Date(entry.atMs),
      account_id: entry.accountId,
      actor_kind: entry.who.kind,
      actor_id: entry.who.id,
      actor_name: storable(entry.who.name),
      action: storable(entry.what),
      subject: storable(entry.subject),
      outcome: entry.outcome,
      request_id: entry.requestId ?? null,
      address: entry.address ?? null,
    })
    .execute()
}

/** What PostgreSQL takes, on one line. */
function storable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const line = text.replace(/[\u0000-\u001f\u007f]/g, ' ')
  return line.toWellFormed().slice(0, MAX_TEXT).toWellFormed()
}

/** One line of the trail. */
export interface AuditView {
  readonly id: number
  readonly atMs: number
  readonly actorKind: AuditTable['actor_kind']
  readonly actorId: string | null
  readonly actorName: string
  readonly action: string
  readonly subject: string
  readonly outcome: AuditTable['outcome']
  readonly requestId: string | null
  readonly address: string | null
}

/** The trail of one account, newest first. */
export async function readAudit(
  db: Database,
  accountId: string,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly entries: readonly AuditView[]; readonly count: number }> {
  const mine = db.selectFrom('audit').where('account_id', '=', accountId)
  const rows = await mine.selectAll().orderBy('id', 'desc').limit(page.limit).offset(page.offset).execute()
  const { count } = await mine.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  return { entries: rows.map(viewOf), count }
}

/** How far back a search goes; nothing tells the database which lines are about what. */
const SEARCHED = 10_000

/** What was done to an application registration, newest first, among the last lines of the account's trail. */
export async function readAuditOfRegistration(
  db: Database,
  accountId: string,
  registrationId: string,
  limit: number,
): Promise<readonly AuditView[]> {
  const recent = db
    .selectFrom('audit')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(SEARCHED)
    .as('recent')
  const id = encodeURIComponent(registrationId)
  const rows = await db
    .selectFrom(recent)
    .selectAll()
    .where((eb) =>
      eb.or([
        eb('subject', '=', registrationId),
        sql<boolean>`starts_with(subject, ${`${registrationId} `})`,
        // A path: of the API, or of the console.
        sql<boolean>`strpos(subject || '/', ${`egistrations/${id}/`}) > 0`,
      ]),
    )
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(viewOf)
}

const viewOf = (row: Selectable<AuditTable>): AuditView => ({
  id: row.id,
  atMs: row.at.getTime(),
  actorKind: row.actor_kind,
  actorId: row.actor_id,
  actorName: row.actor_name,
  action: row.action,
  subject: row.subject,
  outcome: row.outcome,
  requestId: row.request_id,
  address: row.address,
})
