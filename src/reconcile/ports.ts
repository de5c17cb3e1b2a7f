import type { AttributeValue, BrokerObject, MemberKind, ObjectKind, ObjectRef } from '../domain/broker-object.ts'
import type { Secret } from '../domain/secret.ts'

/** What a broker says of itself, read before anything else. */
export interface BrokerFacts {
  /** `major.minor` of its SEMP API. */
  readonly sempVersion: string
  /** True for SEMP 2.30 and older: it refuses profile, owner and permission changes on an enabled object. */
  readonly requiresDisable: boolean
  readonly msgVpnEnabled: boolean
  readonly basicAuthentication: { readonly enabled: boolean; readonly type: string }
}

/** Connections that the clients of a client username hold, of those that its client profile allows. */
export interface ClientUsernameConnections {
  /** Counted up to the limit. */
  readonly open: number
  readonly limit: number
}

/**
 * A broker's management side. `null` means absent, and only the broker's own word makes it so (SEMP error code 6 on a
 * message VPN that was read); every other failure throws a KeymeshError with a code and a fate.
 */
export interface BrokerPort {
  /**
   * Throws `MSG_VPN_NOT_FOUND` when the message VPN is missing. Must succeed once before any read may answer null.
   * Runs side by side may share an answer that is a moment old, unless `fresh`.
   */
  facts(signal?: AbortSignal, options?: { readonly fresh: boolean }): Promise<BrokerFacts>
  /** One object with its attributes; members are empty until `members` reads them. */
  get(ref: ObjectRef, signal?: AbortSignal): Promise<BrokerObject | null>
  /** Pages of the largest size, in no order, until the broker's cursor ends; attributes only. */
  list(kind: ObjectKind, signal?: AbortSignal): AsyncIterable<readonly BrokerObject[]>
  /** All members of one object, sorted; null when the object is absent. One listing per SEMP collection. */
  members(
    ref: ObjectRef,
    signal?: AbortSignal,
  ): Promise<Readonly<Partial<Record<MemberKind, readonly string[]>>> | null>
  /** Messages that a queue holds; null when the queue is absent or the broker cannot tell. */
  queuedMessages(queueName: string, signal?: AbortSignal): Promise<number | null>
  /** Null when the client username is absent, the limit is too high to be near, or the broker cannot tell. */
  connections(clientUsername: string, signal?: AbortSignal): Promise<ClientUsernameConnections | null>
  /**
   * Throws `ALREADY_EXISTS` when the name is taken, and only by what this call certainly did not make. The password is for
   * a client username only.
   */
  create(object: BrokerObject, password: Secret | null, signal?: AbortSignal): Promise<void>
  /** Writes only the attributes given. Throws `NOT_FOUND` when the object is absent. */
  update(
    ref: ObjectRef,
    attributes: Readonly<Record<string, AttributeValue>>,
    password: Secret | null,
    signal?: AbortSignal,
  ): Promise<void>
  /** Adding what is there, or removing or deleting what is not, is success. */
  addMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void>
  removeMember(ref: ObjectRef, memberKind: MemberKind, member: string, signal?: AbortSignal): Promise<void>
  delete(ref: ObjectRef, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}
