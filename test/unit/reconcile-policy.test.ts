import { describe, expect, it } from 'vitest'
import type { AttributeValue, ObjectKind } from '../../src/domain/broker-object.ts'
import type { BrokerPolicy } from '../../src/domain/catalogue.ts'
import type { Action } from '../../src/reconcile/plan.ts'
import { applyPolicy, disabledBy, isDisruptive, type PolicyInput, windowOpensAtMs } from '../../src/reconcile/policy.ts'
import { REASONS, type Reason } from '../../src/reconcile/reasons.ts'
import { DAY_MS, policyOf } from '../helpers/sample.ts'

const update = (
  kind: ObjectKind,
  changes: Readonly<Record<string, readonly [AttributeValue | null, AttributeValue]>>,
  reason: Reason = 'changed-in-catalogue',
): Action => ({
  type: 'update',
  kind,
  name: 'x',
  changes: Object.fromEntries(Object.entries(changes).map(([name, [before, after]]) => [name, { before, after }])),
  disables: [],
  reason,
})
const create: Action = {
  type: 'create',
  object: { kind: 'queue', name: 'x', attributes: {}, members: {} },
  reason: 'not-created-yet',
}
const add: Action = {
  type: 'add-member',
  kind: 'queue',
  name: 'x',
  memberKind: 'subscriptions',
  member: 'a',
  reason: 'changed-in-catalogue',
}
const password: Action = {
  type: 'set-password',
  kind: 'clientUsername',
  name: 'x',
  credentialVersion: 2,
  reason: 'credential-version-newer',
}
const remove = (kind: ObjectKind): Action => ({ type: 'delete', kind, name: 'x', reason: 'no-longer-wanted' })
const disable = update('clientUsername', { enabled: [true, false] }, 'no-longer-wanted')
const moveProfile = update('clientUsername', { aclProfileName: ['a', 'b'] })

describe('disruptive actions', () => {
  const cases: Readonly<Record<string, readonly [Action, boolean, readonly string[]]>> = {
    'another ACL profile of a username': [moveProfile, true, ['enabled']],
    'another client profile of a username': [
      update('clientUsername', { clientProfileName: ['a', 'b'] }),
      true,
      ['enabled'],
    ],
    'both profiles of a username': [
      update('clientUsername', { clientProfileName: ['a', 'b'], aclProfileName: ['a', 'b'] }),
      true,
      ['enabled'],
    ],
    'another owner of a queue': [update('queue', { owner: ['a', 'b'] }), true, ['egressEnabled']],
    'another permission of a queue': [update('queue', { permission: ['a', 'b'] }), true, ['egressEnabled']],
    'another access type of a queue': [update('queue', { accessType: ['a', 'b'] }), true, ['egressEnabled']],
    'switching a username off': [disable, true, []],
    'switching egress off': [update('queue', { egressEnabled: [true, false] }), true, []],
    'deleting a username': [remove('clientUsername'), true, []],
    'deleting a queue': [remove('queue'), true, []],
    'deleting an ACL profile': [remove('aclProfile'), false, []],
    'switching a username on': [update('clientUsername', { enabled: [false, true] }), false, []],
    'another profile of a username that is off': [
      update('clientUsername', { enabled: [false, true], aclProfileName: ['a', 'b'] }),
      false,
      [],
    ],
    'another owner of a queue whose egress is off': [
      update('queue', { owner: ['a', 'b'], egressEnabled: [false, true] }),
      false,
      [],
    ],
    'another owner of a queue whose ingress is off': [
      update('queue', { owner: ['a', 'b'], ingressEnabled: [false, true] }),
      true,
      ['egressEnabled'],
    ],
    'another time to live': [update('queue', { maxTtl: [0, 7] }), false, []],
    'other flags of a client profile': [
      update('clientProfile', { allowGuaranteedMsgSendEnabled: [false, true] }),
      false,
      [],
    ],
    'a new password': [password, false, []],
    'a creation': [create, false, []],
  }
  it.each(Object.entries(cases))('%s', (_, [action, disruptive, disables]) => {
    expect(isDisruptive(action)).toBe(disruptive)
    expect(disabledBy(action)).toEqual(disables)
    const input = { policy: policyOf(), nowMs: 0, allowDisruptive: true }
    const [marked] = applyPolicy([action], { ...input, requiresDisable: true })
    expect(marked?.disruptive).toBe(disruptive)
    // Only a broker that asks for it is told to switch something off.
    if (action.type === 'update') expect(marked?.action).toEqual({ ...action, disables })
    expect(applyPolicy([action], { ...input, requiresDisable: false })[0]?.action).toEqual(action)
  })
})

