import type { AttributeValue, BrokerObject, MemberKind, ObjectKind, ObjectRef } from '../../domain/broker-object.ts'
import type { ManagementSettings } from '../../domain/catalogue.ts'
import { codeOf, KeymeshError } from '../../domain/errors.ts'
import type { Secret } from '../../domain/secret.ts'
import type { BrokerFacts, BrokerPort, ClientUsernameConnections } from '../../reconcile/ports.ts'
import { ClientConnections, cannotTell } from './client-connections.ts'
import { MsgVpnWitness } from './msg-vpn-witness.ts'
import { SempClient, type SempClientOptions, type SempRequest, type SempSender } from './semp-client.ts'
import { SempPaths } from './semp-paths.ts'
import { readOne, readPages, unexpected } from './semp-reads.ts'
import { ABOUT, MEMBER_ANSWERS, type MemberAnswer, OBJECT_ANSWERS, QUEUE_MONITOR, toObject } from './solace-answers.ts'
import {
  checkMember,
  checkMsgVpnName,
  checkObjectName,
  describeObject,
  KIND_MAPPINGS,
  memberPlace,
  OBJECT_WORDS,
  quoteName,
} from './solace-mapping.ts'
import { objectBody } from './write-body.ts'

export interface SolaceBrokerOptions extends SempClientOptions {
  /** How long a read of the message VPN vouches for "absent"; default 30 seconds. */
  readonly msgVpnFreshMs?: number
}

export interface SolaceBroker extends BrokerPort {
  /** HTTP requests that were started, repeats and logins included. */
  readonly requestCount: number
  /** The same broker, for work that lets others go first. */
  readonly background: BrokerPort
}

type Attributes = Readonly<Record<string, AttributeValue>>
type MembersByKind = Readonly<Partial<Record<MemberKind, readonly string[]>>>

/**
 * The Solace adapter of the broker port, over the SEMP v2 configuration API of one message VPN.
 *
 * "Absent" is SEMP error code 6 and nothing else, and only while a read of the message VPN vouches for it. Callers begin
 * every run with `facts()`; when that is longer ago than `msgVpnFreshMs`, the adapter reads the message VPN once more
 * before it says "absent". Throws `INVALID_BROKER_URL`, `INVALID_CA_CERTIFICATE` or `INVALID_NAME` for bad settings.
 */
export function createSolaceBroker(
  settings: ManagementSettings,
  password: Secret,
  options: SolaceBrokerOptions = {},
): SolaceBroker {
  checkMsgVpnName(settings.msgVpnName)
  const { msgVpnName } = settings
  const { msgVpnFreshMs = 30_000 } = options
  const client = new SempClient(settings, password, options)
  const background = new SolaceSempBroker({ client, sender: client.inBackground(), msgVpnName, msgVpnFreshMs })
  return new SolaceSempBroker({ client, sender: client, msgVpnName, msgVpnFreshMs }, background)
}

interface Sending {
  readonly client: SempClient
  /** The client itself, or its lane for work that lets others go first. */
  readonly sender: SempSender
  readonly msgVpnName: string
  readonly msgVpnFreshMs: number
}

/** Errors of the monitor API that say nothing of the queue: not there, not supported, not allowed. */
const CANNOT_COUNT: ReadonlySet<string> = new Set([
  'NOT_FOUND',
  'SEMP_INVALID_PATH',
  'SEMP_NOT_SUPPORTED',
  'UNAUTHORIZED_SCOPE',
])

class SolaceSempBroker implements SolaceBroker {
  readonly background: BrokerPort
  readonly #client: SempClient
  readonly #sender: SempSender
  readonly #paths: SempPaths
  readonly #msgVpn: MsgVpnWitness
  readonly #connections: ClientConnections

  constructor({ client, sender, msgVpnName, msgVpnFreshMs }: Sending, background?: BrokerPort) {
    this.background = background ?? this
    this.#client = client
    this.#sender = sender
    this.#paths = new SempPaths(msgVpnName)
    this.#msgVpn = new MsgVpnWitness(sender, msgVpnName, this.#paths.msgVpn, msgVpnFreshMs)
    this.#connections = new ClientConnections(sender, this.#paths)
  }

  get requestCount(): number {
    return this.#client.requestCount
  }

