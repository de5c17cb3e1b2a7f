import { describe, expect, it } from 'vitest'
import { type AttributeValue, type BrokerObject, type Members, objectKey } from '../../src/domain/broker-object.ts'
import { canonical } from '../../src/reconcile/canonical.ts'
import { type Diff, diff } from '../../src/reconcile/diff.ts'
import { type LedgerEntry, ledgerOf } from '../../src/reconcile/ledger.ts'
import { PAIR } from '../helpers/sample.ts'

const acl = (members: Members = {}, attributes: Record<string, AttributeValue> = {}): BrokerObject =>
  canonical({
    kind: 'aclProfile',
    name: 'app',
    attributes: { publishTopicDefaultAction: 'disallow', ...attributes },
    members,
  })
const user = (attributes: Record<string, AttributeValue> = {}): BrokerObject =>
  canonical({
    kind: 'clientUsername',
    name: 'key-1',
    attributes: { enabled: true, aclProfileName: 'app', clientProfileName: 'keymesh-send', ...attributes },
    members: {},
  })
const queue = (attributes: Record<string, AttributeValue> = {}): BrokerObject =>
  canonical({ kind: 'queue', name: 'q', attributes: { owner: 'key-1', ...attributes }, members: {} })
const profile = (send: boolean, bridge = false): BrokerObject =>
  canonical({
    kind: 'clientProfile',
    name: 'keymesh-send',
    attributes: { allowGuaranteedMsgSendEnabled: send, allowBridgeConnectionsEnabled: bridge },
    members: {},
  })

const confirmed = (object: BrokerObject, entry: Partial<LedgerEntry> = {}): LedgerEntry => ({
  object: { kind: object.kind, name: object.name },
  registrationId: object.kind === 'clientProfile' ? null : PAIR.registrationId,
  origin: 'created',
  applied: { attributes: object.attributes, members: object.members },
  confirmedCredentialVersion: object.kind === 'clientUsername' ? 1 : null,
  passwordDue: false,
  withdrawnAtMs: null,
  ...entry,
})
const intended = (object: BrokerObject): LedgerEntry =>
  confirmed(object, { applied: null, confirmedCredentialVersion: null })

interface Case {
  readonly desired: readonly BrokerObject[]
  /** What the broker holds of the desired names; the rest is absent. */
  readonly observed: readonly BrokerObject[]
  readonly ledger: readonly LedgerEntry[]
  readonly version?: number
  readonly adopt?: boolean
  readonly expected: {
    readonly actions?: readonly unknown[]
    readonly drift?: readonly unknown[]
    readonly conflicts?: readonly unknown[]
    readonly adopt?: readonly unknown[]
  }
}

function diffOf({ desired, observed, ledger, version = 1, adopt = false }: Omit<Case, 'expected'>): Diff {
  const present = new Map(observed.map((object) => [objectKey(object), object]))
  return diff({
    desired,
    credentialVersions: { 'key-1': version },
    observed: new Map(desired.map((object) => [objectKey(object), present.get(objectKey(object)) ?? null])),
    ledger: ledgerOf(ledger),
    mayAdopt: () => adopt,
  })
}

const T = 'publishTopicExceptions'
const M = 'subscribeTopicExceptionsMqtt'
const USER_REF = { kind: 'clientUsername', name: 'key-1' }
const ACL_REF = { kind: 'aclProfile', name: 'app' }

