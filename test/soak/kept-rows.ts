import { sql } from 'kysely'
import { brokerId } from '../../src/domain/ids.ts'
import { brokerQueue, CATALOGUE_QUEUE, REGISTRATIONS_QUEUE } from '../../src/queue/queue-names.ts'
import { brokerIdOf } from './catalogue.ts'
import type { SoakWorld } from './soak-world.ts'

/** What the store and the queue keep. */
export interface Kept {
  /** Of registrations; each sweep has a row of its own beside. */
  readonly runs: number
  readonly failedRuns: number
  readonly drift: number
  readonly openDrift: number
  /** Found by now, conflicts not among them. */
  readonly driftFound: number
  readonly driftRepaired: number
  /** Of each queue. */
  readonly queues: Readonly<Record<string, { readonly open: number; readonly failed: number }>>
}

export async function keptRows({ context, queue, brokers }: SoakWorld): Promise<Kept> {
  const { rows } = await sql<Omit<Kept, 'queues'>>`
    select (select count(*) from runs where kind = 'registration')::int as runs,
      (select count(*) from runs where kind = 'registration' and error_code is not null)::int as "failedRuns",
      count(*)::int as drift, count(*) filter (where repaired_at is null)::int as "openDrift",
      count(*) filter (where kind <> 'conflict')::int as "driftFound",
      count(*) filter (where kind <> 'conflict' and repaired_at is not null)::int as "driftRepaired"
    from drift`.execute(context.db)
  const [first] = rows
  if (first === undefined) throw new Error('the database has no figures')
  const names = [
    CATALOGUE_QUEUE,
    REGISTRATIONS_QUEUE,
    ...brokers.map((_, index) => brokerQueue({ accountId: context.accountId, brokerId: brokerId(brokerIdOf(index)) })),
  ]
  const queues = await Promise.all(
    names.map(async (name) => {
      const { waiting, active, delayed, failed } = await queue.backend.queue(name).counts()
      return [name, { open: waiting + active + delayed, failed }] as const
    }),
  )
  return { ...first, queues: Object.fromEntries(queues) }
}

export interface KeptLimits {
  /** Registrations on brokers. */
  readonly pairs: number
  /** Changes that were accepted, those of a product once for each registration that it reaches. */
  readonly touched: number
  readonly handsAndFaults: number
  readonly faults: number
  readonly brokers: number
}

/** Of rows that only what happened explains. */
export function keptProblems(
  kept: Kept,
  { pairs, touched, handsAndFaults, faults, brokers }: KeptLimits,
): readonly string[] {
  const problems: string[] = []
  const atMost = (what: string, count: number, limit: number): void => {
    if (count > limit) problems.push(`there are ${count} ${what}, more than ${limit}`)
  }
  // Each change is a run on each of its brokers, and one more when its grace period ends; what is overtaken runs again.
  atMost('runs', kept.runs - kept.failedRuns, 3 * pairs + 6 * touched + 6 * handsAndFaults)
  // A sick broker rests after a few failures; what was under way by then may fail beside.
  atMost('failed runs', kept.failedRuns, (faults + brokers) * FAILED_RUNS_OF_A_FAULT)
  atMost('rows of drift', kept.drift, 20 + 4 * handsAndFaults)
  for (const [name, { open, failed }] of Object.entries(kept.queues)) {
    atMost(`open jobs in the queue ${name}`, open, 2 * pairs + MORE_JOBS)
    atMost(`failed jobs in the queue ${name}`, failed, MOST_FAILED_JOBS)
  }
  return problems
}

const FAILED_RUNS_OF_A_FAULT = 200
/** Sweeps, ticks, logins. */
const MORE_JOBS = 20
/** As many as are kept of each queue. */
const MOST_FAILED_JOBS = 1_000
