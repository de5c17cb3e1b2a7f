import {
  checkAttributes,
  checkMember,
  checkObjectName,
  describeObject,
  memberPlace,
} from '../../src/brokers/solace/solace-mapping.ts'
import {
  type AttributeValue,
  type BrokerObject,
  MEMBERS_OF,
  type MemberKind,
  type ObjectKind,
  type ObjectRef,
  objectKey,
} from '../../src/domain/broker-object.ts'
import { type Fate, KeymeshError } from '../../src/domain/errors.ts'
import type { Secret } from '../../src/domain/secret.ts'
import type { BrokerFacts, BrokerPort, ClientUsernameConnections } from '../../src/reconcile/ports.ts'

type Attributes = Readonly<Record<string, AttributeValue>>

export type FakeOperation = Exclude<keyof BrokerPort, 'close'>

/** A write that reached the fake, in order. A password is only marked here; `passwords` holds its text. */
export interface FakeWrite {
  readonly operation: 'create' | 'update' | 'addMember' | 'removeMember' | 'delete'
  readonly kind: ObjectKind
  readonly name: string
  readonly attributes?: Attributes
  readonly memberKind?: MemberKind
  readonly member?: string
  readonly withPassword?: boolean
}

/** A failure to come. */
export interface FakeFailure {
  readonly error: unknown
  /** Any operation when absent. */
  readonly on?: FakeOperation
  /** Any object when absent. */
  readonly ref?: ObjectRef
  /** How many calls fail; default 1. */
  readonly times?: number
  /** Calls that pass before the first failure; default 0. */
  readonly after?: number
  /** The write happens, then the error is thrown: an outcome that the caller does not know. */
  readonly applied?: boolean
}

export interface FakeBrokerOptions {
  readonly msgVpnName?: string
  readonly sempVersion?: string
  readonly pageSize?: number
  readonly basicAuthentication?: BrokerFacts['basicAuthentication']
}

interface StoredObject {
  attributes: Record<string, AttributeValue>
  readonly members: Map<MemberKind, Set<string>>
}

/** What a broker fills in for an attribute that a create leaves out. */
const DEFAULTS: Readonly<Record<ObjectKind, Attributes>> = {
  clientProfile: {
    allowGuaranteedMsgSendEnabled: false,
    allowGuaranteedMsgReceiveEnabled: false,
    allowGuaranteedEndpointCreateEnabled: false,
    allowTransactedSessionsEnabled: false,
    allowBridgeConnectionsEnabled: false,
  },
  aclProfile: {
    clientConnectDefaultAction: 'disallow',
    publishTopicDefaultAction: 'disallow',
    subscribeTopicDefaultAction: 'disallow',
  },
  clientUsername: {
    enabled: false,
    aclProfileName: 'default',
    clientProfileName: 'default',
    guaranteedEndpointPermissionOverrideEnabled: false,
    subscriptionManagerEnabled: false,
  },
  queue: {
    accessType: 'exclusive',
    owner: '',
    permission: 'no-access',
    ingressEnabled: false,
    egressEnabled: false,
    maxTtl: 0,
    respectTtlEnabled: false,
    maxMsgSpoolUsage: 5000,
  },
}

/** Attributes that brokers of SEMP 2.30 and older change only while the object is disabled. */
const REQUIRES_DISABLE: Readonly<Record<ObjectKind, readonly string[]>> = {
  clientProfile: [],
  aclProfile: [],
  clientUsername: ['aclProfileName', 'clientProfileName'],
  queue: ['accessType', 'owner', 'permission'],
}

