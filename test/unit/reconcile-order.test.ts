import { describe, expect, it } from 'vitest'
import type { ObjectKind } from '../../src/domain/broker-object.ts'
import { level, order } from '../../src/reconcile/order.ts'
import type { Action } from '../../src/reconcile/plan.ts'
import type { Reason } from '../../src/reconcile/reasons.ts'

const create = (kind: ObjectKind, name = 'x'): Action => ({
  type: 'create',
  object: { kind, name, attributes: {}, members: {} },
  reason: 'not-created-yet',
})
const update = (kind: ObjectKind, reason: Reason = 'changed-in-catalogue'): Action => ({
  type: 'update',
  kind,
  name: 'x',
  changes: {},
  disables: [],
  reason,
})
const member = (type: 'add-member' | 'remove-member', kind: ObjectKind, text = 'a/b'): Action => ({
  type,
  kind,
  name: 'x',
  memberKind: kind === 'queue' ? 'subscriptions' : 'publishTopicExceptions',
  member: text,
  reason: 'changed-in-catalogue',
})
const remove = (kind: ObjectKind): Action => ({ type: 'delete', kind, name: 'x', reason: 'no-longer-wanted' })
const password: Action = {
  type: 'set-password',
  kind: 'clientUsername',
  name: 'x',
  credentialVersion: 1,
  reason: 'credential-version-newer',
}

/** From first to last; the actions of one line do not depend on each other. */
const LINES: readonly (readonly [string, readonly Action[]])[] = [
  ['access that ends', [update('clientUsername', 'no-longer-wanted')]],
  ['client profiles', [create('clientProfile'), update('clientProfile')]],
  ['ACL profiles', [create('aclProfile'), update('aclProfile')]],
  ['their new exceptions', [member('add-member', 'aclProfile')]],
  ['client usernames', [create('clientUsername'), update('clientUsername'), password]],
  ['queues', [create('queue'), update('queue')]],
  ['their new subscriptions', [member('add-member', 'queue')]],
  ['members that go', [member('remove-member', 'aclProfile'), member('remove-member', 'queue')]],
  ['deleted usernames', [remove('clientUsername')]],
  ['deleted queues', [remove('queue')]],
  ['deleted ACL profiles', [remove('aclProfile')]],
  ['deleted client profiles', [remove('clientProfile')]],
]

describe('order', () => {
  it.each(LINES.map(([words, actions], index) => [words, actions, index] as const))(
    'puts %s in their place',
    (_, actions, index) => {
      const before = LINES.slice(0, index).flatMap(([, list]) => list)
      for (const action of actions) {
        expect(level(action)).toBe(level(actions[0] ?? action))
        for (const other of before) expect(level(other)).toBeLessThan(level(action))
      }
    },
  )

  it('sorts a shuffled plan, then by object and member', () => {
    const sorted = [
      create('aclProfile', 'a'),
      create('aclProfile', 'b'),
      member('add-member', 'aclProfile', 'a'),
      member('add-member', 'aclProfile', 'b'),
      create('clientUsername', 'a'),
      password,
      remove('queue'),
    ]
    expect(order(sorted.toReversed())).toEqual(sorted)
    expect(order([3, 0, 6, 2, 5, 1, 4].flatMap((index) => sorted[index] ?? []))).toEqual(sorted)
  })
})
