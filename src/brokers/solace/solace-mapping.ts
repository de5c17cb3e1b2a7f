import type { AttributeValue, MemberKind, ObjectKind, ObjectRef } from '../../domain/broker-object.ts'
import { KeymeshError } from '../../domain/errors.ts'

/** The JSON type of an attribute in SEMP. */
export type AttributeType = 'string' | 'boolean' | 'integer'

/** How one object kind looks in the SEMP v2 configuration API (attribute names are SEMP's own). */
export interface KindMapping {
  readonly collection: string
  /** The identifying attribute. */
  readonly nameAttribute: string
  /** What is selected, compared and written. Nothing else of the object is ever touched. */
  readonly attributes: Readonly<Record<string, AttributeType>>
  readonly name: NameRule
}

/** Limits of SEMP 2.49 in characters. */
interface NameRule {
  readonly maxLength: number
  readonly pattern: RegExp
  /** The pattern in words. */
  readonly rule: string
}

export const KIND_MAPPINGS: Readonly<Record<ObjectKind, KindMapping>> = {
  clientProfile: {
    collection: 'clientProfiles',
    nameAttribute: 'clientProfileName',
    attributes: {
      allowGuaranteedMsgSendEnabled: 'boolean',
      allowGuaranteedMsgReceiveEnabled: 'boolean',
      allowGuaranteedEndpointCreateEnabled: 'boolean',
      allowTransactedSessionsEnabled: 'boolean',
      allowBridgeConnectionsEnabled: 'boolean',
    },
    name: { maxLength: 32, pattern: /^#?[A-Za-z0-9\-_]+$/, rule: 'letters, digits, - and _' },
  },
  aclProfile: {
    collection: 'aclProfiles',
    nameAttribute: 'aclProfileName',
    attributes: {
      clientConnectDefaultAction: 'string',
      publishTopicDefaultAction: 'string',
      subscribeTopicDefaultAction: 'string',
    },
    name: { maxLength: 32, pattern: /^/, rule: 'any characters' },
  },
  clientUsername: {
    collection: 'clientUsernames',
    nameAttribute: 'clientUsername',
    attributes: {
      enabled: 'boolean',
      aclProfileName: 'string',
      clientProfileName: 'string',
      guaranteedEndpointPermissionOverrideEnabled: 'boolean',
      subscriptionManagerEnabled: 'boolean',
    },
    name: { maxLength: 189, pattern: /^[^?*]+$/, rule: 'anything but ? and *' },
  },
  queue: {
    collection: 'queues',
    nameAttribute: 'queueName',
    attributes: {
      accessType: 'string',
      owner: 'string',
      permission: 'string',
      ingressEnabled: 'boolean',
      egressEnabled: 'boolean',
      maxTtl: 'integer',
      respectTtlEnabled: 'boolean',
      maxMsgSpoolUsage: 'integer',
    },
    name: { maxLength: 200, pattern: /^[^*?'<>&;]+$/, rule: "anything but * ? ' < > & ;" },
  },
}

export type TopicSyntax = 'smf' | 'mqtt'

/** A SEMP collection below an object; one listing of it holds the members of one or two member kinds. */
export interface MemberCollection {
  readonly collection: string
  readonly memberAttribute: string
  /** Present where the syntax is part of the identity. */
  readonly syntaxAttribute?: string
  readonly memberKinds: Readonly<Partial<Record<TopicSyntax, MemberKind>>>
}

const PUBLISH_EXCEPTIONS: MemberCollection = {
  collection: 'publishTopicExceptions',
  memberAttribute: 'publishTopicException',
  syntaxAttribute: 'publishTopicExceptionSyntax',
  memberKinds: { smf: 'publishTopicExceptions', mqtt: 'publishTopicExceptionsMqtt' },
}

const SUBSCRIBE_EXCEPTIONS: MemberCollection = {
  collection: 'subscribeTopicExceptions',
  memberAttribute: 'subscribeTopicException',
  syntaxAttribute: 'subscribeTopicExceptionSyntax',
  memberKinds: { smf: 'subscribeTopicExceptions', mqtt: 'subscribeTopicExceptionsMqtt' },
}

const SUBSCRIPTIONS: MemberCollection = {
  collection: 'subscriptions',
  memberAttribute: 'subscriptionTopic',
  memberKinds: { smf: 'subscriptions' },
}

export const MEMBER_COLLECTIONS: Readonly<Record<ObjectKind, readonly MemberCollection[]>> = {
  clientProfile: [],
  aclProfile: [PUBLISH_EXCEPTIONS, SUBSCRIBE_EXCEPTIONS],
  clientUsername: [],
  queue: [SUBSCRIPTIONS],
}

/** Where a member kind lives, or a KeymeshError when the kind of object has no such members. */
export function memberPlace(
  kind: ObjectKind,
  memberKind: MemberKind,
): { readonly collection: MemberCollection; readonly syntax: TopicSyntax } {
  for (const collection of MEMBER_COLLECTIONS[kind]) {
    if (collection.memberKinds.smf === memberKind) return { collection, syntax: 'smf' }
    if (collection.memberKinds.mqtt === memberKind) return { collection, syntax: 'mqtt' }
  }
  throw new KeymeshError({
    code: 'UNKNOWN_MEMBER_KIND',
    fate: 'stop',
    message: `A ${OBJECT_WORDS[kind]} has no ${memberKind}.`,
  })
}

export const OBJECT_WORDS: Readonly<Record<ObjectKind, string>> = {
  clientProfile: 'client profile',
  aclProfile: 'ACL profile',
  clientUsername: 'client username',
  queue: 'queue',
}

/** `client username "alice"`, for messages: bounded, on one line. */
export const describeObject = (ref: ObjectRef): string => `${OBJECT_WORDS[ref.kind]} ${quoteName(ref.name)}`

export function quoteName(name: string): string {
  return JSON.stringify(name.length > 250 ? `${name.slice(0, 250)}…` : name)
}

/** Throws `INVALID_NAME` for a name that a broker would refuse or that cannot be one segment of a path. */
export function checkObjectName(ref: ObjectRef): void {
  const { maxLength, pattern, rule } = KIND_MAPPINGS[ref.kind].name
  checkLengthAndSegment(describeObject(ref), ref.name, maxLength)
  if (!pattern.test(ref.name))
    throw invalidName(`${describeObject(ref)} has a forbidden character`, `Allowed: ${rule}.`)
}

export const MAX_TOPIC_LENGTH = 250

export function checkMember(ref: ObjectRef, memberKind: MemberKind, member: string): void {
  checkLengthAndSegment(`${memberKind} ${quoteName(member)} of ${describeObject(ref)}`, member, MAX_TOPIC_LENGTH)
}

export function checkMsgVpnName(name: string): void {
  const what = `message VPN ${quoteName(name)}`
  checkLengthAndSegment(what, name, 32)
  if (!/^[^*?]+$/.test(name)) throw invalidName(`${what} has a forbidden character`, 'Allowed: anything but * and ?.')
}

/**
 * Dot segments cannot be escaped in a URL: every form of them may be resolved on the way, and a DELETE of the
 * subscription `..` would then be a DELETE of its queue.
 */
function checkLengthAndSegment(what: string, name: string, maxLength: number): void {
  if (name.length === 0) throw invalidName(`${what} is empty`, 'Give it a name.')
  if (name.length > maxLength && [...name].length > maxLength) {
    throw invalidName(`${what} is longer than ${maxLength} characters`, 'Choose a shorter name.')
  }
  if (name === '.' || name === '..') throw invalidName(`${what} cannot be addressed over SEMP`, 'Choose another name.')
  if (!name.isWellFormed()) throw invalidName(`${what} is not valid Unicode`, 'Choose another name.')
}

function invalidName(message: string, hint: string): KeymeshError {
  return new KeymeshError({ code: 'INVALID_NAME', fate: 'stop', message: `The name of ${message}.`, hint })
}

/** Throws `UNKNOWN_ATTRIBUTE` for what is not in the table: it would be written and never read back. */
export function checkAttributes(ref: ObjectRef, attributes: Readonly<Record<string, AttributeValue>>): void {
  const known = KIND_MAPPINGS[ref.kind].attributes
  for (const name of Object.keys(attributes)) {
    if (Object.hasOwn(known, name)) continue
    throw new KeymeshError({
      code: 'UNKNOWN_ATTRIBUTE',
      fate: 'stop',
      message: `Keymesh does not manage the attribute ${quoteName(name)} of a ${OBJECT_WORDS[ref.kind]}.`,
    })
  }
}