/** A broker in memory that keeps the promises of BrokerPort, logs every write and fails on demand. */
export class FakeBroker implements BrokerPort {
  readonly writes: FakeWrite[] = []
  /** Calls by operation, failed ones too. */
  readonly calls = new Map<FakeOperation, number>()
  /** Client username to the password that the broker would check. */
  readonly passwords = new Map<string, string>()
  /** Messages by queue name; 0 when not set. `null`: the broker cannot tell. */
  readonly messages = new Map<string, number | null>()
  /** Connections that a client profile allows per client username; no limit when not set. */
  readonly connectionLimits = new Map<string, number>()
  /** Open connections by client username. */
  readonly connected = new Map<string, number>()
  msgVpnMissing = false
  msgVpnEnabled = true
  basicAuthentication: BrokerFacts['basicAuthentication']
  sempVersion: string
  closed = false
  readonly #objects = new Map<string, StoredObject & { readonly ref: ObjectRef }>()
  readonly #failures: { failure: FakeFailure; left: number; skip: number }[] = []
  readonly #msgVpnName: string
  readonly #pageSize: number
  #factsRead = false

  constructor(options: FakeBrokerOptions = {}) {
    this.#msgVpnName = options.msgVpnName ?? 'fake-vpn'
    this.#pageSize = options.pageSize ?? 100
    this.sempVersion = options.sempVersion ?? '2.49'
    this.basicAuthentication = options.basicAuthentication ?? { enabled: true, type: 'internal' }
    for (const kind of ['clientProfile', 'aclProfile'] as const) this.put({ kind, name: 'default' })
    this.put({ kind: 'clientUsername', name: 'default' })
  }

