import { type BrokerObject, OBJECT_KINDS, type ObjectKind, type ObjectRef } from '../domain/broker-object.ts'
import { codeOf, fateOf } from '../domain/errors.ts'
import type { RegistrationId } from '../domain/ids.ts'
import { Cohort } from './cohort.ts'
import { allDone, concurrently } from './concurrently.ts'
import { ExpectedState } from './expected-state.ts'
import { ALL_LISTINGS, type ListingTurn, listingTurn, nextListing } from './listing-turn.ts'
import { type Rotation, rotateLogins } from './login-rotation.ts'
import { isLookalike } from './lookalikes.ts'
import { type PlanSettings, type RegistrationFacts, wantedObjects } from './plan-registration.ts'
import type { BrokerPort } from './ports.ts'
import { type ReconcileDependencies, type ReconcileOutcome, reconcileRegistration } from './reconcile.ts'
import type { RunTrigger } from './store-port.ts'
import type { BrokerKey, SweepMemory, SweepStore } from './sweep-port.ts'

export interface SweepDependencies extends ReconcileDependencies {
  readonly sweepStore: SweepStore
  /** Registrations that are reconciled side by side. */
  readonly concurrency: number
  /** Each credential is proved by a login once in this time. */
  readonly proveEveryMs: number
  /** Without it, and when a person asks, a sweep reads everything and remembers nothing. */
  readonly memory?: SweepMemory
  /** The most listings of members in one sweep; the rest takes its turn in the next ones. */
  readonly maxListings: number
}

export interface SweepRequest {
  readonly broker: BrokerKey
  readonly trigger: RunTrigger
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SweepProgress) => void
}

export interface SweepProgress {
  readonly phase: 'reading the store' | 'reading the broker' | 'reconciling' | 'logging in'
  readonly done: number
}

export interface SweepResult {
  /** Registrations whose objects were compared in bulk. */
  readonly compared: number
  readonly objectsRead: number
  /** Registrations that were reconciled one by one, by how that ended: one that waits may have been changed too. */
  readonly inSync: number
  readonly changed: number
  readonly waiting: number
  readonly busy: number
  readonly failed: number
  /** Credentials that were proved by a login because their turn had come, and those that the broker refused. */
  readonly loginsProbed: number
  readonly loginsRefused: number
}

/**
 * A full reconciliation of one broker. Bulk reads find what differs: the store says what should be there, the broker's
 * pages stream by, and whatever is not as expected makes its registration a suspect. Suspects and pairs that have not
 * settled are then reconciled one by one, which is the only path that writes. At the end a share of the credentials logs
 * in; registrations of those that the broker refuses are reconciled, too.
 */
export async function sweepBroker(dependencies: SweepDependencies, request: SweepRequest): Promise<SweepResult> {
  const { memory, ...others } = dependencies
  const { now, maxListings } = others
  const isRemembered = memory !== undefined && request.trigger !== 'operator'
  const reading = isRemembered ? { ...others, remember: { memory, now, maxListings } } : others
  const { suspects, compared, objectsRead } = await findSuspects(reading, request)
  const first = await reconcileSuspects(dependencies, request, suspects)
  const { probed, refused } = await rotate(dependencies, request)
  const second = await reconcileSuspects(dependencies, request, refused)
  return { compared, objectsRead, ...sum(first, second), loginsProbed: probed, loginsRefused: refused.size }
}

async function rotate(
  dependencies: SweepDependencies,
  { broker, signal, onProgress }: SweepRequest,
): Promise<Rotation> {
  const { verifier } = dependencies
  if (verifier === undefined) return { probed: 0, refused: new Set() }
  const rotation = await rotateLogins({ ...dependencies, verifier }, broker, signal)
  onProgress?.({ phase: 'logging in', done: rotation.probed })
  return rotation
}

const sum = (a: Counts, b: Counts): Counts => ({
  inSync: a.inSync + b.inSync,
  changed: a.changed + b.changed,
  waiting: a.waiting + b.waiting,
  busy: a.busy + b.busy,
  failed: a.failed + b.failed,
})

