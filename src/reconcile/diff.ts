import {
  type AttributeValue,
  type BrokerObject,
  MEMBERS_OF,
  type MemberKind,
  type ObjectRef,
  objectKey,
} from '../domain/broker-object.ts'
import type { Ledger, LedgerEntry } from './ledger.ts'
import type { Action, AttributeChange, Drift } from './plan.ts'
import type { Reason } from './reasons.ts'

/** Observed objects by key; `null`: the broker said that the object is absent. */
export type Observed = ReadonlyMap<string, BrokerObject | null>

export interface DiffInput {
  readonly desired: readonly BrokerObject[]
  readonly credentialVersions: Readonly<Record<string, number>>
  readonly observed: Observed
  readonly ledger: Ledger
  /** Decides on an object that is there, has a name we want, and is not in the ledger. */
  readonly mayAdopt: (object: BrokerObject, observed: BrokerObject) => boolean
}

export interface Diff {
  readonly actions: readonly Action[]
  readonly drift: readonly Drift[]
  readonly conflicts: readonly Drift[]
  readonly adopt: readonly ObjectRef[]
}

/**
 * Wanted objects against the broker, one table of cases:
 *
 *     observed | ledger    | outcome
 *     absent   | none      | create
 *     absent   | intended  | create
 *     absent   | confirmed | create, drift `missing`
 *     present  | none      | conflict, or adopt when policy says so; a shared client profile is used as it is
 *     present  | any       | update what differs; drift where the broker left the state it last confirmed
 */
export function diff(input: DiffInput): Diff {
  const actions: Action[] = []
  const drift: Drift[] = []
  const conflicts: Drift[] = []
  const adopt: ObjectRef[] = []
  const blocked = new Set<string>()

  for (const object of input.desired) {
    const key = objectKey(object)
    const entry = input.ledger.get(key)
    const observed = input.observed.get(key)
    if (observed === undefined) throw new TypeError(`${key} was not observed`)
    if (dependencies(object).some((each) => blocked.has(each))) {
      conflicts.push(blockedBy(object))
      blocked.add(key)
      continue
    }
    if (observed === null) {
      actions.push(...creation(object, input.credentialVersions, entry))
      if (entry?.applied != null) drift.push(missing(object))
      continue
    }
    if (entry === undefined) {
      if (object.kind === 'clientProfile') {
        const unsuitable = insufficientFlags(object, observed)
        // It is used all the same: what it does allow works.
        if (Object.keys(unsuitable).length > 0) conflicts.push(unsuitableProfile(object, unsuitable))
        continue
      }
      if (!input.mayAdopt(object, observed)) {
        conflicts.push(conflict(object, observed))
        blocked.add(key)
        continue
      }
      adopt.push({ kind: object.kind, name: object.name })
    }
    const difference = compare(object, observed, entry, entry === undefined)
    const password = passwordAction(object, input.credentialVersions, entry)
    actions.push(...difference.actions, ...password)
    if (difference.drift !== null) drift.push(difference.drift)
    if (password.some(({ reason }) => reason === 'login-rejected')) drift.push(passwordDrift(object))
  }
  return { actions, drift, conflicts, adopt }
}

/** Objects that must be ours before this one may refer to them. Shared client profiles are used whoever made them. */
function dependencies(object: BrokerObject): readonly string[] {
  const { aclProfileName, owner } = object.attributes
  if (object.kind === 'clientUsername') return [objectKey({ kind: 'aclProfile', name: String(aclProfileName) })]
  if (object.kind === 'queue') return [objectKey({ kind: 'clientUsername', name: String(owner) })]
  return []
}

function creation(
  object: BrokerObject,
  credentialVersions: Readonly<Record<string, number>>,
  entry: LedgerEntry | undefined,
): readonly Action[] {
  const reason: Reason = entry?.applied == null ? 'not-created-yet' : 'deleted-on-broker'
  const version = credentialVersions[object.name]
  const create: Action =
    object.kind === 'clientUsername' && version !== undefined
      ? { type: 'create', object, credentialVersion: version, reason }
      : { type: 'create', object, reason }
  const members = MEMBERS_OF[object.kind].flatMap((memberKind) =>
    (object.members[memberKind] ?? []).map((member) => memberAction('add-member', object, memberKind, member, reason)),
  )
  return [create, ...members]
}

function memberAction(
  type: 'add-member' | 'remove-member',
  { kind, name }: ObjectRef,
  memberKind: MemberKind,
  member: string,
  reason: Reason,
): Action {
  return { type, kind, name, memberKind, member, reason }
}

function changesOf(desired: BrokerObject, observed: BrokerObject): Record<string, AttributeChange> {
  const changes: Record<string, AttributeChange> = {}
  for (const [name, after] of Object.entries(desired.attributes)) {
    const before = observed.attributes[name] ?? null
    if (before !== after) changes[name] = { before, after }
  }
  return changes
}

/** A shared profile of somebody else serves when it allows all that is needed; what it allows beyond is its owner's. */
function insufficientFlags(desired: BrokerObject, observed: BrokerObject): Record<string, AttributeChange> {
  const changes = Object.entries(changesOf(desired, observed)).filter(([, change]) => change.after === true)
  return Object.fromEntries(changes)
}

