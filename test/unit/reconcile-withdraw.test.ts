import { describe, expect, it } from 'vitest'
import { type BrokerObject, type ObjectKind, objectKey } from '../../src/domain/broker-object.ts'
import { type LedgerEntry, ledgerOf } from '../../src/reconcile/ledger.ts'
import { type Withdrawal, type WithdrawInput, withdrawals } from '../../src/reconcile/withdraw.ts'
import { DAY_MS, HOUR_MS, NOW_MS, PAIR } from '../helpers/sample.ts'

const entryOf = (kind: ObjectKind, entry: Partial<LedgerEntry> = {}): LedgerEntry => ({
  object: { kind, name: 'x' },
  registrationId: PAIR.registrationId,
  origin: 'created',
  applied: { attributes: { enabled: true }, members: {} },
  confirmedCredentialVersion: null,
  passwordDue: false,
  withdrawnAtMs: null,
  ...entry,
})
const off = { attributes: { enabled: false }, members: {} }

const on = (entry: LedgerEntry, enabled = true): BrokerObject => ({
  ...entry.object,
  attributes: { enabled },
  members: {},
})

interface Case extends Partial<Omit<WithdrawInput, 'ledger' | 'observed' | 'wanted'>> {
  readonly entry: LedgerEntry
  readonly observed: BrokerObject | null
  readonly wanted?: boolean
  readonly expected: Partial<Withdrawal>
}
const user = entryOf('clientUsername')
const ago = (ms: number): number => NOW_MS - ms
const disable = {
  type: 'update',
  kind: 'clientUsername',
  name: 'x',
  changes: { enabled: { before: true, after: false } },
  disables: [],
  reason: 'no-longer-wanted',
} as const
const remove = (kind: ObjectKind) => ({ type: 'delete', kind, name: 'x', reason: 'no-longer-wanted' }) as const
const endedQueue = entryOf('queue', { withdrawnAtMs: ago(DAY_MS) })

const cases: Readonly<Record<string, Case>> = {
  'a username is disabled at once and waits for its grace period': {
    entry: user,
    observed: on(user),
    expected: { actions: [disable], withdraw: [user.object], waitsUntilMs: NOW_MS + DAY_MS },
  },
  'an ACL profile only waits': {
    entry: entryOf('aclProfile'),
    observed: on(entryOf('aclProfile')),
    expected: { withdraw: [{ kind: 'aclProfile', name: 'x' }], waitsUntilMs: NOW_MS + DAY_MS },
  },
  'within the grace period nothing more happens': {
    entry: entryOf('clientUsername', { withdrawnAtMs: ago(HOUR_MS), applied: off }),
    observed: on(user, false),
    expected: { waitsUntilMs: NOW_MS + DAY_MS - HOUR_MS },
  },
  'a username that somebody enabled again is disabled again, as drift': {
    entry: entryOf('clientUsername', { withdrawnAtMs: ago(HOUR_MS), applied: off }),
    observed: on(user),
    expected: {
      actions: [disable],
      drift: [
        {
          object: user.object,
          kind: 'changed',
          before: { enabled: true },
          after: { enabled: false },
          reason: 'changed-on-broker',
        },
      ],
      waitsUntilMs: NOW_MS + DAY_MS - HOUR_MS,
    },
  },
  'a username that was never disabled, because that step failed, is no drift': {
    entry: entryOf('clientUsername', { withdrawnAtMs: ago(HOUR_MS) }),
    observed: on(user),
    expected: { actions: [disable], waitsUntilMs: NOW_MS + DAY_MS - HOUR_MS },
  },
  'a username is deleted when the grace period ends': {
    entry: entryOf('clientUsername', { withdrawnAtMs: ago(DAY_MS), applied: off }),
    observed: on(user, false),
    expected: { actions: [remove('clientUsername')] },
  },
  'without a grace period it is disabled and deleted in one go': {
    entry: user,
    observed: on(user),
    graceMs: 0,
    expected: { actions: [disable, remove('clientUsername')], withdraw: [user.object] },
  },
  'an object that is gone is forgotten': {
    entry: user,
    observed: null,
    expected: { forget: [user.object] },
  },
  'an object that was only intended and never came is forgotten': {
    entry: entryOf('queue', { applied: null }),
    observed: null,
    expected: { forget: [{ kind: 'queue', name: 'x' }] },
  },
  'an object that is wanted again before the grace period ended is restored': {
    entry: entryOf('clientUsername', { withdrawnAtMs: ago(HOUR_MS) }),
    observed: on(user, false),
    wanted: true,
    expected: { restore: [user.object] },
  },
  'a wanted object is left alone': { entry: user, observed: on(user), wanted: true, expected: {} },
  'a shared client profile is never withdrawn': {
    entry: entryOf('clientProfile', { registrationId: null }),
    observed: on(entryOf('clientProfile')),
    graceMs: 0,
    expected: {},
  },
  'an empty queue is deleted': {
    entry: endedQueue,
    observed: on(endedQueue),
    queuedMessages: { x: 0 },
    expected: { actions: [remove('queue')] },
  },
  'a queue that holds messages is kept, and looked at again': {
    entry: endedQueue,
    observed: on(endedQueue),
    queuedMessages: { x: 3 },
    expected: { notes: ['queue x is withdrawn and kept: it holds 3 messages'], waitsUntilMs: NOW_MS + DAY_MS },
  },
  'a queue whose messages cannot be counted is kept': {
    entry: endedQueue,
    observed: on(endedQueue),
    queuedMessages: { x: null },
    expected: {
      notes: ['queue x is withdrawn and kept: it holds an unknown number of messages'],
      waitsUntilMs: NOW_MS + DAY_MS,
    },
  },
  'a queue that nobody counted is kept': {
    entry: endedQueue,
    observed: on(endedQueue),
    expected: { notes: [expect.stringContaining('unknown number')], waitsUntilMs: NOW_MS + DAY_MS },
  },
  'a kept queue is not looked at again at once when there is no grace period': {
    entry: endedQueue,
    observed: on(endedQueue),
    graceMs: 0,
    queuedMessages: { x: 3 },
    expected: { notes: [expect.stringContaining('kept')], waitsUntilMs: NOW_MS + HOUR_MS },
  },
  'a queue that holds messages is deleted where policy says so': {
    entry: endedQueue,
    observed: on(endedQueue),
    queuedMessages: { x: 3 },
    queuesWithMessages: 'delete',
    expected: { actions: [remove('queue')] },
  },
}

