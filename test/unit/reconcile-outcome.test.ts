import { describe, expect, it } from 'vitest'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { canonical } from '../../src/reconcile/canonical.ts'
import { type LedgerEntry, ledgerOf } from '../../src/reconcile/ledger.ts'
import { confirmations, driftRecords, pairState, runDetail } from '../../src/reconcile/outcome.ts'
import type { Action, Drift, Plan, Step } from '../../src/reconcile/plan.ts'
import type { PlannedRegistration } from '../../src/reconcile/plan-registration.ts'
import { PAIR } from '../helpers/sample.ts'

const T = 'publishTopicExceptions'
const acl = canonical({ kind: 'aclProfile', name: 'app', attributes: { mode: 'b' }, members: { [T]: ['a', 'c'] } })
const user = canonical({ kind: 'clientUsername', name: 'key-1', attributes: { enabled: true }, members: {} })
const refOf = ({ kind, name }: BrokerObject) => ({ kind, name })

const entryOf = (object: BrokerObject, entry: Partial<LedgerEntry> = {}): LedgerEntry => ({
  object: refOf(object),
  registrationId: PAIR.registrationId,
  origin: 'created',
  applied: { attributes: object.attributes, members: object.members },
  confirmedCredentialVersion: object.kind === 'clientUsername' ? 1 : null,
  passwordDue: false,
  withdrawnAtMs: null,
  ...entry,
})

const createAcl: Action = { type: 'create', object: acl, reason: 'not-created-yet' }
const createUser: Action = { type: 'create', object: user, credentialVersion: 2, reason: 'not-created-yet' }
const setMode: Action = {
  type: 'update',
  kind: 'aclProfile',
  name: 'app',
  changes: { mode: { before: 'a', after: 'b' } },
  disables: [],
  reason: 'changed-in-catalogue',
}
const member = (type: 'add-member' | 'remove-member', text: string): Action => ({
  type,
  kind: 'aclProfile',
  name: 'app',
  memberKind: T,
  member: text,
  reason: 'changed-in-catalogue',
})
const password: Action = {
  type: 'set-password',
  kind: 'clientUsername',
  name: 'key-1',
  credentialVersion: 2,
  reason: 'credential-version-newer',
}

const step = (action: Action, decision: Step['decision'] = 'run'): Step => ({
  action,
  disruptive: false,
  decision,
  ...(decision === 'held' ? { because: 'a person has to decide' } : {}),
})

const planOf = (plan: Partial<Plan> = {}): Plan => ({
  accountId: PAIR.accountId,
  brokerId: PAIR.brokerId,
  registrationId: PAIR.registrationId,
  generation: 1,
  steps: [],
  drift: [],
  conflicts: [],
  refused: null,
  waitsUntilMs: null,
  notes: [],
  ...plan,
})

const plannedOf = (objects: readonly BrokerObject[], actions: readonly Action[], plan: Partial<Plan> = {}) =>
  ({
    plan: planOf({ steps: actions.map((action) => step(action)), ...plan }),
    desired: { objects, credentialVersions: { 'key-1': 2 }, warnings: [] },
    ledgerChanges: { forget: [], withdraw: [], restore: [] },
    adopt: [],
  }) satisfies PlannedRegistration

const formerAcl = entryOf(canonical({ ...acl, attributes: { mode: 'a' }, members: { [T]: ['a', 'z'] } }))
const wholeAcl = { attributes: acl.attributes, members: acl.members }
const wholeUser = { attributes: user.attributes, members: {} }
const changes = [setMode, member('add-member', 'c'), member('remove-member', 'z')]

