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
  const entries = rows.map((row) => ({
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
  }))
  return { entries, count }
}
