import { type ObjectRef, objectKey } from '../domain/broker-object.ts'
import { codeOf, errorLine, fateOf, KeymeshError } from '../domain/errors.ts'
import { consumerKey, type RunId } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import { type Applied, apply, supersededError } from './apply.ts'
import { type LedgerChanges, ledgerOf } from './ledger.ts'
import { observe, readQueuedMessages } from './observe.ts'
import { confirmations, driftRecords, pairState, runDetail } from './outcome.ts'
import { type Action, actionRef, type Plan } from './plan.ts'
import {
  type PlannedRegistration,
  type PlanSettings,
  planRegistration,
  type RegistrationFacts,
  wantedObjects,
} from './plan-registration.ts'
import type { BrokerFacts, BrokerPort } from './ports.ts'
import { confirmDisabled, disableStaying, NOTHING_REVOKED, revokeAtOnce } from './revoke.ts'
import type { FinishedRun, Intent, Lease, LoginRecord, Pair, ReconcileStore, RunTrigger } from './store-port.ts'
import {
  type LoginsOutcome,
  loginsOutcome,
  type Verifier,
  type VerifyRequest,
  verifyLogins,
  withVerdicts,
} from './verify.ts'
import { graceEndsAtMs } from './withdraw.ts'

export interface ReconcileDependencies {
  readonly broker: BrokerPort
  readonly store: ReconcileStore
  readonly now: () => number
  readonly newRunId: () => RunId
  /** Names this process in leases. */
  readonly holder: string
  readonly leaseMs: number
  readonly settings: PlanSettings
  /** Logs in with what was written; without it nothing is proved. */
  readonly verifier?: Verifier
  /** Awaited before the intent and before the outcome: runs of a cohort meet there. */
  readonly meet?: () => Promise<void>
}

export interface ReconcileRequest {
  readonly pair: Pair
  readonly trigger: RunTrigger
  readonly signal?: AbortSignal
}

export type ReconcileOutcome =
  | { readonly status: 'busy' }
  | { readonly status: 'gone' }
  | {
      readonly status: 'done'
      readonly plan: Plan
      readonly executed: readonly Action[]
      readonly logins: readonly LoginRecord[]
      /** What the logins come to. */
      readonly proof: LoginsOutcome
    }

/**
 * One registration on one broker, the whole sentence of DESIGN section 4:
 * take the lease, gather what the store knows, observe the broker, plan, record the intent, apply, log in, record the
 * outcome. A password that the broker refuses is written once more. A failure is recorded on the pair and thrown on;
 * running again is always safe.
 */
export async function reconcileRegistration(
  dependencies: ReconcileDependencies,
  request: ReconcileRequest,
): Promise<ReconcileOutcome> {
  let reapplied = false
  for (let attempt = 1; ; attempt += 1) {
    try {
      const outcome = await reconcileOnce(dependencies, request)
      if (outcome.status !== 'done' || outcome.proof.result !== 'reapply' || reapplied) return outcome
      // The refusal is on record: the next plan writes the password, and says so.
      reapplied = true
    } catch (error) {
      // Somebody created the object after we had seen it absent: observe again, and find it ours or in conflict.
      if (codeOf(error) !== 'ALREADY_EXISTS' || attempt === OBSERVATIONS) throw error
    }
  }
}

const OBSERVATIONS = 3

