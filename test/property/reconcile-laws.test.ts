import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ObjectRef, objectKey } from '../../src/domain/broker-object.ts'
import { errorLine, KeymeshError } from '../../src/domain/errors.ts'
import { registrationId } from '../../src/domain/ids.ts'
import { desiredState } from '../../src/reconcile/desired.ts'
import type { LedgerEntry } from '../../src/reconcile/ledger.ts'
import { level } from '../../src/reconcile/order.ts'
import { type Action, actionRef } from '../../src/reconcile/plan.ts'
import {
  type ObservedFacts,
  planRegistration,
  queueOwners,
  type RegistrationFacts,
} from '../../src/reconcile/plan-registration.ts'
import { renderPlan } from '../../src/reconcile/render.ts'
import { secretText } from '../helpers/memory-store.ts'
import { MemoryWorld } from '../helpers/memory-world.ts'
import {
  protocols,
  registration,
  type Scenario,
  scenario,
  shuffledRegistration,
  tamper,
} from '../helpers/reconcile-arbitraries.ts'
import { DAY_MS, NOW_MS, PAIR, pairOf, policyOf, registrationOf, SETTINGS } from '../helpers/sample.ts'

const BY_HAND = { settings: { allowDisruptive: true } }

/** A world in the state that the scenario tells, just before the run that the law is about. */
async function arrange(story: Scenario): Promise<{ readonly world: MemoryWorld; readonly foreign: ObjectRef[] }> {
  const world = new MemoryWorld({ sempVersion: story.sempVersion })
  if (!story.foreignCameLater) for (const ref of story.foreign) world.broker.put(ref)
  const { protocols } = story
  world.store.setPolicy(PAIR, { queuePermission: story.queuePermission })
  if (story.before !== null) {
    world.store.put(PAIR, { registration: story.before, protocols })
    if (story.cutAfterWrites !== null) cut(world, story.cutAfterWrites)
    await world.run(PAIR, BY_HAND).catch(() => undefined)
  }
  const created = new Set(world.broker.writes.filter(({ operation }) => operation === 'create').map(objectKey))
  const foreign = story.foreign.filter((ref) => !created.has(objectKey(ref)))
  if (story.foreignCameLater) for (const ref of foreign) world.broker.put(ref)
  const spared = new Set(foreign.map(objectKey))
  for (const each of story.tampering) tamper(world.broker, each, spared)
  world.store.put(PAIR, { registration: story.after, protocols })
  world.nowMs += story.elapsedMs
  return { world, foreign }
}

/** Lets some writes pass; the next takes effect without an answer, which is the worst case. */
function cut(world: MemoryWorld, writes: number): void {
  const error = new KeymeshError({ code: 'BROKER_TIMEOUT', fate: 'retry', message: 'no answer' })
  for (const on of ['create', 'update', 'addMember'] as const) {
    world.broker.failNext({ error, on, after: writes, applied: true })
  }
}

const actionsOf = (steps: readonly { readonly action: Action }[]): readonly Action[] =>
  steps.map(({ action }) => action)

