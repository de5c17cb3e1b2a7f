import { type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { Observed } from './diff.ts'
import type { Ledger, LedgerEntry } from './ledger.ts'
import type { Action, Drift } from './plan.ts'

export interface WithdrawInput {
  /** Keys of the desired objects. */
  readonly wanted: ReadonlySet<string>
  readonly observed: Observed
  readonly ledger: Ledger
  readonly nowMs: number
  readonly graceMs: number
  /** Messages held, by queue name, of the queues that are about to be deleted; null: the broker cannot tell. */
  readonly queuedMessages: Readonly<Record<string, number | null>>
  readonly queuesWithMessages: 'keep' | 'delete'
}

export interface Withdrawal {
  readonly actions: readonly Action[]
  readonly drift: readonly Drift[]
  readonly withdraw: readonly ObjectRef[]
  readonly restore: readonly ObjectRef[]
  readonly forget: readonly ObjectRef[]
  readonly waitsUntilMs: number | null
  readonly notes: readonly string[]
}

/**
 * Objects of ours that nothing wants any more: usernames are disabled at once, everything is deleted when the grace
 * period ends, queues that hold messages are kept unless policy says otherwise. Shared objects are never withdrawn.
 */
export function withdrawals(input: WithdrawInput): Withdrawal {
  const actions: Action[] = []
  const drift: Drift[] = []
  const withdraw: ObjectRef[] = []
  const restore: ObjectRef[] = []
  const forget: ObjectRef[] = []
  const notes: string[] = []
  const deadlines: number[] = []

  for (const entry of input.ledger.values()) {
    if (entry.registrationId === null) continue
    const key = objectKey(entry.object)
    if (input.wanted.has(key)) {
      if (entry.withdrawnAtMs !== null) restore.push(entry.object)
      continue
    }
    const observed = input.observed.get(key)
    if (observed === undefined) throw new TypeError(`${key} was not observed`)
    if (observed === null) {
      forget.push(entry.object)
      continue
    }
    if (entry.withdrawnAtMs === null) withdraw.push(entry.object)
    if (entry.object.kind === 'clientUsername' && observed.attributes.enabled !== false) {
      actions.push(disable(entry))
      if (entry.applied?.attributes.enabled === false) drift.push(enabledAgain(entry))
    }
    const endsAtMs = graceEndsAtMs(entry, input.nowMs, input.graceMs)
    if (endsAtMs > input.nowMs) {
      deadlines.push(endsAtMs)
      continue
    }
    const held = entry.object.kind === 'queue' ? (input.queuedMessages[entry.object.name] ?? null) : 0
    if (held !== 0 && input.queuesWithMessages === 'keep') {
      const amount = held === null ? 'an unknown number of' : String(held)
      notes.push(`queue ${entry.object.name} is withdrawn and kept: it holds ${amount} messages`)
      deadlines.push(input.nowMs + Math.max(input.graceMs, LOOK_AGAIN_MS))
      continue
    }
    actions.push({ type: 'delete', ...entry.object, reason: 'no-longer-wanted' })
  }
  const waitsUntilMs = deadlines.length === 0 ? null : Math.min(...deadlines)
  return { actions, drift, withdraw, restore, forget, waitsUntilMs, notes }
}

export const graceEndsAtMs = (entry: LedgerEntry, nowMs: number, graceMs: number): number =>
  (entry.withdrawnAtMs ?? nowMs) + graceMs

/** A kept queue is looked at again after another grace period, or this long when that is short. */
const LOOK_AGAIN_MS = 3_600_000

const enabledAgain = (entry: LedgerEntry): Drift => ({
  object: entry.object,
  kind: 'changed',
  before: { enabled: true },
  after: { enabled: false },
  reason: 'changed-on-broker',
})

function disable(entry: LedgerEntry): Action {
  return {
    type: 'update',
    ...entry.object,
    changes: { enabled: { before: true, after: false } },
    disables: [],
    reason: 'no-longer-wanted',
  }
}
