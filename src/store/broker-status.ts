import { sql } from 'kysely'
import type { RunId } from '../domain/ids.ts'
import type { RunTrigger } from '../reconcile/store-port.ts'
import type { SweepProgress, SweepResult } from '../reconcile/sweep.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'

export interface SweepStart {
  readonly broker: BrokerKey
  readonly runId: RunId
  readonly trigger: RunTrigger
  readonly atMs: number
}

const at = (ms: number): string => new Date(ms).toISOString()

export async function recordSweepStart(db: Database, { broker, runId, trigger, atMs }: SweepStart): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // Its process ended without a word: a broker has one sweep at a time.
    await sql`
      update runs set outcome = 'interrupted', finished_at = ${at(atMs)}
      where account_id = ${broker.accountId} and broker_id = ${broker.brokerId} and kind = 'sweep'
        and outcome = 'running'`.execute(trx)
    await sql`
      insert into runs (id, account_id, broker_id, kind, trigger, outcome, started_at)
      values (${runId}, ${broker.accountId}, ${broker.brokerId}, 'sweep', ${trigger}, 'running', ${at(atMs)})`.execute(
      trx,
    )
    await sql`
      insert into broker_status (account_id, broker_id, sweep_run_id, sweep_started_at, sweep_outcome)
      values (${broker.accountId}, ${broker.brokerId}, ${runId}, ${at(atMs)}, 'running')
      on conflict (account_id, broker_id) do update set sweep_run_id = excluded.sweep_run_id,
        sweep_started_at = excluded.sweep_started_at, sweep_outcome = 'running', sweep_progress = null`.execute(trx)
  })
}

export async function recordSweepProgress(db: Database, broker: BrokerKey, progress: SweepProgress): Promise<void> {
  await sql`
    update broker_status set sweep_progress = ${JSON.stringify(progress)}::jsonb
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}`.execute(db)
}

export interface SweepEnd {
  readonly broker: BrokerKey
  readonly runId: RunId
  readonly atMs: number
  readonly result: SweepResult | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export async function recordSweepEnd(db: Database, { broker, runId, atMs, result, error }: SweepEnd): Promise<void> {
  const outcome = error !== null ? 'failed' : (result?.failed ?? 0) > 0 ? 'with-errors' : 'done'
  await db.transaction().execute(async (trx) => {
    await sql`
      update runs set outcome = ${outcome}, detail = ${JSON.stringify(result ?? {})}::jsonb, error_code = ${error?.code ?? null},
        error = ${error?.message ?? null}, finished_at = ${at(atMs)}, steps = ${result?.changed ?? 0}
      where id = ${runId}`.execute(trx)
    await sql`
      update broker_status set sweep_finished_at = ${at(atMs)}, sweep_outcome = ${outcome}
      where account_id = ${broker.accountId} and broker_id = ${broker.brokerId} and sweep_run_id = ${runId}`.execute(
      trx,
    )
  })
}

export interface Reachability {
  readonly broker: BrokerKey
  readonly atMs: number
  readonly sempVersion: string | null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** What the first reads of runs said, in their order; of each broker the last one is kept. */
export async function recordReachability(db: Database, news: readonly Reachability[]): Promise<void> {
  const last = new Map(news.map((each) => [JSON.stringify([each.broker.accountId, each.broker.brokerId]), each]))
  const rows = [...last]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { broker, atMs, sempVersion, error }]) => ({
      ...broker,
      at: at(atMs),
      sempVersion,
      code: error?.code ?? null,
      error: error?.message ?? null,
    }))
  await sql`
    insert into broker_status (account_id, broker_id, reachable, checked_at, semp_version, error_code, error)
    select w."accountId", w."brokerId", w.code is null, w.at, w."sempVersion", w.code, w.error
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, at timestamptz, "sempVersion" text, code text, error text)
    on conflict (account_id, broker_id) do update set reachable = excluded.reachable, checked_at = excluded.checked_at,
      semp_version = coalesce(excluded.semp_version, broker_status.semp_version), error_code = excluded.error_code,
      error = excluded.error`.execute(db)
}
