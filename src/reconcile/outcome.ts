import { type BrokerObject, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { LedgerEntry } from './ledger.ts'
import { type Action, actionRef, type Drift, type Plan } from './plan.ts'
import type { PlannedRegistration } from './plan-registration.ts'
import { renderAction, renderConflict, renderStep } from './render.ts'
import type { Confirmation, DriftAction, DriftRecord, PairState, RunDetail } from './store-port.ts'

/**
 * What the ledger learns from a run: an object with nothing left to do is as desired; one with held or failed steps is
 * as it was, with what was executed on top. An unchanged row is not written again.
 */
export function confirmations(
  planned: PlannedRegistration,
  ledger: ReadonlyMap<string, LedgerEntry>,
  executed: readonly Action[],
): readonly Confirmation[] {
  const doneByObject = groupByObject(executed)
  const plannedByObject = groupByObject(planned.plan.steps.map((step) => step.action))
  const adopted = new Set(planned.adopt.map(objectKey))
  const blocked = new Set(planned.plan.conflicts.map((conflict) => objectKey(conflict.object)))
  const desired = new Map(planned.desired.objects.map((object) => [objectKey(object), object]))
  const keys = new Set([...desired.keys(), ...doneByObject.keys()])

  return [...keys].flatMap((key) => {
    const done = doneByObject.get(key) ?? []
    const entry = ledger.get(key)
    const ours = entry !== undefined || adopted.has(key) || done.some((action) => action.type === 'create')
    if (!ours || blocked.has(key) || done.some((action) => action.type === 'delete')) return []
    const object = desired.get(key)
    const complete = object !== undefined && done.length === (plannedByObject.get(key)?.length ?? 0)
    const applied = complete ? object : patched(entry?.applied ?? null, done)
    const passwordWritten = done.some(writesPassword)
    const version = passwordWritten ? credentialVersion(done) : (entry?.confirmedCredentialVersion ?? null)
    if (!passwordWritten && sameState(applied, entry?.applied ?? null)) return []
    const passwordReapplied = done.some((action) => action.reason === 'login-rejected')
    return [
      { object: refOf(key, object, done), applied, credentialVersion: version, passwordWritten, passwordReapplied },
    ]
  })
}

function groupByObject(actions: readonly Action[]): Map<string, Action[]> {
  const groups = new Map<string, Action[]>()
  for (const action of actions) {
    const key = objectKey(actionRef(action))
    const group = groups.get(key) ?? []
    group.push(action)
    groups.set(key, group)
  }
  return groups
}

const writesPassword = (action: Action): boolean =>
  action.type === 'set-password' || (action.type === 'create' && action.credentialVersion !== undefined)

function credentialVersion(actions: readonly Action[]): number | null {
  for (const action of actions) {
    if (action.type === 'set-password') return action.credentialVersion
    if (action.type === 'create' && action.credentialVersion !== undefined) return action.credentialVersion
  }
  return null
}

type AppliedState = Pick<BrokerObject, 'attributes' | 'members'>

function patched(before: AppliedState | null, done: readonly Action[]): AppliedState | null {
  let state = before
  for (const action of done) {
    switch (action.type) {
      case 'create':
        state = { attributes: action.object.attributes, members: {} }
        break
      case 'update': {
        const changed = Object.entries(action.changes).map(([name, change]) => [name, change.after] as const)
        state = state && { ...state, attributes: { ...state.attributes, ...Object.fromEntries(changed) } }
        break
      }
      case 'add-member':
      case 'remove-member':
        state = state && { ...state, members: { ...state.members, [action.memberKind]: withMember(state, action) } }
        break
      case 'set-password':
      case 'delete':
        break
      default: {
        const unreachable: never = action
        return unreachable
      }
    }
  }
  return state
}

function withMember(
  state: AppliedState,
  action: Extract<Action, { type: 'add-member' | 'remove-member' }>,
): readonly string[] {
  const others = (state.members[action.memberKind] ?? []).filter((member) => member !== action.member)
  return action.type === 'add-member' ? [...others, action.member].sort() : others
}

const sameState = (a: AppliedState | null, b: AppliedState | null): boolean => stable(a) === stable(b)

const stable = (state: AppliedState | null): string =>
  state === null ? '' : JSON.stringify([sortedEntries(state.attributes), sortedEntries(state.members)])

const sortedEntries = (record: object) => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))

function refOf(key: string, object: BrokerObject | undefined, done: readonly Action[]): ObjectRef {
  const [first] = done
  const ref = object ?? (first === undefined ? undefined : actionRef(first))
  if (ref === undefined) throw new TypeError(`${key} has neither a desired state nor an action`)
  return { kind: ref.kind, name: ref.name }
}

/** What happened to each difference: repaired when every step of its object ran. */
export function driftRecords(plan: Plan, executed: readonly Action[], failed: boolean): readonly DriftRecord[] {
  const done = new Set(executed)
  const record = (drift: Drift): DriftRecord => {
    const steps = plan.steps.filter((step) => objectKey(actionRef(step.action)) === objectKey(drift.object))
    return { drift, action: driftAction(steps.length, steps.filter((step) => done.has(step.action)).length, failed) }
  }
  return [...plan.drift.map(record), ...plan.conflicts.map((drift): DriftRecord => ({ drift, action: 'reported' }))]
}

function driftAction(steps: number, done: number, failed: boolean): DriftAction {
  if (steps === 0) return 'reported'
  if (done === steps) return 'repaired'
  return failed ? 'failed' : 'held'
}

/** Enough to see what a run did; a list of topics may be long, and the runs of a fleet are many. */
const MOST_LINES = 20
const LONGEST_LINE = 300

/** What a run did and what it held back, to be kept with it. */
export function runDetail(executed: readonly Action[], plan?: Plan): RunDetail {
  const held = plan?.steps.filter(({ decision }) => decision === 'held') ?? []
  return { ran: bounded(executed.map(renderAction)), held: bounded(held.map(renderStep)) }
}

const bounded = (lines: readonly string[]): readonly string[] => lines.slice(0, MOST_LINES).map(storable)

/** Names come from brokers, and neither a NUL nor half a surrogate pair can be kept. */
function storable(line: string): string {
  const text = line.replaceAll('\0', '').toWellFormed()
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE - 1).toWellFormed()}…` : text
}

const LOOK_FIRST = 'Look at the plan; then confirm it for the broker, or undo what led to it.'

/** The state of the pair after a run without an error, and why. */
export function pairState(plan: Plan): { readonly state: PairState; readonly reason: string | null } {
  if (plan.refused !== null) return { state: 'refused', reason: `${plan.refused.message}. ${LOOK_FIRST}` }
  const [conflict] = plan.conflicts
  if (conflict !== undefined) return { state: 'conflict', reason: renderConflict(conflict) }
  const held = plan.steps.find((step) => step.decision === 'held')
  if (held !== undefined) return { state: 'held', reason: held.because ?? null }
  return { state: 'in-sync', reason: null }
}
