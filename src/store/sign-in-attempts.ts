import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from './database.ts'

/** Attempts that may fail in a window, by what they have in common. One that succeeds is taken back. */
export const ATTEMPT_LIMITS = { userAndAddress: 5, user: 25, address: 50 } as const
export const ATTEMPT_WINDOW_MS = 15 * 60_000
const SWEPT_AT_ONCE = 20

export interface SignInAttempt {
  readonly userName: string
  readonly address: string
}

/**
 * Counts an attempt before its password is looked at, so that attempts at once count too. Answers 0 when it may go on,
 * else for how many milliseconds none may. It is the same for names that exist and names that do not.
 */
export async function countSignInAttempt(db: Database, attempt: SignInAttempt, nowMs: number): Promise<number> {
  await forgetOldAttempts(db, nowMs)
  const limits = new Map(subjectsOf(attempt).map(({ subject, limit }) => [subject, limit]))
  const now = new Date(nowMs)
  const { rows } = await sql<{ subject: string; attempts: number; window_ends_at: Date }>`
    insert into sign_in_attempts as a (subject, attempts, window_ends_at)
    select subject, 1, ${new Date(nowMs + ATTEMPT_WINDOW_MS)}::timestamptz
    from unnest(${[...limits.keys()].sort()}::text[]) as s(subject)
    on conflict (subject) do update set
      attempts = case when a.window_ends_at <= ${now}::timestamptz then 1 else a.attempts + 1 end,
      window_ends_at =
        case when a.window_ends_at <= ${now}::timestamptz then excluded.window_ends_at else a.window_ends_at end
    returning subject, attempts, window_ends_at`.execute(db)
  const exceeded = rows.filter(({ subject, attempts }) => attempts > (limits.get(subject) ?? 0))
  return Math.max(0, ...exceeded.map((row) => row.window_ends_at.getTime() - nowMs))
}

/** The attempt succeeded: it does not count, and those of this user from this address before it are forgiven. */
export async function forgiveSignInAttempts(db: Database, attempt: SignInAttempt): Promise<void> {
  const subjects = subjectsOf(attempt)
  const forgiven = subjects.filter(({ kind }) => kind === 'userAndAddress').map(({ subject }) => subject)
  await sql`
    with locked as (
      select subject from sign_in_attempts
      where subject = any(${subjects.map(({ subject }) => subject)}) order by subject for update
    )
    update sign_in_attempts a
    set attempts = case when a.subject = any(${forgiven}) then 0 else greatest(a.attempts - 1, 0) end
    from locked where a.subject = locked.subject`.execute(db)
}

function subjectsOf({ userName, address }: SignInAttempt) {
  const user = userName.toLowerCase()
  return [
    { kind: 'userAndAddress', subject: digest(['both', user, address]), limit: ATTEMPT_LIMITS.userAndAddress },
    { kind: 'user', subject: digest(['user', user]), limit: ATTEMPT_LIMITS.user },
    { kind: 'address', subject: digest(['address', address]), limit: ATTEMPT_LIMITS.address },
  ] as const
}

/** People type passwords where the name belongs: nothing of it is kept. */
const digest = (parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

async function forgetOldAttempts(db: Database, nowMs: number): Promise<void> {
  await sql`
    delete from sign_in_attempts where subject in (
      select subject from sign_in_attempts where window_ends_at <= ${new Date(nowMs)}
      order by window_ends_at limit ${SWEPT_AT_ONCE} for update skip locked
    )`.execute(db)
}
