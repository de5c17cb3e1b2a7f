import { sql } from 'kysely'
import type { Protocol } from '../domain/catalogue.ts'
import type { SweepProgress } from '../reconcile/sweep.ts'
import type { Database } from './database.ts'
import type { Lookalikes } from './orphans.ts'
import { pausedAccount } from './pause.ts'
import { restsUntil } from './status-view.ts'

/** Everything that is modelled, by environment and event mesh; both in the order of their names. */
export interface MeshView {
  /** Everything of the account. */
  readonly paused: boolean
  readonly environments: readonly EnvironmentView[]
  /** Brokers that belong to no event mesh, and so are not used. */
  readonly unplaced: readonly MeshBroker[]
}

export interface EnvironmentView {
  readonly id: string
  readonly name: string
  readonly eventMeshes: readonly EventMeshView[]
}

export interface EventMeshView {
  readonly id: string
  readonly name: string
  readonly brokers: readonly MeshBroker[]
}

/** A broker without what has to be counted; times in epoch milliseconds. */
export interface MeshBroker {
  readonly brokerId: string
  readonly name: string
  readonly eventMeshId: string | null
  /** Whether its management settings are complete; no run reaches it otherwise. */
  readonly managed: boolean
  /** Null: not tried yet. */
  readonly reachable: boolean | null
  readonly checkedAtMs: number | null
  readonly sempVersion: string | null
  /** By itself, whether or not the account is. */
  readonly paused: boolean
  readonly errorCode: string | null
  readonly error: string | null
  readonly restsUntilMs: number | null
  readonly lookalikes: Lookalikes | null
  readonly sweep: MeshSweep | null
  /** Where clients log in. */
  readonly protocols: readonly Protocol[]
}

/** The last sweep, or the one that runs. */
export interface MeshSweep {
  readonly outcome: string
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  /** While it runs. */
  readonly progress: SweepProgress | null
}

interface Row {
  readonly brokerId: string
  readonly name: string
  readonly eventMeshId: string | null
  readonly managed: boolean
  readonly reachable: boolean | null
  readonly checkedAt: Date | null
  readonly sempVersion: string | null
  readonly paused: boolean
  readonly errorCode: string | null
  readonly error: string | null
  readonly restsUntil: Date | null
  readonly lookalikes: Lookalikes | null
  readonly sweepOutcome: string | null
  readonly sweepStartedAt: Date | null
  readonly sweepFinishedAt: Date | null
  readonly sweepProgress: SweepProgress | null
  readonly protocols: readonly Protocol[] | null
}

/** Brokers in the order of their names; of all when no id is given. */
export async function readMeshBrokers(db: Database, account: string, broker?: string): Promise<readonly MeshBroker[]> {
  const { rows } = await sql<Row>`
    select b.id as "brokerId", b.name, b.event_mesh_id as "eventMeshId",
      b.management is not null and b.management_password is not null as managed, s.reachable, s.checked_at as "checkedAt",
      s.semp_version as "sempVersion", coalesce(s.paused, false) as paused, s.error_code as "errorCode", s.error,
      ${restsUntil} as "restsUntil", s.lookalikes, s.sweep_outcome as "sweepOutcome",
      s.sweep_started_at as "sweepStartedAt", s.sweep_finished_at as "sweepFinishedAt", s.sweep_progress as "sweepProgress",
      jsonb_path_query_array(b.messaging, '$.protocols[*].protocol') as protocols
    from brokers b
    left join broker_status s on s.account_id = b.account_id and s.broker_id = b.id
    where b.account_id = ${account} and (${broker ?? null}::text is null or b.id = ${broker ?? null})
    order by b.name, b.id`.execute(db)
  return rows.map(toBroker)
}

export async function readMesh(db: Database, account: string): Promise<MeshView> {
  const { rows } = await sql<{ id: string; name: string; meshId: string | null; meshName: string | null }>`
    select e.id, e.name, m.id as "meshId", m.name as "meshName" from environments e
    left join event_meshes m on m.account_id = e.account_id and m.environment_id = e.id
    where e.account_id = ${account} order by e.name, e.id, m.name, m.id`.execute(db)
  const brokers = await readMeshBrokers(db, account)
  const environments = new Map(rows.map(({ id, name }) => [id, name]))
  return {
    paused: await isAccountPaused(db, account),
    environments: [...environments].map(([id, name]) => ({
      id,
      name,
      eventMeshes: rows.flatMap(({ id: environment, meshId, meshName }) =>
        environment !== id || meshId === null
          ? []
          : [{ id: meshId, name: meshName ?? meshId, brokers: brokers.filter((each) => each.eventMeshId === meshId) }],
      ),
    })),
    unplaced: brokers.filter(({ eventMeshId }) => eventMeshId === null),
  }
}

export async function isAccountPaused(db: Database, account: string): Promise<boolean> {
  const { rows } = await sql<{ paused: boolean }>`
    select ${pausedAccount(sql`${account}::text`)} as paused`.execute(db)
  return rows[0]?.paused ?? false
}

function toBroker(row: Row): MeshBroker {
  const { checkedAt, restsUntil: rests, lookalikes, protocols, ...rest } = row
  const { sweepOutcome, sweepStartedAt, sweepFinishedAt, sweepProgress, ...broker } = rest
  const isRunning = sweepOutcome === 'running'
  return {
    ...broker,
    checkedAtMs: checkedAt?.getTime() ?? null,
    restsUntilMs: rests?.getTime() ?? null,
    lookalikes: lookalikes === null || lookalikes.count === 0 ? null : lookalikes,
    protocols: protocols ?? [],
    sweep:
      sweepOutcome === null
        ? null
        : {
            outcome: sweepOutcome,
            startedAtMs: sweepStartedAt?.getTime() ?? null,
            finishedAtMs: isRunning ? null : (sweepFinishedAt?.getTime() ?? null),
            progress: isRunning ? sweepProgress : null,
          },
  }
}