async function reconcileOnce(
  dependencies: ReconcileDependencies,
  request: ReconcileRequest,
): Promise<ReconcileOutcome> {
  const { store, holder, leaseMs } = dependencies
  const before = request.trigger === 'revocation' ? await revokeAtOnce(dependencies, request) : NOTHING_REVOKED
  const lease = await store.acquire(request.pair, holder, leaseMs)
  if (lease === null) {
    if (before.error !== null) throw before.error
    return { status: (await store.facts(request.pair)) === null ? 'gone' : 'busy' }
  }
  const start = { runId: dependencies.newRunId(), trigger: request.trigger, startedAtMs: dependencies.now() }
  const failed = async (error: unknown, generation: number | null, done: Partial<FinishedRun> = {}): Promise<never> => {
    const run = { ...failedRun({ ...start, generation }, error, dependencies.now()), ...done }
    // When this fails too, the lease runs out by itself, and the first error is the one that tells.
    await store.finish(lease, run).catch(() => undefined)
    throw error
  }
  if (before.error !== null) return failed(before.error, null)
  const facts = await store.facts(request.pair).catch((error: unknown) => failed(error, null))
  if (facts === null) {
    await store.finish(lease, emptyRun({ ...start, generation: null }, dependencies.now()))
    return { status: 'gone' }
  }
  const { generation } = facts.registration
  const leased = { lease, facts }
  const { planned, moved, disabled } = await prepare(dependencies, request, leased).catch(async (error: unknown) => {
    // What stands in the way of the plan does not keep a credential alive that ended.
    const more = await disableStaying(revoking(dependencies, request, leased), facts).catch((failure: unknown) =>
      failed(failure, generation),
    )
    const done = [...before.disabled, ...more]
    const ran = { stepsRun: done.length, detail: runDetail(done) }
    return failed(error, generation, { ...ran, confirmations: confirmDisabled(facts, done) })
  })
  const revoked = [...before.disabled, ...disabled]
  return applyAndRecord(dependencies, request, { ...leased, planned, moved, revoked, run: { ...start, generation } })
}

const revoking = (dependencies: ReconcileDependencies, { signal }: ReconcileRequest, leased: Leased) => ({
  broker: dependencies.broker,
  beforeWrite: beforeWriteOf(dependencies, leased),
  signal,
})

/** Called before each write. Throws when the lease is lost or the generation moved on. */
const beforeWriteOf =
  ({ store, leaseMs }: ReconcileDependencies, { lease, facts }: Leased) =>
  async (): Promise<void> => {
    const { registrationId, generation } = facts.registration
    if (!(await store.mayWrite(lease, generation, leaseMs))) throw supersededError(`registration ${registrationId}`)
  }

/**
 * For who does not get as far as a run, because the broker cannot be reached at all: the pair shows it all the same,
 * unless another holder is at work on it.
 */
export async function recordFailure(
  { store, holder, leaseMs, newRunId, now }: Omit<ReconcileDependencies, 'broker' | 'settings'>,
  { pair, trigger }: ReconcileRequest,
  error: unknown,
): Promise<void> {
  const startedAtMs = now()
  const lease = await store.acquire(pair, holder, leaseMs)
  if (lease === null) return
  const run = { runId: newRunId(), trigger, startedAtMs, generation: null }
  await store.finish(lease, failedRun(run, error, now()))
}

interface Leased {
  readonly lease: Lease
  readonly facts: RegistrationFacts
}

/** What comes before the first write on the broker: observation, plan, and the intent in the ledger. */
async function prepare(
  dependencies: ReconcileDependencies,
  request: ReconcileRequest,
  { lease, facts }: Leased,
): Promise<Pick<Prepared, 'planned' | 'moved'> & { readonly disabled: readonly Action[] }> {
  const planned = await planNow(dependencies, facts, request.signal)
  await dependencies.meet?.()
  const moved = await dependencies.store.intend(lease, intents(planned, facts))
  const revoke = revoking(dependencies, request, { lease, facts })
  const disabled = planned.plan.refused === null ? [] : await disableStaying(revoke, facts)
  return { planned, moved, disabled }
}

type RunStart = Pick<FinishedRun, 'runId' | 'trigger' | 'startedAtMs' | 'generation'>

interface Prepared extends Leased {
  readonly planned: PlannedRegistration
  /** Another registration's until now. */
  readonly moved: readonly ObjectRef[]
  /** What was switched off before, or beside, the plan. */
  readonly revoked: readonly Action[]
  readonly run: RunStart
}

