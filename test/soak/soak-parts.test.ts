import { describe, expect, it } from 'vitest'
import { callsOf } from './calls.ts'
import { policyOf } from './catalogue.ts'
import { type Difference, differencesOn, type ReadBroker } from './differences.ts'
import { Excuses } from './excuses.ts'
import { growthProblems } from './growth.ts'
import { Life } from './life.ts'
import { type Change, keyOf, type Version } from './life-facts.ts'
import { isExplained } from './log-watch.ts'
import { type Bounds, boundsOf, longSoak, shortSoak } from './settings.ts'
import { stepsOf } from './steps.ts'
import type { WantedKind } from './wanted.ts'

const SETTINGS = longSoak({ minutes: 30, brokers: 4, registrations: 10, seed: 3 })
const BOUNDS = boundsOf(SETTINGS)

describe('steps', () => {
  it('are the same for the same seed, and others for another', () => {
    expect(stepsOf(SETTINGS)).toEqual(stepsOf(SETTINGS))
    expect(stepsOf({ ...SETTINGS, seed: 4 })).not.toEqual(stepsOf(SETTINGS))
  })

  it('come in the order of time, of all sorts, and no fault outlasts them', () => {
    const steps = stepsOf(SETTINGS)
    expect(steps.map(({ atMs }) => atMs)).toEqual(steps.map(({ atMs }) => atMs).sort((a, b) => a - b))
    expect(new Set(steps.map(({ kind }) => kind.by))).toEqual(new Set(['call', 'hand', 'fault', 'restart']))
    for (const { kind, atMs } of steps) {
      if (kind.by === 'fault') expect(atMs + kind.lastsMs).toBeLessThanOrEqual(SETTINGS.lengthMs)
    }
  })

  it('come to the same calls in the same life', () => {
    const settings = { registrations: 1, marker: 'm', wallMs: 0, expiresInMs: [1, 2] as const }
    for (const step of stepsOf(SETTINGS)) {
      if (step.kind.by !== 'call') continue
      expect(callsOf(step.kind.what, step, lifeOf(), settings)).toEqual(
        callsOf(step.kind.what, step, lifeOf(), settings),
      )
    }
  })
})

const VERSION: Version = {
  state: 'RELEASED',
  approval: 'automatic',
  eventApis: ['paid'],
  brokers: [0],
  plans: { reliable: policyOf('reliable') },
}
const ACCESS = { product: 'p', version: '1.0.0', plan: 'reliable', state: 'APPROVED' } as const
const START: readonly Change[] = [
  { type: 'version', product: 'p', version: '1.0.0', content: VERSION },
  { type: 'registration', registration: 'app' },
  { type: 'access', registration: 'app', id: 'first', access: ACCESS },
  { type: 'credential', registration: 'app', key: 'key-of-app', secret: 'its-secret', expiresAtMs: null },
]

function lifeOf(...more: readonly Change[]): Life {
  const life = new Life('default', 2)
  for (const change of [...START, ...more]) life.apply(change, 0)
  return life
}

/** Exactly what the life asks for; parts of it are changed by the test. */
class Twin implements ReadBroker {
  readonly objects = new Map<string, { attributes: Record<string, unknown>; members: Record<string, string[]> }>()
  readonly passwords = new Map<string, string>()

  constructor(life: Life) {
    for (const [key, { wanted }] of life.records(0)) {
      if (wanted === null) continue
      const members = Object.entries(wanted.members).map(([collection, list]) => [collection, [...list]])
      const owner = wanted.owners === undefined ? {} : { owner: wanted.owners[0] }
      this.objects.set(key, { attributes: { ...wanted.attributes, ...owner }, members: Object.fromEntries(members) })
      if (wanted.secret !== undefined) this.passwords.set(wanted.name, wanted.secret)
    }
  }

  of(kind: WantedKind) {
    const [found] = [...this.objects].flatMap(([key, object]) => (key.startsWith(`${kind}/`) ? [object] : []))
    if (found === undefined) throw new RangeError(`there is no ${kind}`)
    return found
  }

  remove(kind: WantedKind): void {
    for (const key of this.objects.keys()) if (key.startsWith(`${kind}/`)) this.objects.delete(key)
  }

  names(kind: WantedKind): readonly string[] {
    return [...this.objects.keys()].flatMap((key) => (key.startsWith(`${kind}/`) ? [key.slice(kind.length + 1)] : []))
  }

  attributes(kind: WantedKind, name: string) {
    return this.objects.get(keyOf({ kind, name }))?.attributes
  }

  members(kind: WantedKind, name: string, collection: string): readonly string[] {
    return this.objects.get(keyOf({ kind, name }))?.members[collection] ?? []
  }