const NOTHING: Withdrawal = {
  actions: [],
  drift: [],
  withdraw: [],
  restore: [],
  forget: [],
  waitsUntilMs: null,
  notes: [],
}

function withdrawalOf({ entry, observed, wanted = false, expected: _, ...given }: Case): Withdrawal {
  const key = objectKey(entry.object)
  return withdrawals({
    wanted: new Set(wanted ? [key] : []),
    observed: new Map([[key, observed]]),
    ledger: ledgerOf([entry]),
    nowMs: NOW_MS,
    graceMs: DAY_MS,
    queuedMessages: {},
    queuesWithMessages: 'keep',
    ...given,
  })
}

describe('withdrawals', () => {
  it.each(Object.entries(cases))('%s', (_, given) => {
    expect(withdrawalOf(given)).toEqual({ ...NOTHING, ...given.expected })
  })

  it('waits for the earliest end of a grace period', () => {
    const entries = [ago(HOUR_MS), ago(5 * HOUR_MS), null].map((withdrawnAtMs, index) =>
      entryOf('aclProfile', { withdrawnAtMs, object: { kind: 'aclProfile', name: `acl-${index}` } }),
    )
    const result = withdrawals({
      wanted: new Set(),
      observed: new Map(entries.map((entry) => [objectKey(entry.object), on(entry)])),
      ledger: ledgerOf(entries),
      nowMs: NOW_MS,
      graceMs: DAY_MS,
      queuedMessages: {},
      queuesWithMessages: 'keep',
    })
    expect(result.waitsUntilMs).toBe(NOW_MS + DAY_MS - 5 * HOUR_MS)
  })

  it('fails on an object that was not observed: no answer is not "gone"', () => {
    const input = { entry: user, observed: on(user), expected: {} }
    expect(() =>
      withdrawals({
        wanted: new Set(),
        observed: new Map(),
        ledger: ledgerOf([input.entry]),
        nowMs: NOW_MS,
        graceMs: 0,
        queuedMessages: {},
        queuesWithMessages: 'keep',
      }),
    ).toThrow('was not observed')
  })
})