async function applyAndRecord(
  dependencies: ReconcileDependencies,
  { pair, signal }: ReconcileRequest,
  { lease, facts, planned, moved, revoked, run }: Prepared,
): Promise<ReconcileOutcome> {
  const { broker, store, now } = dependencies
  const { generation } = facts.registration
  const secrets = secretsOf(planned.plan, store, pair)
  const { executed, notCreated, sent, error } = await apply(planned.plan.steps, {
    broker,
    beforeWrite: beforeWriteOf(dependencies, { lease, facts }),
    secret: (clientUsername, version) =>
      secrets.get(clientUsername) ?? storedSecret(store, pair, clientUsername, version),
    ...(signal === undefined ? {} : { signal }),
  })
  const proved = error === null ? await prove(dependencies, { pair, planned, executed, lease, signal }) : NOTHING_PROVED
  const failure = error ?? proved.error
  const failed = failure !== null
  const proof = loginsOutcome(proved.logins, (name) => wasReapplied(facts, executed, name))
  await dependencies.meet?.()
  const finished: FinishedRun = {
    ...run,
    finishedAtMs: now(),
    ...outcomeOf(planned.plan, { error: failure, proof }, now()),
    reachedGeneration: !failed && pairState(planned.plan).state === 'in-sync' ? generation : null,
    stepsRun: revoked.length + executed.length,
    stepsHeld: planned.plan.steps.filter((step) => step.decision === 'held').length,
    detail: runDetail([...revoked, ...executed], planned.plan),
    confirmations: [...confirmations(planned, ledgerOf(facts.ledger), executed), ...confirmDisabled(facts, revoked)],
    ledgerChanges: ledgerChanges(planned, facts, { executed, notCreated, moved }),
    drift: withVerdicts(driftRecords(planned.plan, executed, failed), proved),
    logins: proved.logins,
  }
  const recorded = await store.finish(lease, finished)
  // Somebody else has the pair, and knows nothing of what this run still sent.
  const distrusted = recorded || sent.length === 0 ? Promise.resolve() : store.distrust(pair, sent)
  if (failed) {
    await distrusted.catch(() => undefined)
    throw failure
  }
  await distrusted
  if (!recorded) throw supersededError(`the lease of registration ${pair.registrationId}`)
  return { status: 'done', plan: planned.plan, executed: [...revoked, ...executed], logins: proved.logins, proof }
}

interface Proved {
  /** What the last logins said before the run; read only where a password is written again. */
  readonly before: readonly LoginRecord[]
  readonly logins: readonly LoginRecord[]
  readonly error: unknown
}

const NOTHING_PROVED: Proved = { before: [], logins: [], error: null }

interface ProveRequest extends Omit<VerifyRequest, 'signal' | 'meanwhile'> {
  readonly lease: Lease
  readonly signal: AbortSignal | undefined
}

/** Logins wait for their turn on the broker, so the lease is kept meanwhile. */
async function prove(
  { verifier, store, leaseMs }: ReconcileDependencies,
  { lease, signal, ...request }: ProveRequest,
): Promise<Proved> {
  if (verifier === undefined) return NOTHING_PROVED
  const { pair, planned } = request
  const keep = () => store.mayWrite(lease, planned.plan.generation, leaseMs).catch(() => undefined)
  const meanwhile = { everyMs: leaseMs / 3, task: keep }
  try {
    const isReapplied = planned.plan.drift.some(({ kind }) => kind === 'password')
    const before = isReapplied ? await store.logins(pair) : []
    const logins = await verifyLogins({ verifier, store }, { ...request, meanwhile, ...(signal && { signal }) })
    return { before, logins, error: null }
  } catch (error) {
    return { ...NOTHING_PROVED, error }
  }
}

/** In this run, or in an earlier one for the same version. */
function wasReapplied(facts: RegistrationFacts, executed: readonly Action[], clientUsername: string): boolean {
  const isOurs = ({ kind, name }: ObjectRef): boolean => kind === 'clientUsername' && name === clientUsername
  if (executed.some((action) => action.reason === 'login-rejected' && isOurs(actionRef(action)))) return true
  const refused = facts.ledger.find(({ object }) => isOurs(object))?.refusedLogin
  const version = facts.registration.credentials.find(({ consumerKey: key }) => key === clientUsername)?.version
  return refused !== undefined && refused.credentialVersion === version && refused.reapplied
}

