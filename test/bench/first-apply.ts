import { sql } from 'kysely'
import type { Context } from '../../src/context.ts'

const LOOK_EVERY_MS = 200

export interface FirstApply {
  readonly registrations: number
  /** From the beginning of the first run to the end of the last. */
  readonly seconds: number
  readonly perSecond: number
}

/**
 * Waits until every registration on these brokers has reached its generation there, then tells from the record of runs
 * how long that took. Throws when it takes longer than `patienceMs`.
 */
export async function firstApply(
  { db }: Pick<Context, 'db'>,
  brokerIds: readonly string[],
  patienceMs: number,
): Promise<FirstApply> {
  const giveUpAtMs = performance.now() + patienceMs
  for (;;) {
    const { rows } = await sql<{ left: number }>`
      select count(*) filter (where reached_generation < generation)::integer as left from pairs
      where broker_id = any(${[...brokerIds]})`.execute(db)
    const left = rows[0]?.left ?? Number.NaN
    if (left === 0) return readRuns(db, brokerIds)
    if (performance.now() > giveUpAtMs) throw new Error(`${left} registrations are not applied after ${patienceMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

async function readRuns(db: Context['db'], brokerIds: readonly string[]): Promise<FirstApply> {
  const { rows } = await sql<{ registrations: number; seconds: number }>`
    select count(distinct (broker_id, registration_id))::integer as registrations,
      extract(epoch from max(finished_at) - min(started_at))::float8 as seconds
    from runs where registration_id is not null and broker_id = any(${[...brokerIds]})`.execute(db)
  const { registrations = 0, seconds = Number.NaN } = rows[0] ?? {}
  return { registrations, seconds, perSecond: registrations / seconds }
}
