import { sql } from 'kysely'
import { OBJECT_KINDS, type ObjectKind } from '../domain/broker-object.ts'
import type { BrokerKey, SweepMemory } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'
import { notInLedger, recordLookalikes } from './orphans.ts'

/** What was read longer ago is read again. */
const RESUMES_MS = 3_600_000

/** Suspects stay suspects in `pairs` until a run has looked at them. */
export function createSweepMemory(db: Database): SweepMemory {
  const broker = ({ accountId, brokerId }: BrokerKey) => sql`account_id = ${accountId} and broker_id = ${brokerId}`
  return {
    async readKinds(key, nowMs) {
      const { rows } = await sql<{ kinds: readonly ObjectKind[] | null }>`
        select sweep_checkpoint -> 'kinds' as kinds from broker_status
        where ${broker(key)} and (sweep_checkpoint ->> 'beganAtMs')::float8 between ${nowMs - RESUMES_MS} and ${nowMs}`.execute(
        db,
      )
      const known = new Set<string>(rows[0]?.kinds ?? [])
      return OBJECT_KINDS.filter((kind) => known.has(kind))
    },
    async kindRead(key, kind, suspects, nowMs) {
      await db.transaction().execute(async (trx) => {
        if (suspects.length > 0) {
          await sql`
            update pairs set suspected_at = ${new Date(nowMs)}
            where ${broker(key)} and registration_id = any(${suspects}::text[])`.execute(trx)
        }
        // One that is too old to resume begins anew with this kind.
        await sql`
          update broker_status set sweep_checkpoint = case
            when (sweep_checkpoint ->> 'beganAtMs')::float8 between ${nowMs - RESUMES_MS} and ${nowMs}
            then jsonb_set(sweep_checkpoint, '{kinds}', (sweep_checkpoint -> 'kinds') || to_jsonb(${kind}::text))
            else jsonb_build_object('beganAtMs', ${nowMs}::float8, 'kinds', jsonb_build_array(${kind}::text)) end
          where ${broker(key)}`.execute(trx)
      })
    },
    async allRead(key, nextListing) {
      await sql`
        update broker_status set sweep_checkpoint = null, listing_from = ${nextListing} where ${broker(key)}`.execute(
        db,
      )
    },
    async lookalikes(key, refs) {
      const orphans = refs.length === 0 ? [] : await notInLedger(db, key, refs)
      await recordLookalikes(db, key, orphans)
    },
    async listings(key) {
      const { rows } = await sql<{ from: number | null; count: number }>`
        select (select listing_from from broker_status where ${broker(key)}) as from,
          coalesce(sum(case kind when 'aclProfile' then 2 when 'queue' then 1 else 0 end), 0)::float8 as count
        from ledger where ${broker(key)} and withdrawn_at is null`.execute(db)
      return { from: rows[0]?.from ?? 0, count: rows[0]?.count ?? 0 }
    },
  }
}