/** The plan that a run would execute now. Reads the store's facts and the broker, writes nothing. */
export async function planNow(
  { broker, now, settings }: Pick<ReconcileDependencies, 'broker' | 'now' | 'settings'>,
  facts: RegistrationFacts,
  signal?: AbortSignal,
): Promise<PlannedRegistration> {
  const wanted = wantedObjects(facts, settings)
  if (!wanted.ok) {
    throw new KeymeshError({
      code: 'CANNOT_EXPRESS',
      fate: 'stop',
      message: `Registration ${facts.registration.registrationId} cannot be expressed on broker ${facts.brokerId}: ${wanted.problem}.`,
      hint: 'Change the filters, the plan or the Event API; nothing was written.',
    })
  }
  const brokerFacts = await broker.facts(signal)
  const observed = await observe(broker, wanted.refs, signal)
  // "Not found" proves absence only while the message VPN exists: it may have gone after the first read. What the ledger
  // knows is taken for gone on no older word than this; a creation finds out by itself.
  const fresh = facts.ledger.some(({ object }) => observed.get(objectKey(object)) === null)
  const absent = [...observed.values()].includes(null)
  const confirmed: BrokerFacts = absent ? await broker.facts(signal, { fresh }) : brokerFacts
  const nowMs = now()
  const queuedMessages = await readQueuedMessages(
    broker,
    queuesToDelete(facts, wanted.desired.objects, nowMs, settings),
    signal,
  )
  const read = { observed, queuedMessages, requiresDisable: confirmed.requiresDisable, nowMs }
  return planRegistration(facts, wanted.desired, read, settings)
}

function queuesToDelete(
  facts: RegistrationFacts,
  desired: readonly { readonly kind: string; readonly name: string }[],
  nowMs: number,
  { graceMs }: PlanSettings,
): readonly string[] {
  const wanted = new Set(desired.filter(({ kind }) => kind === 'queue').map(({ name }) => name))
  return facts.ledger
    .filter(({ object }) => object.kind === 'queue' && !wanted.has(object.name))
    .filter((entry) => graceEndsAtMs(entry, nowMs, graceMs) <= nowMs)
    .map(({ object }) => object.name)
}

/**
 * Asked for when the plan is known, awaited by the step that sends it: a secret that cannot be opened stops its own step
 * and what comes after it, never a revocation that comes before.
 */
function secretsOf(plan: Plan, store: ReconcileStore, pair: Pair): ReadonlyMap<string, Promise<Secret>> {
  const secrets = new Map<string, Promise<Secret>>()
  for (const { action, decision } of plan.steps) {
    const version = action.type === 'create' || action.type === 'set-password' ? action.credentialVersion : undefined
    if (decision !== 'run' || version === undefined) continue
    const { name } = actionRef(action)
    const secret = storedSecret(store, pair, name, version)
    secret.catch(() => undefined)
    secrets.set(name, secret)
  }
  return secrets
}

async function storedSecret(store: ReconcileStore, pair: Pair, name: string, version: number): Promise<Secret> {
  const stored = await store.secret(pair, consumerKey(name))
  if (stored === null || stored.version !== version) throw supersededError(`credential ${name}`)
  return stored.secret
}

function intents({ plan, adopt }: PlannedRegistration, facts: RegistrationFacts): readonly Intent[] {
  const known = new Set(facts.ledger.map(({ object }) => objectKey(object)))
  const created = plan.steps.flatMap(({ action, decision }): readonly Intent[] => {
    if (action.type !== 'create' || decision !== 'run' || known.has(objectKey(action.object))) return []
    const { kind, name } = action.object
    return [{ object: { kind, name }, shared: kind === 'clientProfile', origin: 'created' }]
  })
  const adopted = adopt.map(
    (object): Intent => ({ object, shared: object.kind === 'clientProfile', origin: 'adopted' }),
  )
  return plan.refused === null ? [...created, ...adopted] : []
}

/**
 * Rows of objects that the run deleted are forgotten too, and so are intents of this run that came to nothing: who
 * creates an object of that name later is not us. One that another registration had until now may be what its last run
 * still made. A refused plan changes nothing.
 */
