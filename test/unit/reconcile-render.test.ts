import { describe, expect, it } from 'vitest'
import type { Drift, Plan } from '../../src/reconcile/plan.ts'
import { REASONS } from '../../src/reconcile/reasons.ts'
import { isEmpty, renderConflict, renderPlan } from '../../src/reconcile/render.ts'
import { PAIR } from '../helpers/sample.ts'

const planOf = (plan: Partial<Plan> = {}): Plan => ({
  accountId: PAIR.accountId,
  brokerId: PAIR.brokerId,
  registrationId: PAIR.registrationId,
  generation: 7,
  steps: [],
  drift: [],
  conflicts: [],
  refused: null,
  waitsUntilMs: null,
  notes: [],
  ...plan,
})
const TITLE = 'registration parcel-app on broker broker1, generation 7'

describe('renderPlan', () => {
  it('says that there is nothing to do', () => {
    expect(renderPlan(planOf())).toEqual([`${TITLE}: nothing to do`])
    expect(isEmpty(planOf())).toBe(true)
  })

  it('has one line for each thing, with its reason and its marks', () => {
    const user = { kind: 'clientUsername', name: 'key-1' } as const
    const acl = { kind: 'aclProfile', name: 'app' } as const
    const run = { disruptive: false, decision: 'run' } as const
    const object = { ...acl, attributes: {}, members: {} }
    const plan = planOf({
      steps: [
        { ...run, action: { type: 'create', object, reason: 'not-created-yet' } },
        {
          ...run,
          action: {
            type: 'add-member',
            ...acl,
            memberKind: 'publishTopicExceptionsMqtt',
            member: 'a/+',
            reason: 'changed-in-catalogue',
          },
        },
        {
          action: {
            type: 'update',
            ...user,
            changes: { aclProfileName: { before: null, after: 'app' }, enabled: { before: false, after: true } },
            disables: ['enabled'],
            reason: 'changed-on-broker',
          },
          disruptive: true,
          decision: 'held',
          because: REASONS['disruptive-needs-a-hand'],
        },
        {
          ...run,
          action: { type: 'set-password', ...user, credentialVersion: 3, reason: 'credential-version-newer' },
        },
        {
          ...run,
          action: {
            type: 'remove-member',
            kind: 'queue',
            name: 'q',
            memberKind: 'subscriptions',
            member: 'old',
            reason: 'added-on-broker',
          },
        },
        {
          action: { type: 'delete', ...user, reason: 'no-longer-wanted' },
          disruptive: true,
          decision: 'run',
        },
      ],
      notes: ['a note'],
    })
    expect(renderPlan(plan)).toEqual([
      TITLE,
      '  + create ACL profile app (not-created-yet)',
      '  + ACL profile app: add publish exception (MQTT syntax) a/+ (changed-in-catalogue)',
      `  ~ update client username key-1: aclProfileName unset -> app, enabled false -> true (changed-on-broker) [drops live clients; held: ${REASONS['disruptive-needs-a-hand']}]`,
      '  ~ write the password of client username key-1, version 3 (credential-version-newer)',
      '  - queue q: remove subscription old (added-on-broker)',
      '  - delete client username key-1 (no-longer-wanted) [drops live clients]',
      '  i a note',
    ])
  })

  it('puts first what stops the plan or cannot be repaired', () => {
    const conflict: Drift = {
      object: { kind: 'queue', name: 'q' },
      kind: 'conflict',
      before: {},
      after: {},
      reason: 'foreign-object',
    }
    const unsuitable: Drift = {
      ...conflict,
      object: { kind: 'clientProfile', name: 'keymesh-send' },
      kind: 'unsuitable',
      reason: 'profile-unsuitable',
    }
    const refused = { reason: 'too-many-deletes', message: 'the plan deletes 60 objects' } as const
    expect(renderPlan(planOf({ refused, conflicts: [conflict, unsuitable] }))).toEqual([
      TITLE,
      '  ! refused: the plan deletes 60 objects',
      `  ! conflict: queue q. ${REASONS['foreign-object']}`,
      `  ! unsuitable: client profile keymesh-send. ${REASONS['profile-unsuitable']}`,
    ])
  })

  it.each([
    ['foreign-username', 'the client username x exists and is not ours. Adopt it or choose another consumer key.'],
    ['foreign-object', 'the client username x exists and is not ours. Adopt it or remove it from the broker.'],
    ['depends-on-conflict', 'the client username x needs an object that is in conflict. Settle that one first.'],
    [
      'profile-unsuitable',
      'the client username x is not ours and allows less than is needed. Switch on some, more on the broker.',
    ],
  ] as const)('says of a conflict by %s what a person can do', (reason, text) => {
    const after = { some: true, more: true }
    expect(
      renderConflict({ object: { kind: 'clientUsername', name: 'x' }, kind: 'conflict', before: {}, after, reason }),
    ).toBe(text)
  })
})