  login(clientUsername: string, password: string) {
    return this.passwords.get(clientUsername) === password ? 'accepted' : 'wrong-password'
  }

  isForeign(_kind: WantedKind, name: string): boolean {
    return name.startsWith('legacy')
  }
}

const whats = (found: readonly Difference[]): readonly string[] => found.map(({ what }) => what)

describe('what a broker should hold', () => {
  it('is a client profile, an ACL profile, a queue and a client username for a registration with access', () => {
    const kinds = [...lifeOf().records(0).values()].map(({ kind }) => kind).sort()
    expect(kinds).toEqual(['aclProfile', 'clientProfile', 'clientUsername', 'queue'])
    expect(lifeOf().records(1).size).toBe(0)
  })

  it('differs in nothing from what it holds exactly', () => {
    const life = lifeOf()
    expect(differencesOn(life, 0, new Twin(life), BOUNDS)).toEqual([])
  })

  const HANDS: readonly (readonly [string, (twin: Twin) => unknown, string])[] = [
    ['a client username is gone', (twin) => twin.remove('clientUsername'), 'is missing'],
    ['a queue is gone', (twin) => twin.remove('queue'), 'is missing'],
    [
      'a client username is disabled',
      (twin) => Object.assign(twin.of('clientUsername').attributes, { enabled: false }),
      'enabled is false and not true',
    ],
    [
      'a topic is too much',
      (twin) => twin.of('aclProfile').members.publishTopicExceptions?.push('smf,payroll/a'),
      'its publishTopicExceptions lack nothing and have smf,payroll/a too much',
    ],
    [
      'a subscription is missing',
      (twin) => twin.of('queue').members.subscriptions?.pop(),
      'its subscriptions lack shop/*/paid/told and have nothing too much',
    ],
    [
      'a queue has a foreign owner',
      (twin) => Object.assign(twin.of('queue').attributes, { owner: 'legacy' }),
      'its owner is legacy and none of key-of-app',
    ],
    ['a password is another', (twin) => twin.passwords.set('key-of-app', 'x'), 'its password is not the stored one'],
    [
      'there is something that nobody asked for',
      (twin) => twin.objects.set('queue/mine', { attributes: {}, members: {} }),
      'nobody asked for it',
    ],
  ]
  it.each(HANDS)('differs when %s', (_what, hand, said) => {
    const life = lifeOf()
    const twin = new Twin(life)
    hand(twin)
    expect(whats(differencesOn(life, 0, twin, BOUNDS))).toEqual([said])
  })

  it('lets foreign objects be', () => {
    const life = lifeOf()
    const twin = new Twin(life)
    twin.objects.set('queue/legacy', { attributes: {}, members: {} })
    expect(differencesOn(life, 0, twin, BOUNDS)).toEqual([])
  })

  const ENDS: readonly (readonly [string, readonly Change[]])[] = [
    ['the credential was deleted', [{ type: 'credential-gone', registration: 'app', key: 'key-of-app' }]],
    [
      'access was revoked',
      [{ type: 'access', registration: 'app', id: 'first', access: { ...ACCESS, state: 'REVOKED' } }],
    ],
    ['the registration was deleted', [{ type: 'registration-gone', registration: 'app' }]],
    ['the version was retired', [{ ...START[0], content: { ...VERSION, state: 'RETIRED' } } as Change]],
    ['the version left the broker', [{ ...START[0], content: { ...VERSION, brokers: [1] } } as Change]],
  ]
  it.each(ENDS)('no longer has an enabled client username when %s', (_what, changes) => {
    const twin = new Twin(lifeOf())
    const found = differencesOn(lifeOf(...changes), 0, twin, BOUNDS).filter(({ object }) =>
      object.startsWith('clientU'),
    )
    expect(whats(found)).toContain('is enabled, though it was withdrawn')
    expect(whats(found)).toContain('is there, though nobody has a right to it any more')
  })

  it('ends with a credential whose time is over', () => {
    const life = lifeOf({ type: 'credential', registration: 'app', key: 'short', secret: 's', expiresAtMs: 1_000 })
    const twin = new Twin(life)
    life.advance(999, 5, BOUNDS.expiryMs)
    expect(differencesOn(life, 0, twin, BOUNDS)).toEqual([])
    life.advance(1_000, 6, BOUNDS.expiryMs)
    const found = differencesOn(life, 0, twin, BOUNDS)
    expect(new Set(found.map(({ object }) => object))).toEqual(new Set(['clientUsername/short']))
    expect(new Set(found.map(({ sinceMs }) => sinceMs))).toEqual(new Set([6 + BOUNDS.expiryMs]))
  })

  it('asks nothing of a client username that somebody else has', () => {
    const life = lifeOf()
    const twin = new Twin(life)
    life.apply({ type: 'squatted', broker: 0, registration: 'app', key: 'legacy-key' }, 5)
    life.apply({ type: 'credential', registration: 'app', key: 'legacy-key', secret: 's', expiresAtMs: null }, 6)
    expect(differencesOn(life, 0, twin, BOUNDS)).toEqual([])
    life.apply({ type: 'squat-gone', broker: 0, registration: 'app', key: 'legacy-key' }, 7)
    expect(differencesOn(life, 0, twin, BOUNDS)).toMatchObject([{ object: 'clientUsername/legacy-key', sinceMs: 7 }])
  })
})