function ledgerChanges(
  { plan, ledgerChanges: changes }: PlannedRegistration,
  facts: RegistrationFacts,
  { executed, notCreated, moved }: Pick<Applied, 'executed' | 'notCreated'> & Pick<Prepared, 'moved'>,
): LedgerChanges {
  if (plan.refused !== null) return { forget: [], withdraw: [], restore: [] }
  const known = new Set([...facts.ledger.map(({ object }) => object), ...moved].map(objectKey))
  const deleted = executed.filter(({ type }) => type === 'delete').map(actionRef)
  // Another registration may have intended, and made, the same shared profile.
  const unmade = notCreated.filter((ref) => ref.kind !== 'clientProfile' && !known.has(objectKey(ref)))
  const gone = [...deleted, ...unmade].map(({ kind, name }) => ({ kind, name }))
  return { ...changes, forget: [...changes.forget, ...gone] }
}

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

function outcomeOf(
  plan: Plan,
  { error, proof }: { readonly error: unknown; readonly proof: LoginsOutcome },
  nowMs: number,
): Pick<FinishedRun, 'state' | 'reason' | 'error' | 'dueAtMs'> {
  if (error !== null) return failure(error, nowMs)
  const { state, reason } = pairState(plan)
  if (state === 'in-sync' && proof.result !== 'good') return unproved(proof, nowMs)
  // What is held waits for a window or a person: looked at again each hour, and at once when something changes.
  const again = state === 'in-sync' ? plan.waitsUntilMs : Math.min(plan.waitsUntilMs ?? Infinity, nowMs + HOUR_MS)
  return { state, reason, error: null, dueAtMs: again }
}

/** The broker has what it should have, and a login with it is refused. */
function unproved(
  { result, reason }: Exclude<LoginsOutcome, { result: 'good' }>,
  nowMs: number,
): Pick<FinishedRun, 'state' | 'reason' | 'error' | 'dueAtMs'> {
  switch (result) {
    case 'reapply':
      return { state: 'lagging', reason, error: null, dueAtMs: nowMs }
    case 'refused':
      return {
        state: 'error',
        reason,
        error: { code: 'LOGIN_REFUSED', fate: 'stop', message: reason },
        dueAtMs: Infinity,
      }
    case 'disabled':
      return {
        state: 'error',
        reason,
        error: { code: 'LOGIN_DISABLED', fate: 'retry', message: reason },
        dueAtMs: nowMs + MINUTE_MS,
      }
    default: {
      const unreachable: never = result
      return unreachable
    }
  }
}

/** Another worker, a newer generation or another client was faster: no failure, the pair lags and is looked at again. */
const OVERTAKEN: ReadonlySet<string> = new Set(['SUPERSEDED', 'ALREADY_EXISTS'])

function failure(error: unknown, nowMs: number): Pick<FinishedRun, 'state' | 'reason' | 'error' | 'dueAtMs'> {
  const message = errorLine(error)
  const fate = fateOf(error)
  const superseded = OVERTAKEN.has(codeOf(error))
  return {
    state: superseded ? 'lagging' : 'error',
    reason: message,
    error: { code: codeOf(error), fate, message },
    // The queue retries sooner; this is for the poll, when the queue gave up or lost the job.
    dueAtMs: superseded ? null : fate === 'stop' ? Infinity : nowMs + MINUTE_MS,
  }
}

const NOTHING_DONE = {
  reachedGeneration: null,
  stepsRun: 0,
  stepsHeld: 0,
  detail: { ran: [], held: [] },
  confirmations: [],
  ledgerChanges: { forget: [], withdraw: [], restore: [] },
  drift: [],
  logins: [],
} as const

const emptyRun = (run: RunStart, nowMs: number): FinishedRun => ({
  ...run,
  ...NOTHING_DONE,
  finishedAtMs: nowMs,
  state: 'in-sync',
  reason: null,
  error: null,
  dueAtMs: null,
})

const failedRun = (run: RunStart, error: unknown, nowMs: number): FinishedRun => ({
  ...run,
  ...NOTHING_DONE,
  finishedAtMs: nowMs,
  ...failure(error, nowMs),
})