const at = (hours: number, minutes = 0): number => 20_000 * DAY_MS + (hours * 60 + minutes) * 60_000

function decide(action: Action, policy: Partial<BrokerPolicy>, input: Partial<PolicyInput> = {}): string {
  const [step] = applyPolicy([action], {
    policy: policyOf(policy),
    nowMs: at(12),
    requiresDisable: false,
    allowDisruptive: false,
    ...input,
  })
  const reason = Object.entries(REASONS).find(([, text]) => text === step?.because)?.[0]
  return step?.decision === 'held' ? `held: ${reason}` : (step?.decision ?? 'none')
}

describe('policy', () => {
  const observe = 'held: policy-observe-only'
  const creations = 'held: policy-create-only'
  const modes: Readonly<Record<string, readonly [Action, string, string, string]>> = {
    'a creation': [create, observe, 'run', 'run'],
    'a new member': [add, observe, 'run', 'run'],
    'a password of ours': [password, observe, 'run', 'run'],
    'a change': [update('queue', { maxTtl: [0, 7] }), observe, creations, 'run'],
    'a deletion': [remove('aclProfile'), observe, creations, 'run'],
    'a member that goes': [{ ...add, type: 'remove-member' }, observe, creations, 'run'],
    'the end of access': [disable, observe, creations, 'run'],
  }
  it.each(Object.entries(modes))('mode: %s', (_, [action, observeOnly, createOnly, full]) => {
    expect(decide(action, { mode: 'observe-only' }, { allowDisruptive: true })).toBe(observeOnly)
    expect(decide(action, { mode: 'create-only', disruptive: 'allow' })).toBe(createOnly)
    expect(decide(action, { mode: 'full' })).toBe(full)
  })

  const window = (fromMinute: number, toMinute: number) => ({
    disruptive: 'window' as const,
    window: { fromMinute, toMinute },
  })
  const night = window(22 * 60, 4 * 60)
  const outside = 'held: disruptive-outside-window'
  const disruptive: Readonly<Record<string, readonly [Partial<BrokerPolicy>, number, string]>> = {
    'allowed by policy': [{ disruptive: 'allow' }, at(12), 'run'],
    'left to a person': [{ disruptive: 'manual' }, at(12), 'held: disruptive-needs-a-hand'],
    'a window that is not set': [{ disruptive: 'window', window: null }, at(12), outside],
    'in the first minute of the window': [window(9 * 60, 17 * 60), at(9), 'run'],
    'in the last minute of the window': [window(9 * 60, 17 * 60), at(16, 59), 'run'],
    'in the minute after the window': [window(9 * 60, 17 * 60), at(17), outside],
    'before the window': [window(9 * 60, 17 * 60), at(8, 59), outside],
    'before midnight in a window that wraps': [night, at(23, 30), 'run'],
    'after midnight in a window that wraps': [night, at(3, 59), 'run'],
    'at the end of a window that wraps': [night, at(4), outside],
    'by day with a window that wraps': [night, at(12), outside],
    'in an empty window': [window(600, 600), at(10), outside],
  }
  it.each(Object.entries(disruptive))('a disruptive change: %s', (_, [policy, nowMs, decision]) => {
    expect(decide(moveProfile, policy, { nowMs })).toBe(decision)
    expect(decide(moveProfile, policy, { nowMs, allowDisruptive: true })).toBe('run')
    expect(decide(add, policy, { nowMs })).toBe('run')
  })

  it.each([
    ['disabled', disable],
    ['deleted', remove('clientUsername')],
    ['deleted with its queue', remove('queue')],
  ])('a withdrawn username is %s although disruptive changes wait for a person', (_, action) => {
    expect(isDisruptive(action)).toBe(true)
    expect(decide(action, { disruptive: 'manual' })).toBe('run')
  })

  it.each([
    ['later today', window(13 * 60, 14 * 60), at(12, 30), at(13)],
    ['tomorrow when it is open', window(12 * 60, 14 * 60), at(12, 0), at(36)],
    ['tomorrow when it is over', window(60, 90), at(12), at(25)],
    ['tonight for one that wraps', night, at(12), at(22)],
  ])('the window opens %s', (_, policy, nowMs, opensAtMs) => {
    expect(windowOpensAtMs(policyOf(policy), nowMs + 1234)).toBe(opensAtMs)
  })

  it('there is no opening without a window', () => {
    expect(windowOpensAtMs(policyOf(), at(12))).toBeNull()
  })
})
