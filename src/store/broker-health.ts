import { sql, type Transaction } from 'kysely'
import {
  type Admission,
  admission,
  afterFailure,
  type BrokerHealth,
  HEALTHY,
  PROBER_MS,
} from '../reconcile/broker-health.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

interface HealthRow {
  readonly health: BrokerHealth['state']
  readonly failures: number
  readonly retryAt: Date | null
  readonly prober: string | null
  readonly proberUntil: Date | null
}

async function readForUpdate(trx: Transaction<Schema>, broker: BrokerKey): Promise<BrokerHealth> {
  await sql`
    insert into broker_status (account_id, broker_id)
    select account_id, id from brokers where account_id = ${broker.accountId} and id = ${broker.brokerId}
    on conflict do nothing`.execute(trx)
  const { rows } = await sql<HealthRow>`
    select health, failures, retry_at as "retryAt", prober, prober_until as "proberUntil" from broker_status
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId} for update`.execute(trx)
  return toHealth(rows[0])
}

function toHealth(row: HealthRow | undefined): BrokerHealth {
  if (row === undefined) return HEALTHY
  const { health: state, failures } = row
  switch (state) {
    case 'closed':
      return { state, failures }
    case 'open':
      return { state, failures, retryAtMs: row.retryAt?.getTime() ?? 0 }
    case 'half-open':
      return { state, failures, prober: row.prober ?? '', proberUntilMs: row.proberUntil?.getTime() ?? 0 }
    default: {
      const unreachable: never = state
      return unreachable
    }
  }
}

async function write(trx: Transaction<Schema>, broker: BrokerKey, health: BrokerHealth): Promise<void> {
  const retryAt = health.state === 'open' ? new Date(health.retryAtMs) : null
  const prober = health.state === 'half-open' ? health.prober : null
  const proberUntil = health.state === 'half-open' ? new Date(health.proberUntilMs) : null
  await sql`
    update broker_status set health = ${health.state}, failures = ${health.failures}, retry_at = ${retryAt},
      prober = ${prober}, prober_until = ${proberUntil}
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}`.execute(trx)
}

/** What somebody who asked would be told now; nobody becomes the prober by it. */
export async function peek(db: Database, broker: BrokerKey, nowMs: number): Promise<Admission> {
  const { rows } = await sql<HealthRow>`
    select health, failures, retry_at as "retryAt", prober, prober_until as "proberUntil" from broker_status
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}`.execute(db)
  return admission(toHealth(rows[0]), nowMs)
}

/** Who is told to probe is on record as the only prober. */
export async function admit(db: Database, broker: BrokerKey, prober: string, nowMs: number): Promise<Admission> {
  const first = await peek(db, broker, nowMs)
  if (first.to !== 'probe') return first
  return db.transaction().execute(async (trx) => {
    const health = await readForUpdate(trx, broker)
    const decided = admission(health, nowMs)
    if (decided.to !== 'probe') return decided
    const { failures } = health
    await write(trx, broker, { state: 'half-open', failures, prober, proberUntilMs: nowMs + PROBER_MS })
    return decided
  })
}

export interface AfterFailure {
  readonly health: BrokerHealth
  readonly changed: boolean
}

export interface BrokerFailure {
  readonly nowMs: number
  readonly random: number
  /** Set when the run that failed was the prober. */
  readonly prober: string | null
}

/** What the broker is after each of these failures, which are in their order; `changed` is false where one said nothing new. */
export async function recordFailures(
  db: Database,
  broker: BrokerKey,
  failures: readonly BrokerFailure[],
): Promise<readonly AfterFailure[]> {
  return db.transaction().execute(async (trx) => {
    const before = await readForUpdate(trx, broker)
    let health = before
    const after = failures.map((failure): AfterFailure => {
      const next = afterFailure(health, failure)
      const changed = next !== health
      health = next
      return { health, changed }
    })
    if (health !== before) await write(trx, broker, health)
    return after
  })
}

/** The broker did what it was asked, whoever asked. */
export async function recordSuccess(db: Database, broker: BrokerKey): Promise<void> {
  await sql`
    update broker_status set health = 'closed', failures = 0, retry_at = null, prober = null, prober_until = null
    where account_id = ${broker.accountId} and broker_id = ${broker.brokerId}
      and (health <> 'closed' or failures > 0)`.execute(db)
}