  async facts(signal?: AbortSignal): Promise<BrokerFacts> {
    const msgVpn = await this.#msgVpn.read(signal)
    const about = {
      kind: 'about',
      path: this.#paths.about,
      select: ['sempVersion'],
      describe: () => 'read the SEMP version',
      schema: ABOUT,
    }
    const { sempVersion } = await readOne(this.#sender, about, signal)
    const [major = 0, minor = 0] = sempVersion.split('.').map((part) => Number.parseInt(part, 10))
    return {
      sempVersion: `${major}.${minor}`,
      requiresDisable: major < 2 || (major === 2 && minor <= 30),
      msgVpnEnabled: msgVpn.enabled,
      basicAuthentication: { enabled: msgVpn.authenticationBasicEnabled, type: msgVpn.authenticationBasicType },
    }
  }

  async get(ref: ObjectRef, signal?: AbortSignal): Promise<BrokerObject | null> {
    checkObjectName(ref)
    const { select, one } = OBJECT_ANSWERS[ref.kind]
    const describe = (): string => `read ${describeObject(ref)}`
    const read = { kind: ref.kind, path: this.#paths.object(ref), select, describe, schema: one }
    return this.#unlessAbsent(async () => {
      const object = toObject(ref.kind, await readOne(this.#sender, read, signal))
      if (object.name !== ref.name) throw unexpected(this.#sender, read, 'it is about another object')
      return object
    }, signal)
  }

  async *list(kind: ObjectKind, signal?: AbortSignal): AsyncGenerator<readonly BrokerObject[]> {
    const { select, page } = OBJECT_ANSWERS[kind]
    const describe = (): string => `list the ${OBJECT_WORDS[kind]}s of ${this.#msgVpn.describe()}`
    const read = { kind, path: this.#paths.collection(kind), select, describe, schema: page }
    try {
      for await (const rows of readPages(this.#sender, read, signal)) {
        if (rows.length > 0) yield rows.map((row) => toObject(kind, row))
      }
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error
      // A collection is never absent by itself: its message VPN is.
      await this.#msgVpn.read(signal)
      throw unexpected(this.#sender, read, 'the collection is missing although its message VPN is there')
    }
  }

  async members(ref: ObjectRef, signal?: AbortSignal): Promise<MembersByKind | null> {
    checkObjectName(ref)
    const answers = MEMBER_ANSWERS[ref.kind]
    if (answers.length === 0) return (await this.get(ref, signal)) === null ? null : {}
    return this.#unlessAbsent(async () => {
      const parts = await Promise.all(answers.map((answer) => this.#listMembers(ref, answer, signal)))
      const members: MembersByKind = {}
      for (const part of parts) Object.assign(members, part)
      return members
    }, signal)
  }

  async queuedMessages(queueName: string, signal?: AbortSignal): Promise<number | null> {
    const ref = { kind: 'queue', name: queueName } as const
    checkObjectName(ref)
    const request: SempRequest = {
      method: 'GET',
      kind: 'queueMonitor',
      // No `select`: brokers differ in whether the count of a collection is an attribute that one can select.
      path: this.#paths.monitoredQueue(queueName),
      describe: () => `count the messages of ${describeObject(ref)}`,
      signal,
    }
    try {
      const parsed = QUEUE_MONITOR.safeParse(await this.#sender.send(request))
      if (!parsed.success) return null
      const { count } = parsed.data.collections.msgs
      // Spooled bytes without a message: its partitions hold them, or the count is behind.
      return count === 0 && (parsed.data.data.msgSpoolUsage ?? 0) > 0 ? null : count
    } catch (error) {
      if (CANNOT_COUNT.has(codeOf(error))) return null
      throw error
    }
  }

  async connections(clientUsername: string, signal?: AbortSignal): Promise<ClientUsernameConnections | null> {
    const ref = { kind: 'clientUsername', name: clientUsername } as const
    checkObjectName(ref)
    try {
      const limits = await this.#connections.limits(signal)
      const user = limits.size === 0 ? null : await this.get(ref, signal)
      const limit = limits.get(String(user?.attributes.clientProfileName))
      return limit === undefined ? null : { open: await this.#connections.count(clientUsername, limit, signal), limit }
    } catch (error) {
      if (!cannotTell(error)) throw error
      if (codeOf(error) === 'NOT_FOUND') await this.#msgVpn.read(signal)
      return null
    }
  }

  async create(object: BrokerObject, password: Secret | null, signal?: AbortSignal): Promise<void> {
    checkObjectName(object)
    const named = { [KIND_MAPPINGS[object.kind].nameAttribute]: object.name, ...object.attributes }
    const sent = this.#write({
      method: 'POST',
      kind: object.kind,
      path: this.#paths.collection(object.kind),
      describe: () => `create ${describeObject(object)}`,
      ...objectBody(object, object.attributes, named, password),
      signal,
    })
    await sent.catch((error: unknown) => {
      // Found by a repeat: it may be what the first try made. That one's answer is the one that is true in any case.
      const isOfRepeat = error instanceof KeymeshError && error.code === 'ALREADY_EXISTS' && error.cause !== undefined
      throw isOfRepeat ? error.cause : error
    })
  }

  async update(ref: ObjectRef, attributes: Attributes, password: Secret | null, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    await this.#write({
      method: 'PATCH',
      kind: ref.kind,
      path: this.#paths.object(ref),
      describe: () => `update ${describeObject(ref)}`,
      ...objectBody(ref, attributes, attributes, password),
      signal,
    })
  }

  async addMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    const { collection, syntax } = memberPlace(ref.kind, memberKind)
    checkMember(ref, memberKind, member)
    const { memberAttribute, syntaxAttribute } = collection
    const body = { [memberAttribute]: member, ...(syntaxAttribute === undefined ? {} : { [syntaxAttribute]: syntax }) }
    const sent = this.#write({
      method: 'POST',
      kind: collection.collection,
      path: this.#paths.memberCollection(ref, collection),
      describe: () => `add ${quoteName(member)} to the ${memberKind} of ${describeObject(ref)}`,
      body: JSON.stringify(body),
      signal,
    })
    await succeedOn('ALREADY_EXISTS', sent)
  }

  async removeMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    const { collection } = memberPlace(ref.kind, memberKind)
    checkMember(ref, memberKind, member)
    const sent = this.#write({
      method: 'DELETE',
      kind: collection.collection,
      path: this.#paths.member(ref, memberKind, member),
      describe: () => `remove ${quoteName(member)} from the ${memberKind} of ${describeObject(ref)}`,
      signal,
    })
    await succeedOn('NOT_FOUND', sent)
  }

  async delete(ref: ObjectRef, signal?: AbortSignal): Promise<void> {
    checkObjectName(ref)
    const sent = this.#write({
      method: 'DELETE',
      kind: ref.kind,
      path: this.#paths.object(ref),
      describe: () => `delete ${describeObject(ref)}`,
      signal,
    })
    await succeedOn('NOT_FOUND', sent)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #listMembers(ref: ObjectRef, answer: MemberAnswer, signal: AbortSignal | undefined): Promise<MembersByKind> {
    const { collection, select, page } = answer
    const read = {
      kind: collection.collection,
      path: this.#paths.memberCollection(ref, collection),
      select,
      describe: () => `list the ${collection.collection} of ${describeObject(ref)}`,
      schema: page,
    }
    const found = { smf: new Set<string>(), mqtt: new Set<string>() }
    for await (const rows of readPages(this.#sender, read, signal)) {
      for (const { member, syntax } of rows) found[syntax].add(member)
    }
    const { smf, mqtt } = collection.memberKinds
    return {
      ...(smf === undefined ? {} : { [smf]: [...found.smf].sort() }),
      ...(mqtt === undefined ? {} : { [mqtt]: [...found.mqtt].sort() }),
    }
  }

  /**
   * A write that the broker answers with code 6 may be about the message VPN: then that is the error. It is read anew,
   * for a deletion that finds nothing counts as done.
   */
  async #write(request: SempRequest): Promise<void> {
    try {
      await this.#sender.send(request)
    } catch (error) {
      if (codeOf(error) === 'NOT_FOUND') await this.#msgVpn.read(request.signal)
      throw error
    }
  }

  async #unlessAbsent<Result>(read: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result | null> {
    try {
      return await read()
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error
      await this.#msgVpn.vouch(signal)
      return null
    }
  }
}

async function succeedOn(code: string, sent: Promise<void>): Promise<void> {
  try {
    await sent
  } catch (error) {
    if (codeOf(error) !== code) throw error
  }
}
