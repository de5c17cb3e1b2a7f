import type { BrokerPolicy } from '../domain/catalogue.ts'
import type { Action, Step } from './plan.ts'
import { REASONS, type Reason } from './reasons.ts'

export interface PolicyInput {
  readonly policy: BrokerPolicy
  readonly nowMs: number
  /** True when SEMP 2.30 or older makes us switch an object off to change what follows. */
  readonly requiresDisable: boolean
  /** An operator runs this by hand and accepts that live clients drop. */
  readonly allowDisruptive: boolean
}

/**
 * Attributes whose change makes the broker drop live clients, by kind: what it switches off for a moment
 * (`x-autoDisable` of SEMP 2.41 and later, `Requires-Disable` of 2.30 and older), or the switch itself.
 */
const DISABLED_BY_CHANGE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  clientUsername: { aclProfileName: 'enabled', clientProfileName: 'enabled' },
  queue: { accessType: 'egressEnabled', owner: 'egressEnabled', permission: 'egressEnabled' },
}

/**
 * Attributes that must be off while the change is made; empty for a change that disturbs nobody, such as one of an
 * object that is switched off anyway.
 */
export function disabledBy(action: Action): readonly string[] {
  if (action.type !== 'update') return []
  const table = DISABLED_BY_CHANGE[action.kind] ?? {}
  const switches = new Set(Object.keys(action.changes).flatMap((name) => table[name] ?? []))
  return [...switches].filter((name) => action.changes[name]?.before !== false)
}

/** True when the action drops clients that are connected now. */
export function isDisruptive(action: Action): boolean {
  if (action.type === 'delete') return action.kind === 'clientUsername' || action.kind === 'queue'
  if (action.type !== 'update') return false
  if (disabledBy(action).length > 0) return true
  return Object.entries(action.changes).some(([name, change]) => SWITCHES.has(name) && change.after === false)
}

const SWITCHES = new Set(['enabled', 'egressEnabled', 'ingressEnabled'])

/** A policy is a function from actions to steps: what may run now, and why the rest is held. */
export function applyPolicy(actions: readonly Action[], input: PolicyInput): readonly Step[] {
  return actions.map((action) => {
    const disruptive = isDisruptive(action)
    const marked =
      action.type === 'update' && input.requiresDisable ? { ...action, disables: disabledBy(action) } : action
    const reason = heldReason(marked, disruptive, input)
    return reason === null
      ? { action: marked, disruptive, decision: 'run' }
      : { action: marked, disruptive, decision: 'held', because: REASONS[reason] }
  })
}

function heldReason(action: Action, disruptive: boolean, input: PolicyInput): Reason | null {
  switch (input.policy.mode) {
    case 'observe-only':
      return 'policy-observe-only'
    case 'create-only':
      if (action.type === 'update' || action.type === 'delete' || action.type === 'remove-member') {
        return 'policy-create-only'
      }
      break
    case 'full':
      break
    default: {
      const unreachable: never = input.policy.mode
      return unreachable
    }
  }
  // A withdrawal drops clients because somebody asked for it; holding it would keep access that was revoked.
  if (!disruptive || input.allowDisruptive || action.reason === 'no-longer-wanted') return null
  switch (input.policy.disruptive) {
    case 'allow':
      return null
    case 'window':
      return insideWindow(input) ? null : 'disruptive-outside-window'
    case 'manual':
      return 'disruptive-needs-a-hand'
    default: {
      const unreachable: never = input.policy.disruptive
      return unreachable
    }
  }
}

const MINUTE_MS = 60_000
const MINUTES_PER_DAY = 1440

/** When the daily window opens next; null without one. */
export function windowOpensAtMs(policy: BrokerPolicy, nowMs: number): number | null {
  if (policy.window === null) return null
  const nowMinute = Math.floor(nowMs / MINUTE_MS)
  const wait = (policy.window.fromMinute - (nowMinute % MINUTES_PER_DAY) + MINUTES_PER_DAY) % MINUTES_PER_DAY
  return (nowMinute + (wait === 0 ? MINUTES_PER_DAY : wait)) * MINUTE_MS
}

function insideWindow({ policy, nowMs }: PolicyInput): boolean {
  if (policy.window === null) return false
  const minute = Math.floor(nowMs / MINUTE_MS) % MINUTES_PER_DAY
  const { fromMinute, toMinute } = policy.window
  if (fromMinute <= toMinute) return minute >= fromMinute && minute < toMinute
  return minute >= fromMinute || minute < toMinute
}

export interface GuardInput {
  readonly policy: BrokerPolicy
  readonly deletes: number
  readonly maxDeletes: number
  /** True when this registration is not wanted on the broker any more. */
  readonly withdrawn: boolean
  readonly confirmed: boolean
  /** Registrations with objects of ours on the broker, and how many of them are being withdrawn. */
  readonly registrationsOnBroker: number
  readonly withdrawnOnBroker: number
}

/** A plan that looks like an accident is refused whole (DESIGN section 4, invariant 10). */
export function guard(input: GuardInput): { readonly reason: Reason; readonly message: string } | null {
  if (input.confirmed) return null
  if (input.deletes > input.maxDeletes) {
    const message = `the plan deletes ${input.deletes} objects and one plan may delete ${input.maxDeletes}`
    return { reason: 'too-many-deletes', message }
  }
  if (!input.withdrawn || input.withdrawnOnBroker <= input.policy.maxWithdrawals) return null
  const { withdrawnOnBroker, registrationsOnBroker } = input
  const counts = `${withdrawnOnBroker} of ${registrationsOnBroker} registrations would be withdrawn from the broker`
  if (withdrawnOnBroker >= registrationsOnBroker) {
    return { reason: 'empty-desired-state', message: `${counts}; nothing would be left` }
  }
  const percent = (withdrawnOnBroker / registrationsOnBroker) * 100
  if (percent <= input.policy.maxWithdrawalsPercent) return null
  return {
    reason: 'too-many-withdrawals',
    message: `${counts}, more than ${input.policy.maxWithdrawalsPercent} percent`,
  }
}