  /** Puts or replaces an object as somebody at the broker would: no write is logged, defaults fill the gaps. */
  put(object: ObjectRef & Partial<BrokerObject>, password?: string): void {
    const members = MEMBERS_OF[object.kind].map((kind) => [kind, new Set(object.members?.[kind])] as const)
    this.#objects.set(objectKey(object), {
      ref: { kind: object.kind, name: object.name },
      attributes: { ...DEFAULTS[object.kind], ...object.attributes },
      members: new Map(members),
    })
    if (object.kind === 'clientUsername') this.passwords.set(object.name, password ?? '')
  }

  /** Changes attributes behind Keymesh's back. */
  tamper(ref: ObjectRef, attributes: Attributes): void {
    const stored = this.#find(ref)
    stored.attributes = { ...stored.attributes, ...attributes }
  }

  /** Removes an object behind Keymesh's back. */
  drop(ref: ObjectRef): void {
    this.#objects.delete(objectKey(ref))
    if (ref.kind === 'clientUsername') this.passwords.delete(ref.name)
  }

  /** The whole object with its members, for assertions. */
  peek(ref: ObjectRef): BrokerObject | undefined {
    const stored = this.#objects.get(objectKey(ref))
    return stored && { ...ref, attributes: { ...stored.attributes }, members: membersOf(stored) }
  }

  /** Keys of all objects, sorted. */
  keys(): readonly string[] {
    return [...this.#objects.keys()].sort()
  }

  failNext(failure: FakeFailure): void {
    this.#failures.push({ failure, left: failure.times ?? 1, skip: failure.after ?? 0 })
  }

  async facts(signal?: AbortSignal): Promise<BrokerFacts> {
    return this.#run('facts', undefined, signal, () => {
      this.#factsRead = true
      const [major = 0, minor = 0] = this.sempVersion.split('.').map(Number)
      return {
        sempVersion: this.sempVersion,
        requiresDisable: major < 2 || (major === 2 && minor <= 30),
        msgVpnEnabled: this.msgVpnEnabled,
        basicAuthentication: this.basicAuthentication,
      }
    })
  }

  async get(ref: ObjectRef, signal?: AbortSignal): Promise<BrokerObject | null> {
    checkObjectName(ref)
    return this.#run('get', ref, signal, () => {
      const stored = this.#lookUp(ref)
      return stored && attributesOnly(stored)
    })
  }

  async *list(kind: ObjectKind, signal?: AbortSignal): AsyncGenerator<readonly BrokerObject[]> {
    const found = [...this.#objects.values()].filter((stored) => stored.ref.kind === kind)
    for (let start = 0; start === 0 || start < found.length; start += this.#pageSize) {
      const page = await this.#run('list', undefined, signal, () =>
        found.slice(start, start + this.#pageSize).map(attributesOnly),
      )
      if (page.length > 0) yield page
    }
  }

  async members(
    ref: ObjectRef,
    signal?: AbortSignal,
  ): Promise<Readonly<Partial<Record<MemberKind, readonly string[]>>> | null> {
    checkObjectName(ref)
    return this.#run('members', ref, signal, () => {
      const stored = this.#lookUp(ref)
      return stored && membersOf(stored)
    })
  }

  async queuedMessages(queueName: string, signal?: AbortSignal): Promise<number | null> {
    const ref = { kind: 'queue', name: queueName } as const
    checkObjectName(ref)
    return this.#run('queuedMessages', ref, signal, () => {
      if (this.#lookUp(ref) === null) return null
      const count = this.messages.get(queueName)
      return count === undefined ? 0 : count
    })
  }

  async connections(clientUsername: string, signal?: AbortSignal): Promise<ClientUsernameConnections | null> {
    const ref = { kind: 'clientUsername', name: clientUsername } as const
    checkObjectName(ref)
    return this.#run('connections', ref, signal, () => {
      const limit = this.connectionLimits.get(String(this.#lookUp(ref)?.attributes.clientProfileName))
      if (limit === undefined) return null
      return { open: Math.min(this.connected.get(clientUsername) ?? 0, limit), limit }
    })
  }

  async create(object: BrokerObject, password: Secret | null, signal?: AbortSignal): Promise<void> {
    checkObjectName(object)
    checkAttributes(object, object.attributes)
    return this.#run('create', object, signal, () => {
      if (this.#objects.has(objectKey(object))) {
        throw fakeError('ALREADY_EXISTS', 'retry', `${describeObject(object)} already exists.`)
      }
      this.#checkProfiles(object.attributes)
      this.writes.push({
        operation: 'create',
        kind: object.kind,
        name: object.name,
        attributes: object.attributes,
        withPassword: password !== null,
      })
      this.put({ kind: object.kind, name: object.name, attributes: object.attributes }, password?.reveal())
    })
  }

  async update(ref: ObjectRef, attributes: Attributes, password: Secret | null, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    checkAttributes(ref, attributes)
    return this.#run('update', ref, signal, () => {
      const stored = this.#find(ref)
      this.#checkDisabled(stored, ref, attributes)
      this.#checkProfiles(attributes)
      const { kind, name } = ref
      this.writes.push({ operation: 'update', kind, name, attributes, withPassword: password !== null })
      stored.attributes = { ...stored.attributes, ...attributes }
      if (password !== null) this.passwords.set(name, password.reveal())
    })
  }

  async addMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    memberPlace(ref.kind, memberKind)
    checkMember(ref, memberKind, member)
    return this.#run('addMember', ref, signal, () => {
      const stored = this.#find(ref)
      this.writes.push({ operation: 'addMember', kind: ref.kind, name: ref.name, memberKind, member })
      stored.members.get(memberKind)?.add(member)
    })
  }

  async removeMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    memberPlace(ref.kind, memberKind)
    checkMember(ref, memberKind, member)
    return this.#run('removeMember', ref, signal, () => {
      this.writes.push({ operation: 'removeMember', kind: ref.kind, name: ref.name, memberKind, member })
      this.#lookUp(ref)?.members.get(memberKind)?.delete(member)
    })
  }

  async delete(ref: ObjectRef, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    return this.#run('delete', ref, signal, () => {
      this.#checkUnused(ref)
      this.writes.push({ operation: 'delete', kind: ref.kind, name: ref.name })
      if (this.#lookUp(ref) !== null) this.drop(ref)
    })
  }

  async close(): Promise<void> {
    this.closed = true
  }

  async #run<Result>(
    operation: FakeOperation,
    ref: ObjectRef | undefined,
    signal: AbortSignal | undefined,
    work: () => Result,
  ): Promise<Result> {
    this.calls.set(operation, (this.calls.get(operation) ?? 0) + 1)
    // A real broker never answers in the same tick; callers must not rely on it.
    await Promise.resolve()
    if (signal?.aborted) throw fakeError('ABORTED', 'retry', 'The request was aborted.', signal.reason)
    if (this.closed) throw fakeError('BROKER_CLOSED', 'retry', 'The broker adapter is closed.')
    const failure = this.#takeFailure(operation, ref)
    if (failure?.applied === true) work()
    if (failure !== undefined) throw failure.error
    if (this.msgVpnMissing) {
      throw fakeError('MSG_VPN_NOT_FOUND', 'stop', `The message VPN "${this.#msgVpnName}" does not exist.`)
    }
    return work()
  }

  #takeFailure(operation: FakeOperation, ref: ObjectRef | undefined): FakeFailure | undefined {
    const found = this.#failures.find(
      ({ failure }) =>
        (failure.on === undefined || failure.on === operation) &&
        (failure.ref === undefined || (ref !== undefined && objectKey(failure.ref) === objectKey(ref))),
    )
    if (found === undefined) return undefined
    if (found.skip > 0) {
      found.skip -= 1
      return undefined
    }
    found.left -= 1
    if (found.left <= 0) this.#failures.splice(this.#failures.indexOf(found), 1)
    return found.failure
  }

  /** Absence is an answer only once the facts were read: a caller that skips them is found by its tests. */
  #lookUp(ref: ObjectRef): (StoredObject & { readonly ref: ObjectRef }) | null {
    const stored = this.#objects.get(objectKey(ref))
    if (stored !== undefined) return stored
    if (!this.#factsRead) throw new Error('The facts of the broker must be read before anything can be absent.')
    return null
  }

  #find(ref: ObjectRef): StoredObject {
    const stored = this.#objects.get(objectKey(ref))
    if (stored === undefined) throw fakeError('NOT_FOUND', 'retry', `${describeObject(ref)} does not exist.`)
    return stored
  }

  #checkProfiles(attributes: Attributes): void {
    for (const kind of ['aclProfile', 'clientProfile'] as const) {
      const name = attributes[`${kind}Name`]
      if (typeof name !== 'string' || this.#objects.has(objectKey({ kind, name }))) continue
      throw fakeError('SEMP_INVALID_PARAMETER', 'stop', `${describeObject({ kind, name })} does not exist.`)
    }
  }

  #checkDisabled(stored: StoredObject, ref: ObjectRef, attributes: Attributes): void {
    const [major = 0, minor = 0] = this.sempVersion.split('.').map(Number)
    const isEnabled = stored.attributes[ref.kind === 'queue' ? 'egressEnabled' : 'enabled'] === true
    if (major > 2 || minor > 30 || !isEnabled) return
    const refused = REQUIRES_DISABLE[ref.kind].filter(
      (name) => attributes[name] !== undefined && attributes[name] !== stored.attributes[name],
    )
    if (refused.length === 0) return
    throw fakeError(
      'SEMP_NOT_ALLOWED',
      'stop',
      `${describeObject(ref)} must be disabled to change ${refused.join(', ')}.`,
    )
  }

  #checkUnused(ref: ObjectRef): void {
    if (ref.kind !== 'aclProfile' && ref.kind !== 'clientProfile') return
    const attribute = `${ref.kind}Name`
    for (const { ref: user, attributes } of this.#objects.values()) {
      if (user.kind !== 'clientUsername' || attributes.enabled !== true || attributes[attribute] !== ref.name) continue
      throw fakeError('SEMP_NOT_ALLOWED', 'stop', `${describeObject(user)} is enabled and uses ${describeObject(ref)}.`)
    }
  }
}

const attributesOnly = (stored: StoredObject & { readonly ref: ObjectRef }): BrokerObject => ({
  kind: stored.ref.kind,
  name: stored.ref.name,
  attributes: { ...stored.attributes },
  members: {},
})

const membersOf = (stored: StoredObject): Partial<Record<MemberKind, readonly string[]>> =>
  Object.fromEntries([...stored.members].map(([kind, members]) => [kind, [...members].sort()]))

function fakeError(code: string, fate: Fate, message: string, cause?: unknown): KeymeshError {
  return new KeymeshError({ code, fate, message, cause })
}
