/** Broker objects as plain data, the same shape for what should be and for what was read. */

export const OBJECT_KINDS = ['clientProfile', 'aclProfile', 'clientUsername', 'queue'] as const
export type ObjectKind = (typeof OBJECT_KINDS)[number]

export type AttributeValue = string | number | boolean

/**
 * Unordered sets that hang on an object. Exceptions of MQTT syntax have sets of their own: Keymesh writes SMF syntax,
 * and must see (and remove) what somebody added in the other.
 */
export const MEMBER_KINDS = [
  'publishTopicExceptions',
  'subscribeTopicExceptions',
  'publishTopicExceptionsMqtt',
  'subscribeTopicExceptionsMqtt',
  'subscriptions',
] as const
export type MemberKind = (typeof MEMBER_KINDS)[number]
export type Members = Readonly<Partial<Record<MemberKind, readonly string[]>>>

export const MEMBERS_OF: Readonly<Record<ObjectKind, readonly MemberKind[]>> = {
  clientProfile: [],
  aclProfile: [
    'publishTopicExceptions',
    'subscribeTopicExceptions',
    'publishTopicExceptionsMqtt',
    'subscribeTopicExceptionsMqtt',
  ],
  clientUsername: [],
  queue: ['subscriptions'],
}

export interface BrokerObject {
  readonly kind: ObjectKind
  readonly name: string
  /** Only what Keymesh sets (desired) or asks for (observed). Never a secret. */
  readonly attributes: Readonly<Record<string, AttributeValue>>
  /** Sorted, without duplicates. A desired object has every member kind of its kind, be it empty. */
  readonly members: Members
}

/** The names of one object, for messages and maps. */
export interface ObjectRef {
  readonly kind: ObjectKind
  readonly name: string
}

export const objectKey = (ref: ObjectRef): string => `${ref.kind}/${ref.name}`
