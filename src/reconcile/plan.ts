import type { AttributeValue, BrokerObject, MemberKind, ObjectKind, ObjectRef } from '../domain/broker-object.ts'
import type { AccountId, BrokerId, RegistrationId } from '../domain/ids.ts'
import type { Reason } from './reasons.ts'

/** One write on a broker, as plain data. A secret is named by its credential version, never carried. */
export type Action =
  | {
      readonly type: 'create'
      readonly object: BrokerObject
      /** Set for a client username: the stored secret of this version goes with the create. */
      readonly credentialVersion?: number
      readonly reason: Reason
    }
  | {
      readonly type: 'update'
      readonly kind: ObjectKind
      readonly name: string
      readonly changes: Readonly<Record<string, AttributeChange>>
      /** Attribute that the broker (or, before SEMP 2.41, we) must switch off for a moment: live clients drop. */
      readonly disables: readonly string[]
      readonly reason: Reason
    }
  | {
      readonly type: 'add-member' | 'remove-member'
      readonly kind: ObjectKind
      readonly name: string
      readonly memberKind: MemberKind
      readonly member: string
      readonly reason: Reason
    }
  | {
      readonly type: 'set-password'
      readonly kind: 'clientUsername'
      readonly name: string
      readonly credentialVersion: number
      readonly reason: Reason
    }
  | { readonly type: 'delete'; readonly kind: ObjectKind; readonly name: string; readonly reason: Reason }

export interface AttributeChange {
  readonly before: AttributeValue | null
  readonly after: AttributeValue
}

export const actionRef = (action: Action): ObjectRef =>
  action.type === 'create' ? action.object : { kind: action.kind, name: action.name }

/** An action with what policy says of it. */
export interface Step {
  readonly action: Action
  /** True when the action drops live clients. */
  readonly disruptive: boolean
  readonly decision: 'run' | 'held'
  /** Why it is held. */
  readonly because?: string
}

/** One difference that our own pending change does not explain. */
export interface Drift {
  readonly object: ObjectRef
  readonly kind: 'missing' | 'changed' | 'unexpected' | 'conflict' | 'unsuitable' | 'password'
  /** Attribute or member kind to value; `null`: not there. Member kinds map to what was lost and what was added. */
  readonly before: Readonly<Record<string, AttributeValue | readonly string[] | null>>
  readonly after: Readonly<Record<string, AttributeValue | readonly string[] | null>>
  readonly reason: Reason
}

/** What one registration needs on one broker. Plain data: a dry run prints it, `apply` executes it. */
export interface Plan {
  readonly accountId: AccountId
  readonly brokerId: BrokerId
  readonly registrationId: RegistrationId
  readonly generation: number
  readonly steps: readonly Step[]
  readonly drift: readonly Drift[]
  /** Objects that stand in the way until a person acts; those that are not ours block what depends on them. */
  readonly conflicts: readonly Drift[]
  /** Set when the whole plan may not run and a person is asked. */
  readonly refused: { readonly reason: Reason; readonly message: string } | null
  /** The earliest end of a grace period or, for steps that wait for the broker's window, its opening. */
  readonly waitsUntilMs: number | null
  readonly notes: readonly string[]
}
