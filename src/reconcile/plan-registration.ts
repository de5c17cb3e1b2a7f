import { type BrokerObject, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { BrokerPolicy, Protocol } from '../domain/catalogue.ts'
import type { BrokerId } from '../domain/ids.ts'
import type { RegistrationOnBroker } from '../domain/registration.ts'
import { canonical } from './canonical.ts'
import { type DesiredState, desiredState } from './desired.ts'
import { diff, type Observed } from './diff.ts'
import { type LedgerChanges, type LedgerEntry, ledgerOf } from './ledger.ts'
import { order } from './order.ts'
import type { Action, Drift, Plan, Step } from './plan.ts'
import { applyPolicy, guard, windowOpensAtMs } from './policy.ts'
import { REASONS } from './reasons.ts'
import { withdrawals } from './withdraw.ts'

/** What the store knows, gathered before anything is read from the broker. */
export interface RegistrationFacts {
  readonly brokerId: BrokerId
  readonly registration: RegistrationOnBroker
  readonly protocols: readonly Protocol[]
  readonly policy: BrokerPolicy
  readonly ledger: readonly LedgerEntry[]
  /** Keys of objects that an operator told us to adopt. */
  readonly adoptions: ReadonlySet<string>
  readonly withdrawalConfirmed: boolean
  /** An operator accepts that the next run drops live clients. */
  readonly disruptiveAllowed?: boolean
  readonly registrationsOnBroker: number
  readonly withdrawnOnBroker: number
}

/** What was read from the broker and the clock. */
export interface ObservedFacts {
  readonly observed: Observed
  readonly queuedMessages: Readonly<Record<string, number | null>>
  readonly requiresDisable: boolean
  readonly nowMs: number
}

export interface PlanSettings {
  readonly graceMs: number
  readonly maxTopics: number
  readonly maxDeletes: number
  readonly allowDisruptive: boolean
}

export interface PlannedRegistration {
  readonly plan: Plan
  readonly desired: DesiredState
  readonly ledgerChanges: LedgerChanges
  readonly adopt: readonly ObjectRef[]
}

export type Wanted =
  | { readonly ok: true; readonly desired: DesiredState; readonly refs: readonly ObjectRef[] }
  | { readonly ok: false; readonly problem: string }

/** What should be there, and all objects whose state on the broker matters for it. */
export function wantedObjects(facts: RegistrationFacts, settings: Pick<PlanSettings, 'maxTopics'>): Wanted {
  const result = desiredState({
    registration: facts.registration,
    protocols: facts.protocols,
    policy: facts.policy,
    queueOwners: queueOwners(facts.ledger),
    maxTopics: settings.maxTopics,
  })
  if (!result.ok) return result
  const refs = new Map<string, ObjectRef>()
  for (const { kind, name } of result.desired.objects) refs.set(objectKey({ kind, name }), { kind, name })
  for (const { object, registrationId } of facts.ledger) {
    if (registrationId !== null) refs.set(objectKey(object), object)
  }
  return { ok: true, desired: result.desired, refs: [...refs.values()] }
}

export function queueOwners(ledger: readonly LedgerEntry[]): Readonly<Record<string, string>> {
  const owners = ledger.flatMap(({ object, applied }) => {
    const owner = applied?.attributes.owner
    return object.kind === 'queue' && typeof owner === 'string' && owner !== '' ? [[object.name, owner] as const] : []
  })
  return Object.fromEntries(owners)
}

/** Pure: plan = policy(order(diff(desired, observed, ledger))). */
export function planRegistration(
  facts: RegistrationFacts,
  desired: DesiredState,
  read: ObservedFacts,
  settings: PlanSettings,
): PlannedRegistration {
  const ledger = ledgerOf(facts.ledger)
  const observed: Observed = new Map(
    [...read.observed].map(([key, object]) => [key, object === null ? null : canonical(object)]),
  )
  const difference = diff({
    desired: desired.objects,
    credentialVersions: desired.credentialVersions,
    observed,
    ledger,
    mayAdopt: (object, found) => mayAdopt(facts, object, found),
  })
  const withdrawal = withdrawals({
    wanted: new Set(desired.objects.map(objectKey)),
    observed,
    ledger,
    nowMs: read.nowMs,
    graceMs: settings.graceMs,
    queuedMessages: read.queuedMessages,
    queuesWithMessages: facts.policy.queuesWithMessages,
  })
  const actions = order([...difference.actions, ...withdrawal.actions])
  const refused = guard({
    policy: facts.policy,
    deletes: actions.filter((action) => action.type === 'delete').length,
    maxDeletes: settings.maxDeletes,
    withdrawn:
      facts.registration.accessRequests.length === 0 && facts.ledger.some((entry) => entry.registrationId !== null),
    confirmed: facts.withdrawalConfirmed,
    registrationsOnBroker: facts.registrationsOnBroker,
    withdrawnOnBroker: facts.withdrawnOnBroker,
  })
  const steps = refused === null ? policySteps(actions, facts, read, settings) : held(actions, refused.message)
  return {
    plan: {
      accountId: facts.registration.accountId,
      brokerId: facts.brokerId,
      registrationId: facts.registration.registrationId,
      generation: facts.registration.generation,
      steps,
      drift: [...difference.drift, ...withdrawal.drift],
      conflicts: difference.conflicts,
      refused,
      waitsUntilMs: earliest(withdrawal.waitsUntilMs, windowOpening(steps, facts.policy, read.nowMs)),
      notes: [...desired.warnings, ...withdrawal.notes],
    },
    desired,
    ledgerChanges: { forget: withdrawal.forget, withdraw: withdrawal.withdraw, restore: withdrawal.restore },
    adopt: difference.adopt,
  }
}

function policySteps(
  actions: readonly Action[],
  facts: RegistrationFacts,
  read: ObservedFacts,
  settings: PlanSettings,
): readonly Step[] {
  return applyPolicy(actions, {
    policy: facts.policy,
    nowMs: read.nowMs,
    requiresDisable: read.requiresDisable,
    allowDisruptive: settings.allowDisruptive || facts.disruptiveAllowed === true,
  })
}

/** A window may be shorter than the pause between two looks, so the next look is at its opening. */
function windowOpening(steps: readonly Step[], policy: BrokerPolicy, nowMs: number): number | null {
  const waits = steps.some((step) => step.because === REASONS['disruptive-outside-window'])
  return waits ? windowOpensAtMs(policy, nowMs) : null
}

function earliest(...times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

const held = (actions: readonly Action[], because: string): readonly Step[] =>
  actions.map((action) => ({ action, disruptive: false, decision: 'held', because }))

/** A client username is adopted only by name: taking one over takes over its client. */
function mayAdopt(facts: RegistrationFacts, object: BrokerObject, observed: BrokerObject): boolean {
  if (facts.adoptions.has(objectKey(object))) return true
  if (object.kind === 'clientUsername') return false
  switch (facts.policy.adopt) {
    case 'never':
      return false
    case 'identical':
      return JSON.stringify(canonical(object)) === JSON.stringify(comparable(object, observed))
    case 'always':
      return true
    default: {
      const unreachable: never = facts.policy.adopt
      return unreachable
    }
  }
}

/** The observed object with the attributes that the desired one sets. */
export function comparable(desired: BrokerObject, observed: BrokerObject): BrokerObject {
  const names = Object.keys(desired.attributes)
  const attributes = Object.fromEntries(
    names.flatMap((name) => (observed.attributes[name] === undefined ? [] : [[name, observed.attributes[name]]])),
  )
  return canonical({ ...observed, attributes })
}

/** Differences that a person should see even when nothing was done about them. */
export const allDrift = (plan: Plan): readonly Drift[] => [...plan.drift, ...plan.conflicts]
