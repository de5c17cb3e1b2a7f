import { hash } from 'node:crypto'
import { type BrokerObject, type ObjectKind, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { RegistrationId } from '../domain/ids.ts'
import { stateText } from './canonical.ts'

interface Expected {
  readonly digest: number
  readonly owner: RegistrationId
}

/** Stands for "switched off, whatever else it is": no state has a negative digest. */
const DISABLED = -1

/**
 * What a broker should hold, as one digest per object: small enough to keep for a whole broker while its pages stream
 * by, in no order. 52 bits of SHA-256 each for the name and for the state.
 */
export class ExpectedState {
  readonly #objects = new Map<number, Expected>()
  readonly #attributeNames = new Map<ObjectKind, readonly string[]>()

  expect(object: BrokerObject, owner: RegistrationId): void {
    if (!this.#attributeNames.has(object.kind)) this.#attributeNames.set(object.kind, Object.keys(object.attributes))
    this.#objects.set(hash52(objectKey(object)), { digest: this.#digest(object), owner })
  }

  /** A withdrawn client username: there until its grace period ends, and switched off. */
  expectDisabled(ref: ObjectRef, owner: RegistrationId): void {
    this.#objects.set(hash52(objectKey(ref)), { digest: DISABLED, owner })
  }

  knows(ref: ObjectRef): boolean {
    return this.#objects.has(hash52(objectKey(ref)))
  }

  /** Takes note of an object that was read; what is as expected is crossed off. */
  see(object: BrokerObject): boolean {
    const key = hash52(objectKey(object))
    const expected = this.#objects.get(key)
    if (expected === undefined) return false
    if (expected.digest === DISABLED ? object.attributes.enabled !== false : expected.digest !== this.#digest(object)) {
      return false
    }
    this.#objects.delete(key)
    return true
  }

  /** Owners of all that was not seen as expected: missing or different. */
  suspects(): ReadonlySet<RegistrationId> {
    return new Set([...this.#objects.values()].map(({ owner }) => owner))
  }

  get size(): number {
    return this.#objects.size
  }

  #digest(object: BrokerObject): number {
    return hash52(stateText(object, this.#attributeNames.get(object.kind) ?? []))
  }
}

function hash52(text: string): number {
  const bytes = hash('sha256', text, 'buffer')
  return bytes.readUIntBE(0, 6) * 16 + ((bytes[6] ?? 0) >> 4)
}
