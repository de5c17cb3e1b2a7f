import { type Random, seededRandom } from '../../src/sandbox/seeded-random.ts'
import type { FaultKind } from './fault-kinds.ts'
import { FAULT_KINDS } from './fault-kinds.ts'

/** What people and programs do over the API, and how often beside the others. */
const CALLS = {
  join: 6,
  leave: 4,
  rename: 1,
  filter: 4,
  unfilter: 2,
  request: 6,
  decide: 4,
  revoke: 3,
  'ask-again': 3,
  'drop-request': 2,
  'add-credential': 6,
  rotate: 8,
  'end-credential': 4,
  'reuse-key': 2,
  expire: 4,
  'change-plan': 2,
  associate: 2,
  dissociate: 1,
  'change-event-apis': 2,
  release: 1,
  retire: 1,
} as const
export type CallKind = keyof typeof CALLS

/** What a hand does on a broker behind the service's back. */
const HANDS = {
  'delete-object': 7,
  'change-attribute': 8,
  'change-members': 6,
  'change-password': 6,
  'enable-withdrawn': 2,
  'change-foreign': 4,
  squat: 2,
} as const
export type HandKind = keyof typeof HANDS

export type StepKind =
  | { readonly by: 'call'; readonly what: CallKind }
  | { readonly by: 'hand'; readonly what: HandKind; readonly lastsMs: number }
  | { readonly by: 'fault'; readonly what: FaultKind; readonly lastsMs: number }
  | { readonly by: 'restart'; readonly what: 'stop' | 'kill' }

/** What to do when; what with is looked up by the picks, each in [0, 1), when its time has come. */
export interface Step {
  /** From 1. */
  readonly number: number
  /** From the beginning. */
  readonly atMs: number
  readonly kind: StepKind
  readonly picks: Picks
}
export type Picks = readonly [number, number, number, number]

export interface StepSettings {
  readonly seed: number
  readonly lengthMs: number
  /** On average, as all of these. */
  readonly stepEveryMs: number
  readonly faultEveryMs: number
  readonly restartEveryMs: number
  readonly faultLastsMs: readonly [shortest: number, longest: number]
  readonly squatLastsMs: readonly [shortest: number, longest: number]
}

/** A whole life, in the order of time: the same settings give the same steps. No fault outlasts it. */
export function stepsOf(settings: StepSettings): readonly Step[] {
  const { seed, lengthMs, stepEveryMs, faultEveryMs, restartEveryMs } = settings
  const kinds = [
    { everyMs: stepEveryMs, random: seededRandom(seed), kindOf: lifeOf(settings) },
    { everyMs: faultEveryMs, random: seededRandom(seed + 1), kindOf: faultOf(settings) },
    { everyMs: restartEveryMs, random: seededRandom(seed + 2), kindOf: restartOf },
  ]
  return kinds
    .flatMap(({ everyMs, random, kindOf }) => {
      const steps: Omit<Step, 'number'>[] = []
      for (let atMs = everyMs * gap(random); atMs < lengthMs; atMs += everyMs * gap(random)) {
        const kind = kindOf(random, lengthMs - atMs)
        steps.push({ atMs: Math.round(atMs), kind, picks: [random(), random(), random(), random()] })
      }
      return steps
    })
    .sort((a, b) => a.atMs - b.atMs)
    .map((step, index) => ({ number: index + 1, ...step }))
}

/** Half to one and a half. */
const gap = (random: Random): number => 0.5 + random()

const lifeOf =
  ({ squatLastsMs }: StepSettings) =>
  (random: Random): StepKind => {
    const total = sum(CALLS) + sum(HANDS)
    const place = random() * total
    if (place < sum(CALLS)) return { by: 'call', what: weighted(CALLS, place) }
    return { by: 'hand', what: weighted(HANDS, place - sum(CALLS)), lastsMs: between(random, squatLastsMs) }
  }

const faultOf =
  ({ faultLastsMs }: StepSettings) =>
  (random: Random, leftMs: number): StepKind => ({
    by: 'fault',
    what: pick(FAULT_KINDS, random()),
    lastsMs: Math.round(Math.min(between(random, faultLastsMs), leftMs)),
  })

const restartOf = (random: Random): StepKind => ({ by: 'restart', what: random() < 0.5 ? 'stop' : 'kill' })

const between = (random: Random, [shortest, longest]: readonly [number, number]): number =>
  Math.round(shortest + random() * (longest - shortest))

const sum = (weights: Readonly<Record<string, number>>): number =>
  Object.values(weights).reduce((total, weight) => total + weight, 0)

function weighted<Name extends string>(weights: Readonly<Record<Name, number>>, place: number): Name {
  let left = place
  const names = Object.keys(weights) as Name[]
  for (const name of names) {
    left -= weights[name]
    if (left < 0) return name
  }
  throw new RangeError(`${place} is outside of the weights`)
}

/** Throws when there is nothing to choose from. */
export function pick<Item>(items: readonly Item[], fraction: number): Item {
  const item = items[Math.floor(fraction * items.length)]
  if (item === undefined) throw new RangeError('there is nothing to choose from')
  return item
}