interface Comparison {
  readonly actions: readonly Action[]
  readonly drift: Drift | null
}

function compare(
  desired: BrokerObject,
  observed: BrokerObject,
  entry: LedgerEntry | undefined,
  adopted: boolean,
): Comparison {
  const actions: Action[] = []
  const before: Record<string, AttributeValue | readonly string[] | null> = {}
  const after: Record<string, AttributeValue | readonly string[] | null> = {}
  const applied = entry?.applied ?? null

  const changes = changesOf(desired, observed)
  let driftedAttributes = 0
  for (const [name, change] of Object.entries(changes)) {
    // An attribute that was never confirmed is one that Keymesh has only begun to set.
    const confirmed = applied?.attributes[name]
    if (confirmed === undefined || change.before === confirmed) continue
    before[name] = change.before
    after[name] = change.after
    driftedAttributes += 1
  }
  if (Object.keys(changes).length > 0) {
    const reason = adopted ? 'adopted-by-policy' : driftedAttributes > 0 ? 'changed-on-broker' : 'changed-in-catalogue'
    actions.push({ type: 'update', kind: desired.kind, name: desired.name, changes, disables: [], reason })
  }

  for (const memberKind of MEMBERS_OF[desired.kind]) {
    const wanted = new Set(desired.members[memberKind] ?? [])
    const present = new Set(observed.members[memberKind] ?? [])
    const confirmed = applied === null ? null : new Set(applied.members[memberKind] ?? [])
    const absent = [...wanted].filter((member) => !present.has(member))
    const surplus = [...present].filter((member) => !wanted.has(member))
    for (const member of absent) {
      const reason = confirmed?.has(member) ? 'removed-on-broker' : 'changed-in-catalogue'
      actions.push(memberAction('add-member', desired, memberKind, member, reason))
    }
    for (const member of surplus) {
      const reason = confirmed === null || confirmed.has(member) ? 'changed-in-catalogue' : 'added-on-broker'
      actions.push(memberAction('remove-member', desired, memberKind, member, reason))
    }
    const lost = absent.filter((member) => confirmed?.has(member))
    const gained = surplus.filter((member) => confirmed !== null && !confirmed.has(member))
    if (lost.length + gained.length === 0) continue
    before[memberKind] = gained
    after[memberKind] = lost
  }
  const drifted = Object.keys(before).length > 0
  const drift: Drift = { object: ref(desired), kind: 'changed', before, after, reason: 'changed-on-broker' }
  return { actions, drift: drifted ? drift : null }
}

/**
 * The password cannot be read back: it is due by version, when an operator asks, or once when the broker refused a login
 * with it (DESIGN section 4, invariant 4).
 */
function passwordAction(
  object: BrokerObject,
  credentialVersions: Readonly<Record<string, number>>,
  entry: LedgerEntry | undefined,
): readonly Action[] {
  const version = credentialVersions[object.name]
  if (object.kind !== 'clientUsername' || version === undefined) return []
  const { name } = object
  if (entry?.passwordDue) {
    const reason = 'password-reapply-requested'
    return [{ type: 'set-password', kind: 'clientUsername', name, credentialVersion: version, reason }]
  }
  const refused = entry?.refusedLogin
  const isNewer = (entry?.confirmedCredentialVersion ?? 0) < version
  const isRefused = refused?.credentialVersion === version && !refused.reapplied
  if (!isNewer && !isRefused) return []
  const reason = isNewer ? 'credential-version-newer' : 'login-rejected'
  return [{ type: 'set-password', kind: 'clientUsername', name, credentialVersion: version, reason }]
}

const ref = ({ kind, name }: ObjectRef): ObjectRef => ({ kind, name })

/** What the logins said before and after is filled in by the run that wrote the password again. */
const passwordDrift = (object: BrokerObject): Drift => ({
  object: ref(object),
  kind: 'password',
  before: { login: 'rejected' },
  after: { login: 'accepted' },
  reason: 'login-rejected',
})

const missing = (object: BrokerObject): Drift => ({
  object: ref(object),
  kind: 'missing',
  before: {},
  after: { ...object.attributes, ...object.members },
  reason: 'deleted-on-broker',
})

const unsuitableProfile = (object: BrokerObject, changes: Record<string, AttributeChange>): Drift => ({
  object: ref(object),
  kind: 'unsuitable',
  before: Object.fromEntries(Object.entries(changes).map(([name, change]) => [name, change.before])),
  after: Object.fromEntries(Object.entries(changes).map(([name, change]) => [name, change.after])),
  reason: 'profile-unsuitable',
})

const conflict = (object: BrokerObject, observed: BrokerObject): Drift => ({
  object: ref(object),
  kind: 'conflict',
  before: observed.attributes,
  after: object.attributes,
  reason: object.kind === 'clientUsername' ? 'foreign-username' : 'foreign-object',
})

const blockedBy = (object: BrokerObject): Drift => ({
  object: ref(object),
  kind: 'conflict',
  before: {},
  after: {},
  reason: 'depends-on-conflict',
})
