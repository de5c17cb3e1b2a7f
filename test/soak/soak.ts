import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brokerIdOf } from './catalogue.ts'
import { Checks } from './checks.ts'
import { Deeds } from './deeds.ts'
import { endWell, findLeaks } from './ending.ts'
import { Excuses } from './excuses.ts'
import { FairClock } from './fair-clock.ts'
import { type Kept, keptRows } from './kept-rows.ts'
import { LogWatch } from './log-watch.ts'
import { Problems } from './problems.ts'
import { Pulse } from './pulse.ts'
import { Services } from './services.ts'
import { type Bounds, boundsOf, type SoakSettings } from './settings.ts'
import { type SoakPlace, SoakWorld } from './soak-world.ts'
import { stepsOf } from './steps.ts'

/** Everything that the parts of one soak share. */
export interface Soak {
  readonly settings: SoakSettings
  readonly bounds: Bounds
  readonly clock: FairClock
  readonly world: SoakWorld
  readonly excuses: Excuses
  readonly log: LogWatch
  readonly problems: Problems
  readonly services: Services
  readonly pulse: Pulse
}

export interface SoakReport {
  readonly case: 'soak'
  readonly verdict: 'passed' | 'failed'
  readonly seed: number
  readonly minutes: number
  readonly brokers: number
  readonly registrations: number
  readonly steps: Readonly<Record<'done' | 'idle' | 'calls' | 'refused', number>>
  readonly faults: number
  readonly restarts: number
  /** `longestSeconds` is from the hand to the repair, with the faults in between. */
  readonly drift: Readonly<Record<'injected' | 'found' | 'repaired' | 'longestSeconds', number>>
  /** Of the service that lived from the beginning to the end: after the first third, and in the end. */
  readonly memory: Readonly<Record<'rssMbFirst' | 'rssMbLast' | 'heapMbFirst' | 'heapMbLast', number>>
  readonly warnings: Readonly<Record<string, number>>
  /** In which the machine did something else. */
  readonly lostSeconds: number
}

export interface SoakOutcome {
  readonly report: SoakReport
  readonly problems: readonly string[]
  /** The last steps, as they were done. */
  readonly tail: readonly string[]
}

/**
 * Random life on a running service, as the seed has it: requests, hands on brokers, faults, restarts. What should be true
 * is known from what was accepted; it is compared with the brokers all the time, and to the letter in the end.
 */
export async function runSoak(
  settings: SoakSettings,
  place: SoakPlace,
  say: (line: string) => void,
): Promise<SoakOutcome> {
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-soak-'))
  const logFile = join(directory, 'log')
  const bounds = boundsOf(settings)
  const [clock, problems, excuses] = [new FairClock(), new Problems(say), new Excuses(settings.brokers, bounds)]
  const indexes = new Map(Array.from({ length: settings.brokers }, (_, index) => [brokerIdOf(index), index]))
  let services: Services | null = null
  const log = new LogWatch(logFile, () => ({
    faultsOf: (broker) => {
      const index = indexes.get(broker)
      return index === undefined ? [] : excuses.reasons(index, clock.nowMs)
    },
    isRestarting: services?.isRestarting(clock.nowMs) ?? true,
  }))
  let world: SoakWorld | null = null
  try {
    world = await SoakWorld.open(settings, place, (line) => log.line(line))
    services = new Services({ world, clock, bounds, excuses, log, problems })
    const pulse = new Pulse({ settings, bounds, world, clock })
    return await liveIn({ settings, bounds, clock, world, excuses, log, problems, services, pulse }, { say, logFile })
  } finally {
    await services?.kill()
    await world?.close()
    await log.close()
    await rm(directory, { recursive: true, force: true })
  }
}

interface Surroundings {
  readonly say: (line: string) => void
  readonly logFile: string
}