describe('confirmations', () => {
  const cases: Readonly<
    Record<string, readonly [PlannedRegistration, readonly LedgerEntry[], readonly Action[], readonly unknown[]]>
  > = {
    'an object with all its steps done is as desired': [
      plannedOf([acl], changes),
      [formerAcl],
      changes,
      [{ object: refOf(acl), applied: wholeAcl, credentialVersion: null, passwordWritten: false }],
    ],
    'one with a step that did not run is as it was, with what ran on top': [
      plannedOf([acl], changes),
      [formerAcl],
      changes.slice(0, 2),
      [
        {
          object: refOf(acl),
          applied: { attributes: { mode: 'b' }, members: { ...acl.members, [T]: ['a', 'c', 'z'] } },
          credentialVersion: null,
          passwordWritten: false,
        },
      ],
    ],
    'a created one without its members is confirmed without them': [
      plannedOf([acl], [createAcl, member('add-member', 'a'), member('add-member', 'c')]),
      [],
      [createAcl, member('add-member', 'c')],
      [{ applied: { attributes: acl.attributes, members: { [T]: ['c'] } }, object: refOf(acl) }],
    ],
    'a created username confirms the version of its secret': [
      plannedOf([user], [createUser]),
      [],
      [createUser],
      [{ object: refOf(user), applied: wholeUser, credentialVersion: 2, passwordWritten: true }],
    ],
    'a written password confirms the version even when nothing else changed': [
      plannedOf([user], [password]),
      [entryOf(user)],
      [password],
      [{ object: refOf(user), applied: wholeUser, credentialVersion: 2, passwordWritten: true }],
    ],
    'a password that was not written keeps the former version': [
      plannedOf([user], [password]),
      [entryOf(user)],
      [],
      [],
    ],
    'an intended object that is as desired is confirmed by that': [
      plannedOf([acl], []),
      [entryOf(acl, { applied: null })],
      [],
      [{ object: refOf(acl), applied: wholeAcl, credentialVersion: null, passwordWritten: false }],
    ],
    'an unchanged row is not written again': [plannedOf([acl], []), [entryOf(acl)], [], []],
    'an object that is not ours is not confirmed': [plannedOf([acl], []), [], [], []],
    'an object in conflict is not confirmed': [
      plannedOf([acl], [], {
        conflicts: [{ object: refOf(acl), kind: 'conflict', before: {}, after: {}, reason: 'depends-on-conflict' }],
      }),
      [formerAcl],
      [],
      [],
    ],
    'an adopted object that is as desired is confirmed': [
      { ...plannedOf([acl], []), adopt: [refOf(acl)] },
      [],
      [],
      [{ object: refOf(acl), applied: wholeAcl, credentialVersion: null, passwordWritten: false }],
    ],
    'a withdrawn username that was disabled is confirmed as disabled': [
      plannedOf([], []),
      [entryOf(user)],
      [
        {
          type: 'update',
          kind: 'clientUsername',
          name: 'key-1',
          changes: { enabled: { before: true, after: false } },
          disables: [],
          reason: 'no-longer-wanted',
        },
      ],
      [{ applied: { attributes: { enabled: false }, members: {} }, credentialVersion: 1, passwordWritten: false }],
    ],
    'a deleted object is not confirmed': [
      plannedOf([], []),
      [entryOf(user)],
      [{ type: 'delete', kind: 'clientUsername', name: 'key-1', reason: 'no-longer-wanted' }],
      [],
    ],
  }
  it.each(Object.entries(cases))('%s', (_, [planned, ledger, executed, expected]) => {
    expect(confirmations(planned, ledgerOf(ledger), executed)).toMatchObject(expected)
  })
})

describe('drift records', () => {
  const drift: Drift = { object: refOf(acl), kind: 'changed', before: {}, after: {}, reason: 'changed-on-broker' }
  const conflict: Drift = { ...drift, kind: 'conflict', reason: 'foreign-object' }
  const cases: Readonly<Record<string, readonly [Partial<Plan>, readonly Action[], boolean, string]>> = {
    'every step ran: repaired': [{ steps: changes.map((each) => step(each)) }, changes, false, 'repaired'],
    'a step is held: held': [{ steps: [step(setMode, 'held')] }, [], false, 'held'],
    'a step did not run because the run failed: failed': [
      { steps: changes.map((each) => step(each)) },
      changes.slice(0, 1),
      true,
      'failed',
    ],
    'a failed run that repaired this object: repaired': [
      { steps: [step(setMode), step(createUser)] },
      [setMode],
      true,
      'repaired',
    ],
    'nothing to do about it: reported': [{ steps: [step(createUser)] }, [createUser], false, 'reported'],
  }
  it.each(Object.entries(cases))('%s', (_, [plan, executed, failed, action]) => {
    expect(driftRecords(planOf({ ...plan, drift: [drift] }), executed, failed)).toEqual([{ drift, action }])
  })

  it('a conflict is reported', () => {
    expect(driftRecords(planOf({ conflicts: [conflict] }), [], false)).toEqual([
      { drift: conflict, action: 'reported' },
    ])
  })

  it('the state of the pair says the worst of a plan', () => {
    const refused = { reason: 'too-many-deletes', message: 'too many' } as const
    const steps = [step(setMode, 'held')]
    expect(pairState(planOf({ refused, conflicts: [conflict], steps }))).toEqual({
      state: 'refused',
      reason: 'too many. Look at the plan; then confirm it for the broker, or undo what led to it.',
    })
    expect(pairState(planOf({ conflicts: [conflict], steps }))).toEqual({
      state: 'conflict',
      reason: 'the ACL profile app exists and is not ours. Adopt it or remove it from the broker.',
    })
    expect(pairState(planOf({ steps }))).toEqual({ state: 'held', reason: 'a person has to decide' })
    expect(pairState(planOf({ steps: [step(setMode)], drift: [drift] }))).toEqual({ state: 'in-sync', reason: null })
  })
})

describe('what is kept of a run for a person', () => {
  it('is a line for each step that ran and each that is held, without those that failed', () => {
    const plan = planOf({ steps: [step(createAcl), step(password, 'held'), step(member('add-member', 'c'))] })
    expect(runDetail([createAcl], plan)).toEqual({
      ran: ['+ create ACL profile app (not-created-yet)'],
      held: [
        '~ write the password of client username key-1, version 2 (credential-version-newer) [held: a person has to decide]',
      ],
    })
  })

  it.each([
    ['a topic longer than a line', 'x'.repeat(400), 300],
    ['a topic that is cut in the middle of a character', '😀'.repeat(200), 300],
    ['a character that cannot be kept', 'a\0b\ud800', 100],
  ])('is bounded and can be stored with %s', (_what, topic, atMost) => {
    const { ran } = runDetail(Array.from({ length: 50 }, () => member('add-member', topic)))
    expect(ran).toHaveLength(20)
    for (const line of ran) {
      expect(line.length).toBeLessThanOrEqual(atMost)
      expect(line.isWellFormed() && !line.includes('\0')).toBe(true)
    }
  })
})