export interface Suspects {
  /** Registrations that a run may have something to do for: suspects first, then pairs that have not settled. */
  readonly suspects: AsyncIterable<RegistrationId>
  readonly compared: number
  readonly objectsRead: number
}

type ReadingDependencies = Pick<SweepDependencies, 'broker' | 'sweepStore'> & {
  readonly settings: Pick<PlanSettings, 'maxTopics'>
  readonly remember?: Remember
}

/** The memory of a sweep with what it needs to know of the clock and the settings. */
interface Remember extends Pick<SweepDependencies, 'now' | 'maxListings'> {
  readonly memory: SweepMemory
}

/** The reading half of a sweep; writes nothing on the broker. */
export async function findSuspects(
  { broker, sweepStore, settings, remember }: ReadingDependencies,
  request: Omit<SweepRequest, 'trigger'>,
): Promise<Suspects> {
  await broker.facts(request.signal)
  const read = new Set(await remember?.memory.readKinds(request.broker, remember.now()))
  const turn = remember === undefined ? ALL_LISTINGS : await turnOf(remember, request.broker)
  const expected = new ExpectedState(turn)
  const suspects = new Set<RegistrationId>()
  let compared = 0
  for await (const chunk of sweepStore.settled(request.broker, request.signal)) {
    for (const facts of chunk) {
      if (!expectRegistration(expected, facts, settings, read)) suspects.add(facts.registration.registrationId)
    }
    compared += chunk.length
    request.onProgress?.({ phase: 'reading the store', done: compared })
  }
  const kinds = OBJECT_KINDS.filter((kind) => !read.has(kind))
  const objectsRead = await readBroker(broker, expected, { ...request, kinds, ...(remember && { remember }) })
  await remember?.memory.allRead(request.broker, nextListing(turn))
  for (const owner of expected.suspects()) suspects.add(owner)
  return { suspects: withUnsettled(sweepStore, request, suspects), compared, objectsRead }
}

async function turnOf({ memory, maxListings }: Remember, broker: BrokerKey): Promise<ListingTurn> {
  const { from, count } = await memory.listings(broker)
  return listingTurn(from, count, maxListings)
}

/** False when bulk reads cannot tell whether the registration is in order. */
function expectRegistration(
  expected: ExpectedState,
  facts: RegistrationFacts,
  settings: Pick<PlanSettings, 'maxTopics'>,
  read: ReadonlySet<ObjectKind>,
): boolean {
  const wanted = wantedObjects(facts, settings)
  if (!wanted.ok) return false
  const owner = facts.registration.registrationId
  for (const object of wanted.desired.objects) if (!read.has(object.kind)) expected.expect(object, owner)
  for (const { object, registrationId, withdrawnAtMs, passwordDue, refusedLogin } of facts.ledger) {
    if (registrationId === null) continue
    if (withdrawnAtMs === null && (passwordDue || refusedLogin?.reapplied === false)) return false
    const isExpectedOff = withdrawnAtMs !== null && object.kind === 'clientUsername' && !read.has(object.kind)
    if (isExpectedOff) expected.expectDisabled(object, owner)
  }
  return true
}

/** Pairs that have not settled are not expected, so most of a new broker may look so: the ledger decides. */
const MOST_LOOKALIKES = 20_000

interface ReadRequest extends Omit<SweepRequest, 'trigger'> {
  readonly kinds: readonly ObjectKind[]
  readonly remember?: Remember
}

/**
 * Streams all kinds side by side, as one page of a kind follows the other; at most two pages of each are in memory.
 * Members are listed for our own objects only, as their turn comes.
 */
async function readBroker(
  broker: BrokerPort,
  expected: ExpectedState,
  { broker: key, kinds, remember, signal, onProgress }: ReadRequest,
): Promise<number> {
  let objectsRead = 0
  const lookalikes: ObjectRef[] = []
  const readKind = async (kind: ObjectKind): Promise<void> => {
    await concurrently(broker.list(kind, signal), 2, async (page) => {
      objectsRead += page.length
      if (remember !== undefined && lookalikes.length < MOST_LOOKALIKES) {
        const strange = page.filter((object) => isLookalike(object) && !expected.knows(object))
        lookalikes.push(...strange.map(({ name }) => ({ kind, name })))
      }
      await allDone(page.map((object) => seeObject(broker, expected, object, signal)))
      onProgress?.({ phase: 'reading the broker', done: objectsRead })
    })
    await remember?.memory.kindRead(key, kind, [...expected.suspects(kind)], remember.now())
  }
  await allDone(kinds.map(readKind))
  // A sweep that goes on where another was cut off has not seen all of them.
  if (kinds.length === OBJECT_KINDS.length) await remember?.memory.lookalikes(key, lookalikes)
  return objectsRead
}

