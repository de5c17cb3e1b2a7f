import type { ClassOfServicePolicy } from '../../src/domain/catalogue.ts'
import type { Wanted, WantedKind } from './wanted.ts'

export interface Version {
  readonly state: 'RELEASED' | 'DEPRECATED' | 'RETIRED'
  readonly approval: 'automatic' | 'manual'
  readonly eventApis: readonly string[]
  readonly brokers: readonly number[]
  readonly plans: Readonly<Record<string, ClassOfServicePolicy>>
}

export interface Access {
  readonly product: string
  readonly version: string
  readonly plan: string
  readonly state: 'PENDING_APPROVAL' | 'APPROVED' | 'REJECTED' | 'REVOKED'
}

export interface Credential {
  readonly secret: string
  /** Epoch milliseconds. */
  readonly expiresAtMs: number | null
}

export interface Registration {
  readonly id: string
  readonly regions: readonly string[] | null
  readonly credentials: ReadonlyMap<string, Credential>
  readonly access: ReadonlyMap<string, Access>
}

/** What was accepted, each of them a fact that stands for itself. */
export type Change =
  | { readonly type: 'registration'; readonly registration: string }
  | { readonly type: 'registration-gone'; readonly registration: string }
  | { readonly type: 'regions'; readonly registration: string; readonly regions: readonly string[] | null }
  | {
      readonly type: 'credential'
      readonly registration: string
      readonly key: string
      readonly secret: string
      readonly expiresAtMs: number | null
    }
  | { readonly type: 'credential-gone'; readonly registration: string; readonly key: string }
  | { readonly type: 'access'; readonly registration: string; readonly id: string; readonly access: Access }
  | { readonly type: 'access-gone'; readonly registration: string; readonly id: string }
  | { readonly type: 'version'; readonly product: string; readonly version: string; readonly content: Version }
  /** A foreign client username has this name, on one broker. */
  | { readonly type: 'squatted'; readonly broker: number; readonly registration: string; readonly key: string }
  | { readonly type: 'squat-gone'; readonly broker: number; readonly registration: string; readonly key: string }

/** One object that is, or was, ours on a broker. Times are those that changes came with. */
export interface ObjectRecord {
  readonly kind: WantedKind
  readonly name: string
  /** Null for what registrations share. */
  readonly registration: string | null
  /** Null: withdrawn. */
  readonly wanted: Wanted | null
  /** Since when exactly this is so. */
  readonly sinceMs: number
  /** Since when it is wanted at all, or is not. */
  readonly turnedMs: number
  /** When a hand was on it last. */
  readonly handAtMs: number | null
  readonly passwordByHandAtMs: number | null
}

export const keyOf = ({ kind, name }: { readonly kind: string; readonly name: string }): string => `${kind}/${name}`
