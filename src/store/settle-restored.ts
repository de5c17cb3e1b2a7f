import { sql } from 'kysely'
import type { Database } from './database.ts'

/** What `settleRestored` writes to. */
export const SETTLED_TABLES = [
  'broker_status',
  'ledger',
  'login_controls',
  'login_verdicts',
  'notification_endpoints',
  'pairs',
  'pauses',
  'users',
] as const

/** More than a user's tokens are ended between a backup and its restore. */
const TOKEN_GENERATIONS = 1000

/**
 * The brokers went on after the backup was made, and its rows do not know. So nothing is written to a broker before a person
 * has seen the plan; then every pair is looked at, every password written and proved again, and what was withdrawn is deleted
 * a whole grace period from now, not from when it was withdrawn. What only the process of that time knew is forgotten.
 */
export async function settleRestored(db: Database, backupCreatedAt: string): Promise<void> {
  await sql`
    insert into pauses (account_id, scope, id, paused_by)
    select id, 'account', '', ${`restore of the backup of ${backupCreatedAt}`} from accounts
    on conflict do nothing`.execute(db)
  await sql`
    update pairs set due_at = now(), attempts = 0, failing_since = null, suspected_at = null, withdrawal_confirmed = false,
      disruptive_allowed_until = null, lease_holder = null, lease_until = null, lease_token = lease_token + 1`.execute(
    db,
  )
  await sql`
    update ledger set password_due = true, refused_version = null, reapplied = false
    where kind = 'clientUsername' and withdrawn_at is null`.execute(db)
  await sql`update ledger set withdrawn_at = now() where withdrawn_at is not null`.execute(db)
  await sql`
    update broker_status set health = 'closed', failures = 0, retry_at = null, prober = null, prober_until = null,
      sweep_run_id = null, sweep_progress = null, sweep_checkpoint = null`.execute(db)
  await sql`delete from login_verdicts`.execute(db)
  await sql`delete from login_controls`.execute(db)
  await sql`update notification_endpoints set lease_holder = null, lease_until = null, blocked_until = null`.execute(db)
  // Sessions that were ended since the backup must not come back.
  await sql`update users set token_generation = token_generation + ${sql.lit(TOKEN_GENERATIONS)}`.execute(db)
}
