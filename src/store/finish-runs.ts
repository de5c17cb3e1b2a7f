import { sql, type Transaction } from 'kysely'
import type { FinishedRun, Lease, RunTrigger } from '../reconcile/store-port.ts'
import { settleAccessRequests } from './access-request-states.ts'
import type { Database } from './database.ts'
import { recordLogins } from './login-verdicts.ts'
import type { Schema } from './schema.ts'

export interface FinishRequest {
  readonly lease: Lease
  readonly run: FinishedRun
}

/**
 * Writes the outcomes of many runs in one transaction and gives their leases back. A run whose lease was lost writes
 * nothing: whoever holds the pair now observes the broker afresh.
 */
export async function finishRuns(
  db: Database,
  requests: readonly FinishRequest[],
  onDrift: OnDrift = () => undefined,
): Promise<readonly boolean[]> {
  const changes: DriftChange[] = []
  const finished = await db.transaction().execute(async (trx) => {
    const kept = await releasePairs(trx, requests)
    const runs = requests.flatMap((request, index) => (kept.has(index) ? [request] : []))
    if (runs.length > 0) {
      await changeLedger(trx, runs)
      await confirmLedger(trx, runs)
      changes.push(...(await recordDrift(trx, runs)), ...(await closeDrift(trx, runs)))
      await recordRuns(trx, runs)
      await recordLogins(
        trx,
        runs.flatMap(({ lease, run }) => run.logins.map((login) => ({ pair: lease.pair, login }))),
      )
      await settleAccessRequests(
        trx,
        runs.map(({ lease }) => lease.pair),
      )
    }
    return requests.map((_, index) => kept.has(index))
  })
  // Only what was committed has happened.
  for (const change of changes) onDrift(change)
  return finished
}

/** A difference that was not open before, or one that was repaired. */
export interface DriftChange {
  readonly accountId: string
  readonly brokerId: string
  readonly kind: string
  readonly change: 'detected' | 'repaired'
  /** From its detection to its repair; 0 when it was detected. */
  readonly openSeconds: number
}

export type OnDrift = (change: DriftChange) => void

const timestamp = (ms: number): string => (Number.isFinite(ms) ? new Date(ms).toISOString() : 'infinity')

/** Failed runs in a row after which a failure is not taken for a moment's. */
export const LASTING_RUNS = 3
/** And how long it lasts where the broker had all before: an outage changes nothing for clients. */
const LASTING_MINUTES = 10

const lasting = sql`(p.attempts + 1 >= ${LASTING_RUNS} and (p.reached_generation < p.generation
  or l."finishedAt" >= p.failing_since + ${LASTING_MINUTES} * interval '1 minute'))`

async function releasePairs(trx: Transaction<Schema>, requests: readonly FinishRequest[]): Promise<Set<number>> {
  const rows = requests.map(({ lease, run }, index) => ({
    ...lease.pair,
    token: lease.token,
    index,
    state: run.state,
    reason: run.reason,
    generation: run.generation,
    reached: run.reachedGeneration,
    dueAt: run.dueAtMs === null ? null : timestamp(run.dueAtMs),
    fate: run.state === 'error' ? (run.error?.fate ?? null) : null,
    finishedAt: timestamp(run.finishedAtMs),
  }))
  // A generation raised meanwhile lags at once: its due time is not ours to set.
  const { rows: updated } = await sql<{ index: number }>`
    with w as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as w("accountId" text, "brokerId" text, "registrationId" text, token bigint, index integer, state text, reason text,
             generation bigint, reached bigint, "dueAt" timestamptz, fate text, "finishedAt" timestamptz)
    ), locked as (
      select p.account_id, p.broker_id, p.registration_id, w.* from pairs p
      join w on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
      where p.lease_token = w.token and p.lease_holder is not null
      order by p.account_id, p.registration_id, p.broker_id
      for update of p
    )
    update pairs p set
      state = case when l.generation < p.generation then 'lagging' else l.state end,
      reason = l.reason,
      reached_generation = greatest(p.reached_generation, coalesce(l.reached, 0)),
      due_at = case when l.generation < p.generation then null else l."dueAt" end,
      attempts = case when l.fate is not null then p.attempts + 1 when l.state = 'lagging' then p.attempts else 0 end,
      failing_since = case when l.fate is not null then coalesce(p.failing_since, l."finishedAt")
        when l.state = 'lagging' then p.failing_since end,
      needs_person = case
        when l.generation < p.generation then false
        when l.state = 'lagging' then p.needs_person
        else l.state in ('conflict', 'refused') or coalesce(l.fate = 'stop' or (l.fate is not null and ${lasting}), false)
      end,
      disruptive_allowed_until = case when l.fate is not null then p.disruptive_allowed_until end,
      suspected_at = null, reconciled_at = l."finishedAt", lease_holder = null, lease_until = null
    from locked l
    where p.account_id = l.account_id and p.broker_id = l.broker_id and p.registration_id = l.registration_id
    returning l.index`.execute(trx)
  return new Set(updated.map((row) => row.index))
}