describe('a difference', () => {
  const since = (sinceMs: number): Difference => ({
    broker: 0,
    object: 'queue/q',
    registration: 'app',
    what: 'is missing',
    sinceMs,
    boundMs: 1_000,
  })
  const bounds: Bounds = { ...BOUNDS, recoveryMs: () => 500, leaseMs: 300, proberMs: 700 }

  it('may last as long as its bound', () => {
    const excuses = new Excuses(1, bounds)
    expect(excuses.isOverdue(since(10), 1_010)).toBe(false)
    expect(excuses.isOverdue(since(10), 1_011)).toBe(true)
  })

  it('is excused while the broker is at fault, and until it has recovered', () => {
    const excuses = new Excuses(1, bounds)
    excuses.began(0, 'silent', 100)
    expect(excuses.isOverdue(since(10), 9_000)).toBe(false)
    expect(excuses.reasons(0, 9_000)).toEqual(['silent'])
    excuses.ended(0, 9_000)
    expect(excuses.isOverdue(since(10), 10_500)).toBe(false)
    expect(excuses.isOverdue(since(10), 10_501)).toBe(true)
    expect(excuses.reasons(0, 9_501)).toEqual([])
  })

  it('waits for the leases of a worker that was killed, and longer where that one may have tried a sick broker', () => {
    const excuses = new Excuses(1, bounds)
    excuses.killed(100)
    expect(excuses.isOverdue(since(10), 1_400)).toBe(false)
    expect(excuses.isOverdue(since(10), 1_401)).toBe(true)
    excuses.began(0, 'silent', 2_000)
    excuses.killed(2_100)
    excuses.ended(0, 3_000)
    expect(excuses.isOverdue(since(10), 5_200)).toBe(false)
    expect(excuses.isOverdue(since(10), 5_201)).toBe(true)
  })
})

describe('a line of the log', () => {
  const failed = (code: string, queueName = 'broker-default-broker1') => ({ event: 'job.failed', queueName, code })
  const explained = (line: object, isRestarting = false): boolean =>
    isExplained({ ...line }, { faultsOf: (broker) => (broker === 'broker1' ? ['unavailable'] : []), isRestarting })

  it.each([
    ['a fault of the broker', failed('BROKER_UNAVAILABLE'), true],
    ['the same on a broker that is well', failed('BROKER_UNAVAILABLE', 'broker-default-broker2'), false],
    ['another fault', failed('SEMP_LOGIN_REFUSED'), false],
    ['a change that was faster', failed('SUPERSEDED', 'broker-default-broker2'), true],
    ['what nobody thought of', failed('UNEXPECTED'), false],
    ['a sick broker that rests', { event: 'broker.resting', broker: 'broker1' }, true],
    ['a broker that rests though it is well', { event: 'broker.resting', broker: 'broker2' }, false],
    ['an error of the worker', { event: 'worker.error' }, false],
  ])('of %s', (_what, line, isExpected) => expect(explained(line)).toBe(isExpected))

  it('of a job that a restart broke off is explained by that alone', () => {
    expect(explained(failed('ABORTED'))).toBe(false)
    expect(explained(failed('ABORTED'), true)).toBe(true)
  })
})

describe('memory', () => {
  const samples = (...heapMb: readonly number[]) =>
    heapMb.map((each, index) => ({ atMs: index * 100, heapMb: each, rssMb: 200, resources: { Timeout: each } }))
  const { growth } = shortSoak({ seed: 1 })

  it('may grow in the first third, and stays then', () => {
    expect(growthProblems(samples(50, 90, 100, 101, 99, 102), 600, growth)).toEqual([])
  })

  it('must not grow on and on, nor what is open', () => {
    const found = growthProblems(samples(50, 60, 100, 100, 300, 300), 600, growth)
    expect(found).toEqual(['heapMb grew from 100 to 300', 'open resources grew from 100 to 300'])
  })
})