async function liveIn(soak: Soak, { say, logFile }: Surroundings): Promise<SoakOutcome> {
  const { settings, world, services, problems, clock } = soak
  const checks = new Checks(soak)
  const deeds = new Deeds(soak, checks)
  await services.started()
  say(
    `seed ${settings.seed}: the services run after ${Math.round(clock.nowMs / 1000)} seconds, ${settings.registrations} registrations are brought to brokers`,
  )
  if (await checks.settled('the start', SETTLES_WITHIN_MS + settings.registrations * A_REGISTRATION_MS)) {
    const before = await services.steady.sample()
    say(`all is as it should be after ${Math.round(clock.nowMs / 1000)} seconds; life begins`)
    await live(soak, { checks, deeds, say })
    await deeds.endAll()
    say(`life is over after ${Math.round(clock.nowMs / 1000)} seconds; all comes to rest`)
    if (!problems.areMany) await endWell(soak, checks, before)
    say(`all came to rest after ${Math.round(clock.nowMs / 1000)} seconds`)
    await services.stop()
    for (const line of soak.log.unexplained) problems.add(`Nothing explains: ${line}`)
    await findLeaks(soak, logFile)
  }
  const report = reportOf(soak, { checks, deeds, kept: await keptRows(world) })
  return { report, problems: problems.all, tail: deeds.tail }
}

const SETTLES_WITHIN_MS = 60_000
/** On a busy machine. */
const A_REGISTRATION_MS = 200

interface Parts {
  readonly checks: Checks
  readonly deeds: Deeds
}

async function live(soak: Soak, { checks, deeds, say }: Parts & Pick<Surroundings, 'say'>): Promise<void> {
  const { settings, clock, problems } = soak
  const beganMs = clock.nowMs
  checks.begin()
  const steps = [...stepsOf(settings)]
  let checkAtMs = settings.checkEveryMs
  for (;;) {
    await soak.pulse.beat()
    const lifeMs = clock.nowMs - beganMs
    if (problems.areMany || (lifeMs >= settings.lengthMs && steps.length === 0)) return
    await deeds.endWhatIsDue()
    for (let step = steps[0]; step !== undefined && step.atMs <= lifeMs; step = steps[0]) {
      steps.shift()
      await deeds.do(step)
    }
    checks.look()
    if (lifeMs < checkAtMs) continue
    checkAtMs += settings.checkEveryMs
    const kept = await checks.check(deeds.doings)
    say(progressOf(soak, { checks, deeds }, kept, lifeMs))
  }
}

function progressOf({ problems, excuses }: Soak, { checks, deeds }: Parts, kept: Kept, lifeMs: number): string {
  const { done, calls, hands, faults } = deeds.counts
  const { rssMb, heapMb } = checks.samples.at(-1) ?? { rssMb: 0, heapMb: 0 }
  const jobs = Object.values(kept.queues).reduce((sum, { open }) => sum + open, 0)
  return [
    `${Math.round(lifeMs / 1000)} s: ${done} steps (${calls} calls, ${hands} hands, ${faults} faults)`,
    `${checks.differences().length} differences, brokers at fault: ${excuses.faulty().join(' ') || 'none'}`,
    `${kept.runs} runs, ${kept.drift} drift, ${jobs} jobs, ${rssMb} MB (heap ${heapMb} MB)`,
    `${problems.all.length} problems`,
  ].join('; ')
}

function reportOf(
  { settings, problems, services, log, clock }: Soak,
  { checks, deeds, kept }: Parts & { readonly kept: Kept },
): SoakReport {
  const { done, idle, calls, refused, hands, faults } = deeds.counts
  const first = checks.samples.find(({ atMs }) => atMs >= settings.lengthMs / 3)
  const last = checks.samples.at(-1)
  return {
    case: 'soak',
    verdict: problems.all.length === 0 ? 'passed' : 'failed',
    seed: settings.seed,
    minutes: Math.round(settings.lengthMs / 6_000) / 10,
    brokers: settings.brokers,
    registrations: settings.registrations,
    steps: { done, idle, calls, refused },
    faults,
    restarts: services.restarts,
    drift: {
      injected: hands,
      found: kept.driftFound,
      repaired: kept.driftRepaired,
      longestSeconds: Math.round(checks.longestDriftMs / 1000),
    },
    memory: {
      rssMbFirst: first?.rssMb ?? 0,
      rssMbLast: last?.rssMb ?? 0,
      heapMbFirst: first?.heapMb ?? 0,
      heapMbLast: last?.heapMb ?? 0,
    },
    warnings: Object.fromEntries([...log.counts].sort()),
    lostSeconds: Math.round(clock.lostMs / 1000),
  }
}