async function seeObject(
  broker: BrokerPort,
  expected: ExpectedState,
  object: BrokerObject,
  signal?: AbortSignal,
): Promise<void> {
  if (!expected.knows(object)) return
  if (!expected.needsMembers(object)) {
    expected.see(object)
    return
  }
  const members = await broker.members(object, signal)
  if (members !== null) expected.see({ ...object, members })
}

type Counts = Pick<SweepResult, 'inSync' | 'changed' | 'waiting' | 'busy' | 'failed'>
const SICK_AFTER_FAILURES = 5

async function reconcileSuspects(
  dependencies: SweepDependencies,
  request: SweepRequest,
  suspects: AsyncIterable<RegistrationId> | Iterable<RegistrationId>,
): Promise<Counts> {
  const counts = { inSync: 0, changed: 0, waiting: 0, busy: 0, failed: 0 }
  let failuresInARow = 0
  let done = 0

  const reconcileOne = async (registrationId: RegistrationId, cohort: Cohort): Promise<void> => {
    // Being told to stop is not a failure of the registration: it ends the sweep.
    request.signal?.throwIfAborted()
    try {
      const together = { ...dependencies, meet: () => cohort.arrive() }
      const outcome = await reconcileRegistration(together, {
        pair: { ...request.broker, registrationId },
        trigger: request.trigger,
        ...(request.signal === undefined ? {} : { signal: request.signal }),
      })
      counts[countOf(outcome)] += 1
      failuresInARow = 0
    } catch (error) {
      // Recorded on the pair. A broker that fails again and again is sick: the queue waits for it.
      counts.failed += 1
      if (fateOf(error) !== 'stop' && codeOf(error) !== 'SUPERSEDED') {
        failuresInARow += 1
        if (failuresInARow >= SICK_AFTER_FAILURES) throw error
      }
    }
    done += 1
    request.onProgress?.({ phase: 'reconciling', done })
  }

  const reconcileCohort = async (registrationIds: readonly RegistrationId[]): Promise<void> => {
    const cohort = new Cohort(registrationIds.length)
    await allDone(registrationIds.map((id) => reconcileOne(id, cohort).finally(() => cohort.leave())))
  }
  // While one cohort is at the store, the other is at the broker.
  const cohorts = chunked(suspects, Math.max(1, Math.ceil(dependencies.concurrency / COHORTS)))
  await concurrently(cohorts, COHORTS, reconcileCohort)
  return counts
}

const COHORTS = 2

async function* chunked<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  size: number,
): AsyncIterable<readonly Item[]> {
  let chunk: Item[] = []
  for await (const item of items) {
    chunk.push(item)
    if (chunk.length < size) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}

async function* withUnsettled(
  sweepStore: SweepStore,
  { broker, signal }: Omit<SweepRequest, 'trigger'>,
  suspects: ReadonlySet<RegistrationId>,
): AsyncIterable<RegistrationId> {
  yield* suspects
  for await (const chunk of sweepStore.unsettled(broker, signal)) {
    for (const { registrationId } of chunk) if (!suspects.has(registrationId)) yield registrationId
  }
}

function countOf(outcome: ReconcileOutcome): keyof Counts {
  switch (outcome.status) {
    case 'busy':
      return 'busy'
    case 'gone':
      return 'inSync'
    case 'done': {
      const { refused, conflicts, steps } = outcome.plan
      const isHeld = steps.some(({ decision }) => decision === 'held')
      if (refused !== null || conflicts.length > 0 || isHeld) return 'waiting'
      return outcome.executed.length > 0 ? 'changed' : 'inSync'
    }
    default: {
      const unreachable: never = outcome
      return unreachable
    }
  }
}