const cases: Readonly<Record<string, Case>> = {
  'absent and unknown: created with its members, no drift': {
    desired: [acl({ [T]: ['a', 'b'] })],
    observed: [],
    ledger: [],
    expected: {
      actions: [
        { type: 'create', object: acl({ [T]: ['a', 'b'] }), reason: 'not-created-yet' },
        { type: 'add-member', ...ACL_REF, memberKind: T, member: 'a', reason: 'not-created-yet' },
        { type: 'add-member', ...ACL_REF, memberKind: T, member: 'b', reason: 'not-created-yet' },
      ],
    },
  },
  'absent and only intended: created, no drift': {
    desired: [user()],
    observed: [],
    ledger: [intended(user())],
    expected: { actions: [{ type: 'create', object: user(), credentialVersion: 1, reason: 'not-created-yet' }] },
  },
  'absent though confirmed: created again, drift "missing"': {
    desired: [user()],
    observed: [],
    ledger: [confirmed(user())],
    version: 3,
    expected: {
      actions: [{ type: 'create', object: user(), credentialVersion: 3, reason: 'deleted-on-broker' }],
      drift: [{ object: USER_REF, kind: 'missing', before: {}, after: user().attributes, reason: 'deleted-on-broker' }],
    },
  },
  'present and unknown: a conflict, untouched': {
    desired: [acl()],
    observed: [acl({}, { publishTopicDefaultAction: 'allow' })],
    ledger: [],
    expected: {
      conflicts: [
        {
          object: ACL_REF,
          kind: 'conflict',
          before: { publishTopicDefaultAction: 'allow' },
          after: { publishTopicDefaultAction: 'disallow' },
          reason: 'foreign-object',
        },
      ],
    },
  },
  'a conflict blocks what depends on it, at any distance': {
    desired: [acl(), user(), queue()],
    observed: [acl()],
    ledger: [],
    expected: {
      conflicts: [
        { reason: 'foreign-object', object: ACL_REF },
        { reason: 'depends-on-conflict', object: USER_REF, before: {}, after: {} },
        { reason: 'depends-on-conflict', object: { kind: 'queue', name: 'q' } },
      ],
    },
  },
  'a foreign username is named as such, even when it looks the same': {
    desired: [user()],
    observed: [user()],
    ledger: [],
    expected: { conflicts: [{ object: USER_REF, kind: 'conflict', reason: 'foreign-username' }] },
  },
  'present, unknown and adopted by policy: changed, its password written': {
    desired: [user()],
    observed: [user({ enabled: false })],
    ledger: [],
    adopt: true,
    expected: {
      adopt: [USER_REF],
      actions: [
        {
          type: 'update',
          ...USER_REF,
          changes: { enabled: { before: false, after: true } },
          disables: [],
          reason: 'adopted-by-policy',
        },
        { type: 'set-password', ...USER_REF, credentialVersion: 1, reason: 'credential-version-newer' },
      ],
    },
  },
  'a shared client profile of somebody else that allows more than is needed: used as it is': {
    desired: [profile(false)],
    observed: [profile(true, true)],
    ledger: [],
    expected: {},
  },
  'a shared client profile of somebody else that allows less: reported, not touched': {
    desired: [profile(true)],
    observed: [profile(false)],
    ledger: [],
    expected: {
      conflicts: [
        {
          object: { kind: 'clientProfile', name: 'keymesh-send' },
          kind: 'unsuitable',
          before: { allowGuaranteedMsgSendEnabled: false },
          after: { allowGuaranteedMsgSendEnabled: true },
          reason: 'profile-unsuitable',
        },
      ],
    },
  },
  'a shared client profile of ours that allows too much: corrected': {
    desired: [profile(false)],
    observed: [profile(false, true)],
    ledger: [confirmed(profile(false))],
    expected: {
      actions: [{ type: 'update', kind: 'clientProfile', reason: 'changed-on-broker' }],
      drift: [{ kind: 'changed', before: { allowBridgeConnectionsEnabled: true } }],
    },
  },
  'present as wanted: nothing, whatever else the object has': {
    desired: [user()],
    observed: [user({ dynamic: false })],
    ledger: [confirmed(user())],
    expected: {},
  },
  'our own pending change: an update, no drift': {
    desired: [user({ clientProfileName: 'keymesh-receive' })],
    observed: [user()],
    ledger: [confirmed(user())],
    expected: {
      actions: [
        {
          type: 'update',
          changes: { clientProfileName: { before: 'keymesh-send', after: 'keymesh-receive' } },
          reason: 'changed-in-catalogue',
        },
      ],
    },
  },
  'changed on the broker: an update and drift with before and after': {
    desired: [user()],
    observed: [user({ enabled: false, aclProfileName: 'other' })],
    ledger: [confirmed(user())],
    expected: {
      actions: [{ type: 'update', reason: 'changed-on-broker' }],
      drift: [
        {
          object: USER_REF,
          kind: 'changed',
          before: { enabled: false, aclProfileName: 'other' },
          after: { enabled: true, aclProfileName: 'app' },
          reason: 'changed-on-broker',
        },
      ],
    },
  },
  'both at once: one update, drift for the attribute that somebody changed only': {
    desired: [user({ clientProfileName: 'keymesh-receive' })],
    observed: [user({ enabled: false })],
    ledger: [confirmed(user())],
    expected: {
      actions: [
        {
          type: 'update',
          changes: {
            clientProfileName: { before: 'keymesh-send', after: 'keymesh-receive' },
            enabled: { before: false, after: true },
          },
          reason: 'changed-on-broker',
        },
      ],
      drift: [{ before: { enabled: false }, after: { enabled: true } }],
    },
  },
  'both at the same attribute: drift all the same': {
    desired: [user({ clientProfileName: 'keymesh-receive' })],
    observed: [user({ clientProfileName: 'default' })],
    ledger: [confirmed(user())],
    expected: {
      actions: [{ type: 'update', reason: 'changed-on-broker' }],
      drift: [{ before: { clientProfileName: 'default' }, after: { clientProfileName: 'keymesh-receive' } }],
    },
  },
  'somebody changed it to what is wanted by now: nothing': {
    desired: [user({ clientProfileName: 'keymesh-receive' })],
    observed: [user({ clientProfileName: 'keymesh-receive' })],
    ledger: [confirmed(user())],
    expected: {},
  },
  'present though only intended: corrected, the password written, no drift': {
    desired: [user()],
    observed: [user({ enabled: false })],
    ledger: [intended(user())],
    expected: {
      actions: [
        { type: 'update', reason: 'changed-in-catalogue' },
        { type: 'set-password', credentialVersion: 1, reason: 'credential-version-newer' },
      ],
    },
  },
  'an attribute that was never confirmed and differs: an update, no drift': {
    desired: [user({ subscriptionManagerEnabled: false })],
    observed: [user({ subscriptionManagerEnabled: true })],
    ledger: [confirmed(user())],
    expected: { actions: [{ type: 'update', reason: 'changed-in-catalogue' }] },
  },
  'an attribute that the broker does not tell: written': {
    desired: [user({ subscriptionManagerEnabled: false })],
    observed: [user()],
    ledger: [confirmed(user({ subscriptionManagerEnabled: false }))],
    expected: {
      actions: [{ changes: { subscriptionManagerEnabled: { before: null, after: false } } }],
      drift: [{ before: { subscriptionManagerEnabled: null } }],
    },
  },
  'members: what is new in the catalogue is added, what left it is removed, no drift': {
    desired: [acl({ [T]: ['keep', 'new'] })],
    observed: [acl({ [T]: ['keep', 'old'] })],
    ledger: [confirmed(acl({ [T]: ['keep', 'old'] }))],
    expected: {
      actions: [
        { type: 'add-member', member: 'new', reason: 'changed-in-catalogue' },
        { type: 'remove-member', member: 'old', reason: 'changed-in-catalogue' },
      ],
    },
  },
  'members: what somebody removed comes back, what somebody added goes, in either syntax': {
    desired: [acl({ [T]: ['keep', 'lost'] })],
    observed: [acl({ [T]: ['keep', 'extra'], [M]: ['a/#'] })],
    ledger: [confirmed(acl({ [T]: ['keep', 'lost'] }))],
    expected: {
      actions: [
        { type: 'add-member', member: 'lost', reason: 'removed-on-broker' },
        { type: 'remove-member', member: 'extra', reason: 'added-on-broker' },
        { type: 'remove-member', memberKind: M, member: 'a/#', reason: 'added-on-broker' },
      ],
      drift: [
        {
          kind: 'changed',
          before: { [T]: ['extra'], [M]: ['a/#'] },
          after: { [T]: ['lost'], [M]: [] },
          object: ACL_REF,
        },
      ],
    },
  },
  'members of an object that is only intended: corrected without drift': {
    desired: [acl({ [T]: ['a'] })],
    observed: [acl({ [T]: ['b'] })],
    ledger: [intended(acl())],
    expected: {
      actions: [
        { type: 'add-member', reason: 'changed-in-catalogue' },
        { type: 'remove-member', reason: 'changed-in-catalogue' },
      ],
    },
  },
  'a newer stored secret: the password is written, no drift': {
    desired: [user()],
    observed: [user()],
    ledger: [confirmed(user())],
    version: 2,
    expected: {
      actions: [{ type: 'set-password', ...USER_REF, credentialVersion: 2, reason: 'credential-version-newer' }],
    },
  },
  'an operator asked for the password: written though the version is confirmed': {
    desired: [user()],
    observed: [user()],
    ledger: [confirmed(user(), { passwordDue: true })],
    expected: { actions: [{ type: 'set-password', credentialVersion: 1, reason: 'password-reapply-requested' }] },
  },
}

describe('diff', () => {
  it.each(Object.entries(cases))('%s', (_, { expected, ...given }) => {
    const result = diffOf(given)
    const { actions = [], drift = [], conflicts = [], adopt = [] } = expected
    expect(result).toMatchObject({ actions, drift, conflicts, adopt })
  })

  it('fails on an object that was not observed: no answer is not "absent"', () => {
    const input = { desired: [user()], credentialVersions: {}, observed: new Map(), ledger: new Map() }
    expect(() => diff({ ...input, mayAdopt: () => true })).toThrow('clientUsername/key-1 was not observed')
  })
})