describe('laws of plans', () => {
  it('1: the plan of a state against itself is empty, and the state is not', () => {
    fc.assert(
      fc.property(registration(), protocols, fc.constantFrom('no-access' as const, 'consume' as const), (...input) => {
        const { facts, desired, read } = inSync(...input)
        expect(desired.objects.length).toBeGreaterThanOrEqual(2)
        const { plan, ledgerChanges, adopt } = planRegistration(facts, desired, read, SETTINGS)
        expect(plan).toMatchObject({ steps: [], drift: [], conflicts: [], refused: null, waitsUntilMs: null })
        expect({ ...ledgerChanges, adopt }).toEqual({ forget: [], withdraw: [], restore: [], adopt: [] })
      }),
    )
  })

  it('2: after a run the next plan is empty and the next run writes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (story) => {
        const { world } = await arrange(story)
        const first = await world.run(PAIR, BY_HAND)
        const { plan } = await world.plan(PAIR, BY_HAND)
        expect(renderPlan({ ...plan, notes: [], conflicts: [], drift: [] })).toEqual([
          `registration ${PAIR.registrationId} on broker broker1, generation ${plan.generation}: nothing to do`,
        ])
        // What Keymesh cannot change stays reported: a profile of somebody else, names that are taken.
        expect(plan.drift.filter(({ kind }) => kind !== 'unsuitable')).toEqual([])
        expect(await world.writesDuring(() => world.run(PAIR, BY_HAND))).toEqual([])
        const inSync = first.status === 'done' && first.plan.conflicts.length === 0
        expect(world.store.row(PAIR).state).toBe(inSync ? 'in-sync' : 'conflict')
        for (const { consumerKey, version } of inSync && story.after.accessRequests.length > 0
          ? story.after.credentials
          : []) {
          expect(world.broker.passwords.get(consumerKey)).toBe(secretText(PAIR, consumerKey, version))
        }
      }),
      { numRuns: 300 },
    )
  })

  it('3: no action names an object that is not ours, and what is not ours stays as it is', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (story) => {
        const { world, foreign } = await arrange(story)
        const ours = new Set(world.store.ledger(PAIR).map(({ object }) => objectKey(object)))
        const present = new Set(world.broker.keys())
        const actions = actionsOf((await world.plan()).plan.steps)
        const creates = new Set(
          actions.flatMap((action) => (action.type === 'create' ? [objectKey(action.object)] : [])),
        )
        for (const action of actions) {
          const key = objectKey(actionRef(action))
          expect(creates.has(key), `${action.type} ${key}`).toBe(!present.has(key))
          if (present.has(key)) expect(ours).toContain(key)
        }
        const before = foreign.map((ref) => world.broker.peek(ref))
        const passwords = foreign.map((ref) => world.broker.passwords.get(ref.name))
        await world.run(PAIR, BY_HAND)
        expect(foreign.map((ref) => world.broker.peek(ref))).toEqual(before)
        expect(foreign.map((ref) => world.broker.passwords.get(ref.name))).toEqual(passwords)
      }),
      { numRuns: 300 },
    )
  })

  it('4: the order of the inputs does not change the plan', async () => {
    await fc.assert(
      fc.asyncProperty(
        scenario.chain((story) => fc.tuple(fc.constant(story), shuffledRegistration(story.after))),
        fc.infiniteStream(fc.nat()),
        async ([story, other], numbers) => {
          const { world } = await arrange(story)
          const expected = await world.plan(PAIR, BY_HAND)
          const facts = await world.store.facts(PAIR)
          if (facts === null) throw new Error('no facts')
          const observed = new Map<string, ReturnType<typeof world.broker.peek> | null>()
          for (const key of mixed([...refsOf(facts, expected)], numbers)) {
            observed.set(objectKey(key), world.broker.peek(key) ?? null)
          }
          const registration = { ...other, generation: facts.registration.generation }
          const shuffledFacts = { ...facts, registration, ledger: mixed(facts.ledger, numbers) }
          const result = desiredState({
            registration,
            protocols: mixed(facts.protocols, numbers),
            policy: facts.policy,
            queueOwners: queueOwners(shuffledFacts.ledger),
            maxTopics: SETTINGS.maxTopics,
          })
          if (!result.ok) throw new Error(result.problem)
          const read = readOf(observed, world.nowMs, story.sempVersion !== '2.49')
          const settings = { ...SETTINGS, allowDisruptive: true }
          const planned = planRegistration(shuffledFacts, result.desired, read, settings)
          expect(JSON.stringify(planned)).toBe(JSON.stringify(expected))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('5: creations come after what they need, deletions before, and no step of a level waits for another', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (story) => {
        const { world } = await arrange(story)
        const { plan } = await world.plan(PAIR, BY_HAND)
        const actions = actionsOf(plan.steps)
        const orders = actions.flatMap((one) =>
          actions.filter((other) => mustPrecede(one, other)).map((other) => [one, other] as const),
        )
        for (const [one, other] of orders) {
          expect(actions.indexOf(one)).toBeLessThan(actions.indexOf(other))
          expect(level(one)).toBeLessThan(level(other))
        }
        // The fake refuses a username without its profiles and the deletion of a profile that is in use.
        await expect(world.run(PAIR, BY_HAND)).resolves.toMatchObject({ status: 'done' })
      }),
      { numRuns: 300 },
    )
  })

  it('6: no secret occurs in a plan, a run, a line for a person or an error', async () => {
    let passwords = 0
    await fc.assert(
      fc.asyncProperty(scenario, fc.boolean(), async (story, fails) => {
        const { world } = await arrange(story)
        if (fails) cut(world, 1)
        const planned = await world.plan(PAIR, BY_HAND)
        const outcome = await world.run(PAIR, BY_HAND).catch((error: unknown) => ({ error, line: errorLine(error) }))
        const texts = [planned, outcome, world.store.runs, world.store.ledger(PAIR), renderPlan(planned.plan)]
        for (const each of texts) {
          expect(JSON.stringify(each)).not.toContain('s3cret')
          expect(inspect(each, { depth: 20, showHidden: true })).not.toContain('s3cret')
        }
        passwords += [...world.broker.passwords.values()].filter((text) => text.startsWith('s3cret')).length
      }),
    )
    expect(passwords).toBeGreaterThan(0)
  })

  it('7: a plan with more deletions than allowed is refused whole and nothing is done', async () => {
    await fc.assert(
      fc.asyncProperty(registration(), protocols, async (before, protocols) => {
        const world = new MemoryWorld()
        world.store.put(PAIR, { registration: before, protocols })
        await world.run(PAIR, BY_HAND)
        world.store.put(PAIR, {
          registration: registrationOf(PAIR, { accessRequests: [], credentials: [] }),
          protocols,
        })
        await world.run(PAIR, BY_HAND)
        world.nowMs += 2 * DAY_MS
        const deletes = (await world.plan()).plan.steps.filter(({ action }) => action.type === 'delete').length
        expect(deletes).toBeGreaterThan(0)
        // Somebody enabled a username again: not even that is undone by a plan that is refused.
        for (const { consumerKey } of before.credentials) {
          world.broker.tamper({ kind: 'clientUsername', name: consumerKey }, { enabled: true })
        }
        await expectRefused(world, { settings: { maxDeletes: deletes - 1 } })
        expect(await world.writesDuring(() => world.run(PAIR, { settings: { maxDeletes: deletes } }))).not.toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  it('7: withdrawing too many registrations at once is refused for each of them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 14 }),
        fc.integer({ min: 1, max: 14 }),
        fc.nat(100),
        async (total, withdrawn, percent) => {
          const world = new MemoryWorld()
          const pairs = Array.from({ length: total }, (_, index) => pairOf(`app-${index}`))
          world.store.setPolicy(PAIR, { maxWithdrawals: 3, maxWithdrawalsPercent: percent })
          for (const pair of pairs) {
            world.store.put(pair, { registration: registrationOf(pair) })
            await world.run(pair)
          }
          const leaving = pairs.slice(0, withdrawn)
          for (const pair of leaving)
            world.store.put(pair, { registration: registrationOf(pair, { accessRequests: [] }) })
          const share = (leaving.length / total) * 100
          const suspicious = leaving.length > 3 && (leaving.length === total || share > percent)
          for (const pair of leaving) {
            if (suspicious) await expectRefused(world, {}, pair)
            else expect((await world.plan(pair)).plan.refused).toBeNull()
          }
        },
      ),
      { numRuns: 60 },
    )
  })
})

async function expectRefused(
  world: MemoryWorld,
  options: Parameters<MemoryWorld['run']>[1],
  pair = PAIR,
): Promise<void> {
  const ledger = world.store.ledger(pair)
  const writes = await world.writesDuring(async () => {
    const outcome = await world.run(pair, options)
    if (outcome.status !== 'done') throw new Error(outcome.status)
    expect(outcome.plan.refused).not.toBeNull()
    expect(outcome.plan.steps.every(({ decision }) => decision === 'held')).toBe(true)
  })
  expect(writes).toEqual([])
  expect(world.store.ledger(pair)).toEqual(ledger)
  expect(world.store.row(pair).state).toBe('refused')
}

/** A registration, the broker that has all of it, and the ledger that knows. */
function inSync(
  input: Parameters<typeof registrationOf>[1] & {},
  protocols: RegistrationFacts['protocols'],
  queuePermission: 'no-access' | 'consume',
) {
  const policy = policyOf({ queuePermission })
  const registration = registrationOf(PAIR, input)
  const result = desiredState({ registration, protocols, policy, queueOwners: {}, maxTopics: SETTINGS.maxTopics })
  if (!result.ok) throw new Error(result.problem)
  const { desired } = result
  const ledger = desired.objects.map(
    ({ kind, name, attributes, members }): LedgerEntry => ({
      object: { kind, name },
      registrationId: kind === 'clientProfile' ? null : registrationId(PAIR.registrationId),
      origin: 'created',
      applied: { attributes, members },
      confirmedCredentialVersion: desired.credentialVersions[name] ?? null,
      passwordDue: false,
      withdrawnAtMs: null,
    }),
  )
  const facts: RegistrationFacts = {
    brokerId: PAIR.brokerId,
    registration,
    protocols,
    policy,
    ledger,
    adoptions: new Set(),
    withdrawalConfirmed: false,
    registrationsOnBroker: 0,
    withdrawnOnBroker: 0,
  }
  const observed = new Map(
    desired.objects.map((object) => [
      objectKey(object),
      { ...object, attributes: { ...object.attributes, somethingElse: 7 } },
    ]),
  )
  return { facts, desired, read: readOf(observed, NOW_MS, false) }
}

const readOf = (observed: ReadonlyMap<string, unknown>, nowMs: number, requiresDisable: boolean): ObservedFacts => ({
  observed: observed as ObservedFacts['observed'],
  queuedMessages: Object.fromEntries(
    [...observed.keys()].filter((key) => key.startsWith('queue/')).map((key) => [key.slice('queue/'.length), 0]),
  ),
  requiresDisable,
  nowMs,
})

function refsOf(
  facts: RegistrationFacts,
  { desired }: { readonly desired: { readonly objects: readonly ObjectRef[] } },
) {
  const refs = [
    ...desired.objects,
    ...facts.ledger.filter((each) => each.registrationId !== null).map(({ object }) => object),
  ]
  return new Map(refs.map(({ kind, name }) => [objectKey({ kind, name }), { kind, name }])).values()
}

/** A permutation that the stream decides. */
function mixed<Item>(items: readonly Item[], numbers: fc.Stream<number>): Item[] {
  return items
    .map((item) => ({ item, rank: numbers.next().value ?? 0 }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

/** What the broker asks for, and what keeps clients safe, said once more and without levels. */
function mustPrecede(one: Action, other: Action): boolean {
  const [ref, otherRef] = [actionRef(one), actionRef(other)]
  const sameObject = objectKey(ref) === objectKey(otherRef)
  const grantsAccess = one.type === 'create' || one.type === 'add-member'
  const takesAccess = other.type === 'delete' || other.type === 'remove-member'
  if (other.type === 'create') {
    const { aclProfileName, clientProfileName, owner } = other.object.attributes
    if (one.type === 'create' && ref.kind === 'clientUsername' && otherRef.kind === 'queue') return ref.name === owner
    if (otherRef.kind !== 'clientUsername' || one.type === 'delete' || one.type === 'remove-member') return false
    if (ref.kind === 'aclProfile') return ref.name === aclProfileName
    return ref.kind === 'clientProfile' && ref.name === clientProfileName
  }
  if (one.type === 'create' && sameObject) return true
  if (one.reason === 'no-longer-wanted' && one.type === 'update')
    return other.reason !== one.reason || other.type === 'delete'
  if (one.type === 'add-member' && other.type === 'remove-member') return sameObject
  if (one.type === 'delete' && other.type === 'delete')
    return ref.kind === 'clientUsername' && otherRef.kind === 'aclProfile'
  return grantsAccess && takesAccess
}