/** The object of a credential that moved to another registration during the run is that one's now. */
const stillOwned = sql`(l.registration_id is null or l.registration_id = w."registrationId")`

async function changeLedger(trx: Transaction<Schema>, runs: readonly FinishRequest[]): Promise<void> {
  const changes = runs.flatMap(({ lease, run }) =>
    (['forget', 'withdraw', 'restore'] as const).flatMap((change) =>
      run.ledgerChanges[change].map((object) => ({
        ...lease.pair,
        change,
        kind: object.kind,
        name: object.name,
        at: timestamp(run.finishedAtMs),
      })),
    ),
  )
  if (changes.length === 0) return
  const w = sql`jsonb_to_recordset(${JSON.stringify(changes)}::jsonb)
    as w("accountId" text, "brokerId" text, "registrationId" text, change text, kind text, name text, at timestamptz)`
  const same = sql`l.account_id = w."accountId" and l.broker_id = w."brokerId" and l.kind = w.kind and l.name = w.name
    and ${stillOwned}`
  await sql`delete from ledger l using ${w} where ${same} and w.change = 'forget'`.execute(trx)
  await sql`
    update ledger l set withdrawn_at = case w.change when 'withdraw' then w.at end, updated_at = w.at
    from ${w} where ${same} and w.change in ('withdraw', 'restore')`.execute(trx)
}

async function confirmLedger(trx: Transaction<Schema>, runs: readonly FinishRequest[]): Promise<void> {
  const rows = runs.flatMap(({ lease, run }) =>
    run.confirmations.map((confirmation) => ({
      ...lease.pair,
      kind: confirmation.object.kind,
      name: confirmation.object.name,
      applied: confirmation.applied,
      version: confirmation.credentialVersion,
      written: confirmation.passwordWritten,
      reapplied: confirmation.passwordReapplied,
      generation: run.generation,
      at: timestamp(run.finishedAtMs),
    })),
  )
  if (rows.length === 0) return
  // A password that became due with a later generation may be due because of what came after this run's. A shared object
  // may be confirmed by several runs of one batch: any of them says the same.
  await sql`
    update ledger l set
      applied = nullif(w.applied, 'null'::jsonb),
      confirmed_credential_version = w.version,
      password_due = l.password_due and not (w.written and coalesce(w.generation >= p.generation, true)),
      reapplied = w.reapplied or (l.reapplied and l.refused_version = w.version),
      updated_at = w.at
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, kind text, name text, applied jsonb, version integer,
           written boolean, reapplied boolean, generation bigint, at timestamptz)
    join pairs p on p.account_id = w."accountId" and p.broker_id = w."brokerId" and p.registration_id = w."registrationId"
    where l.account_id = w."accountId" and l.broker_id = w."brokerId" and l.kind = w.kind and l.name = w.name
      and ${stillOwned}`.execute(trx)
}

function driftRows(runs: readonly FinishRequest[]) {
  return runs.flatMap(({ lease, run }) =>
    run.drift.map(({ drift, action }) => ({
      ...lease.pair,
      kind: drift.object.kind,
      name: drift.object.name,
      driftKind: drift.kind,
      reason: drift.reason,
      before: drift.before,
      after: drift.after,
      action,
      runId: run.runId,
      at: timestamp(run.finishedAtMs),
    })),
  )
}

