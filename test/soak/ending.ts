import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { brokerId } from '../../src/domain/ids.ts'
import { CATALOGUE_QUEUE } from '../../src/queue/queue-names.ts'
import { dumpDatabase, findSecrets } from '../helpers/secret-scan.ts'
import { brokerIdOf } from './catalogue.ts'
import type { Checks } from './checks.ts'
import { growthProblems, leftProblems } from './growth.ts'
import { keptRows } from './kept-rows.ts'
import type { Sample } from './probe.ts'
import type { Soak } from './soak.ts'
import { MARKER } from './soak-world.ts'

/** Timers, idle connections. */
const MORE_RESOURCES = 10

/** Nobody does anything any more: all comes to rest, as it should be, and stays so. */
export async function endWell(soak: Soak, checks: Checks, before: Sample): Promise<void> {
  const { bounds, settings, world, problems, services } = soak
  const { changeMs, graceMs, driftMs, passwordMs, expiryMs, proberMs, leaseMs, recoveryMs } = bounds
  const laterMs = settings.expiresInMs[1] + expiryMs + recoveryMs(settings.faultLastsMs[1]) + proberMs + leaseMs
  const withinMs = laterMs + changeMs + graceMs + driftMs
  if (!(await checks.settled('all steps and faults', Math.max(withinMs, passwordMs)))) return
  await inSync(soak, withinMs)
  await staysQuiet(soak)
  for (const broker of world.brokers.keys()) await planIsEmpty(soak, broker)
  for (const { broker, object, what } of checks.differences()) {
    problems.add(`Broker ${broker}, at the very end: ${object}: ${what}.`)
  }
  const { openDrift } = await keptRows(world)
  if (openDrift > 0) problems.add(`${openDrift} rows of drift are open, though everything is as it should be.`)
  const after = await services.steady.sample()
  for (const problem of leftProblems(before, after, MORE_RESOURCES * world.brokers.length)) problems.add(problem)
  for (const problem of growthProblems(checks.samples, settings.lengthMs, settings.growth)) problems.add(problem)
}

/** Always waits in the queue of each broker. */
const A_SWEEP = 1

/** The service says so itself, and has nothing left to do. */
async function inSync({ world, clock, problems, pulse }: Soak, withinMs: number): Promise<void> {
  const untilMs = clock.nowMs + withinMs
  for (;;) {
    const open = await world.context.db
      .selectFrom('pairs')
      .select(['registration_id', 'broker_id', 'state', 'reason'])
      .where((eb) => eb.or([eb('state', '!=', 'in-sync'), eb('reached_generation', '<', eb.ref('generation'))]))
      .execute()
    const { queues } = await keptRows(world)
    const busy = Object.entries(queues).filter(([name, jobs]) => name !== CATALOGUE_QUEUE && jobs.open > A_SWEEP)
    if (open.length + busy.length === 0) return
    if (clock.nowMs > untilMs) {
      const left = JSON.stringify([open.slice(0, 5), Object.fromEntries(busy)])
      problems.add(`Not in sync, or jobs are left, though nothing differs: ${left}.`)
      return
    }
    await pulse.beat()
  }
}

/** While it is swept and polled a few times: no write, no row, no warning. */
async function staysQuiet({ world, clock, bounds, log, problems }: Soak): Promise<void> {
  const writes = () => world.brokers.reduce((sum, { sandbox }) => sum + sandbox.requests.writes, 0)
  const state = async () => {
    const { runs, drift } = await keptRows(world)
    return { writes: writes(), runs, drift, warnings: log.warnings }
  }
  const before = await state()
  await clock.delay(bounds.quietMs)
  const after = await state()
  if (JSON.stringify(before) === JSON.stringify(after)) return
  const latest = await world.context.db
    .selectFrom('runs')
    .select(['registration_id', 'broker_id', 'trigger', 'outcome', 'steps', 'error_code'])
    .where('kind', '=', 'registration')
    .orderBy('finished_at', 'desc')
    .limit(5)
    .execute()
  problems.add(`It does not come to rest: ${JSON.stringify([before, after, latest])}.`)
}

async function planIsEmpty({ world, problems }: Soak, broker: number): Promise<void> {
  const { engine, accountId } = world.context
  for await (const plan of engine.planBroker({ accountId, brokerId: brokerId(brokerIdOf(broker)) })) {
    const { registrationId, steps, drift, conflicts, refused } = plan
    if (steps.length + drift.length + conflicts.length === 0 && refused === null) continue
    problems.add(
      `Broker ${broker} has a plan for ${registrationId}: ${JSON.stringify(steps.map(({ action }) => action.type))}.`,
    )
  }
}

/** Nowhere but in sealed rows and on their own usernames. */
export async function findLeaks({ world, problems }: Soak, logFile: string): Promise<void> {
  const secrets = new Map([['a secret', MARKER]])
  const readable = new Map(await dumpDatabase(world.context.db))
  for (const [broker, { hands }] of world.brokers.entries()) readable.set(`broker ${broker}`, hands.readable())
  for (const found of findSecrets(secrets, readable)) problems.add(`A secret is told: ${found}.`)
  let part = ''
  const search = (): void => {
    for (const found of findSecrets(secrets, new Map([['the log', part]]))) problems.add(`A secret is told: ${found}.`)
    part = ''
  }
  for await (const line of createInterface({ input: createReadStream(logFile) })) {
    part += `${line}\n`
    if (part.length > 2 ** 20) search()
  }
  search()
}
