import { hash } from 'node:crypto'
import { type BrokerObject, MEMBERS_OF, type ObjectKind, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { RegistrationId } from '../domain/ids.ts'
import { stateText } from './canonical.ts'
import { ALL_LISTINGS, isListed, type ListingTurn } from './listing-turn.ts'

interface Expected {
  readonly digest: number
  /** Of the attributes alone; null where the members are read in any case. */
  readonly attributesDigest: number | null
  readonly owner: RegistrationId
}

/** Stands for "switched off, whatever else it is": no state has a negative digest. */
const DISABLED = -1

/**
 * What a broker should hold, as one digest per object: small enough to keep for a whole broker while its pages stream
 * by, in no order. 52 bits of SHA-256 each for the name and for the state.
 */
export class ExpectedState {
  readonly #objects = new Map<ObjectKind, Map<number, Expected>>()
  readonly #attributeNames = new Map<ObjectKind, readonly string[]>()
  readonly #turn: ListingTurn

  /** `turn` says whose members are read; of the others the attributes have to do. */
  constructor(turn: ListingTurn = ALL_LISTINGS) {
    this.#turn = turn
  }

  expect(object: BrokerObject, owner: RegistrationId): void {
    if (!this.#attributeNames.has(object.kind)) this.#attributeNames.set(object.kind, Object.keys(object.attributes))
    const key = hash52(objectKey(object))
    const attributesDigest = this.#isListed(object.kind, key) ? null : this.#digest({ ...object, members: {} })
    const digest = attributesDigest === null ? this.#digest(object) : 0
    this.#of(object.kind).set(key, { digest, attributesDigest, owner })
  }

  /** A withdrawn client username: there until its grace period ends, and switched off. */
  expectDisabled(ref: ObjectRef, owner: RegistrationId): void {
    this.#of(ref.kind).set(hash52(objectKey(ref)), { digest: DISABLED, attributesDigest: null, owner })
  }

  knows(ref: ObjectRef): boolean {
    return this.#of(ref.kind).has(hash52(objectKey(ref)))
  }

  /** Whether the members of this object have to be read before it can be seen. */
  needsMembers(ref: ObjectRef): boolean {
    return MEMBERS_OF[ref.kind].length > 0 && this.#isListed(ref.kind, hash52(objectKey(ref)))
  }

  /** Takes note of an object that was read; what is as expected is crossed off. */
  see(object: BrokerObject): boolean {
    const key = hash52(objectKey(object))
    const expected = this.#of(object.kind).get(key)
    if (expected === undefined || !this.#agrees(object, expected)) return false
    this.#of(object.kind).delete(key)
    return true
  }

  /** Owners of all that was not seen as expected: missing or different. Of one kind, or of all. */
  suspects(kind?: ObjectKind): ReadonlySet<RegistrationId> {
    const kinds = kind === undefined ? [...this.#objects.values()] : [this.#of(kind)]
    return new Set(kinds.flatMap((objects) => [...objects.values()].map(({ owner }) => owner)))
  }

  get size(): number {
    return [...this.#objects.values()].reduce((sum, { size }) => sum + size, 0)
  }

  #agrees(object: BrokerObject, { digest, attributesDigest }: Expected): boolean {
    if (digest === DISABLED) return object.attributes.enabled === false
    if (attributesDigest !== null) return attributesDigest === this.#digest({ ...object, members: {} })
    return digest === this.#digest(object)
  }

  #isListed(kind: ObjectKind, key: number): boolean {
    return MEMBERS_OF[kind].length === 0 || isListed(this.#turn, key / 2 ** 52)
  }

  #of(kind: ObjectKind): Map<number, Expected> {
    let objects = this.#objects.get(kind)
    if (objects === undefined) {
      objects = new Map()
      this.#objects.set(kind, objects)
    }
    return objects
  }

  #digest(object: BrokerObject): number {
    return hash52(stateText(object, this.#attributeNames.get(object.kind) ?? []))
  }
}

function hash52(text: string): number {
  const bytes = hash('sha256', text, 'buffer')
  return bytes.readUIntBE(0, 6) * 16 + ((bytes[6] ?? 0) >> 4)
}