/** One open row per difference, seen again and again until it is gone. */
async function recordDrift(trx: Transaction<Schema>, runs: readonly FinishRequest[]): Promise<readonly DriftChange[]> {
  // Several registrations of a batch may report the same shared object.
  const rows = [
    ...new Map(
      driftRows(runs).map((row) => [
        JSON.stringify([row.accountId, row.brokerId, row.kind, row.name, row.driftKind]),
        row,
      ]),
    ).values(),
  ]
  if (rows.length === 0) return []
  const { rows: written } = await sql<DriftChange & { readonly isNew: boolean }>`
    insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
                       run_id, detected_at, last_seen_at)
    select w."accountId", w."brokerId", w."registrationId", w.kind, w.name, w."driftKind", w.reason, w.before, w.after,
      w.action, w."runId", w.at, w.at
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, kind text, name text, "driftKind" text, reason text,
           before jsonb, after jsonb, action text, "runId" text, at timestamptz)
    on conflict (account_id, broker_id, object_kind, object_name, kind) where repaired_at is null
    do update set last_seen_at = excluded.last_seen_at, action = excluded.action, before = excluded.before,
      after = excluded.after, reason = excluded.reason
    returning account_id as "accountId", broker_id as "brokerId", kind, 'detected' as change, 0 as "openSeconds",
      xmax = 0 as "isNew"`.execute(trx)
  return written.filter(({ isNew }) => isNew)
}

/** What was repaired now, and what a run without an error no longer sees. */
async function closeDrift(trx: Transaction<Schema>, runs: readonly FinishRequest[]): Promise<readonly DriftChange[]> {
  const rows = runs
    .filter(({ run }) => run.error === null)
    .map(({ lease, run }) => ({
      ...lease.pair,
      runId: run.runId,
      at: timestamp(run.finishedAtMs),
      open: run.drift
        .filter(({ action }) => action !== 'repaired')
        .map(({ drift }) => `${drift.object.kind}/${drift.object.name}/${drift.kind}`),
    }))
  if (rows.length === 0) return []
  const { rows: closed } = await sql<DriftChange & { readonly action: string }>`
    update drift d set repaired_at = w.at, repaired_by_run_id = w."runId"
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w("accountId" text, "brokerId" text, "registrationId" text, "runId" text, at timestamptz, open jsonb)
    where d.account_id = w."accountId" and d.broker_id = w."brokerId" and d.registration_id = w."registrationId"
      and d.repaired_at is null and not w.open ? (d.object_kind || '/' || d.object_name || '/' || d.kind)
    returning d.account_id as "accountId", d.broker_id as "brokerId", d.kind, 'repaired' as change, d.action,
      extract(epoch from d.repaired_at - d.detected_at)::float8 as "openSeconds"`.execute(trx)
  // What is gone by itself, or by somebody else's hand, is not our repair.
  return closed.filter(({ action }) => action === 'repaired')
}

const isAsked = (trigger: RunTrigger): boolean => trigger === 'operator' || trigger === 'revocation'

/** A run that found nothing to do leaves no row, unless somebody asked for it. */
async function recordRuns(trx: Transaction<Schema>, runs: readonly FinishRequest[]): Promise<void> {
  const rows = runs
    .filter(
      ({ run }) => run.stepsRun + run.stepsHeld + run.drift.length > 0 || run.error !== null || isAsked(run.trigger),
    )
    .map(({ lease, run }) => ({
      ...lease.pair,
      id: run.runId,
      trigger: run.trigger,
      outcome: run.state,
      steps: run.stepsRun,
      held: run.stepsHeld,
      drift: run.drift.filter(({ drift }) => drift.kind !== 'conflict').length,
      conflicts: run.drift.filter(({ drift }) => drift.kind === 'conflict').length,
      detail: run.stepsRun + run.stepsHeld > 0 ? run.detail : {},
      code: run.error?.code ?? null,
      error: run.error?.message ?? null,
      startedAt: timestamp(run.startedAtMs),
      finishedAt: timestamp(run.finishedAtMs),
    }))
  if (rows.length === 0) return
  await sql`
    insert into runs (id, account_id, broker_id, registration_id, kind, trigger, outcome, steps, held, drift, conflicts,
                      detail, error_code, error, started_at, finished_at)
    select w.id, w."accountId", w."brokerId", w."registrationId", 'registration', w.trigger, w.outcome, w.steps, w.held,
      w.drift, w.conflicts, w.detail, w.code, w.error, w."startedAt", w."finishedAt"
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as w(id text, "accountId" text, "brokerId" text, "registrationId" text, trigger text, outcome text, steps integer,
           held integer, drift integer, conflicts integer, detail jsonb, code text, error text, "startedAt" timestamptz, "finishedAt" timestamptz)`.execute(
    trx,
  )
}
