import type { Secret } from '../domain/secret.ts'
import type { Values } from './attribute.ts'
import type { ObjectTable } from './object-tables.ts'
import { hashText } from './seeded-random.ts'

export interface StoredObject {
  /** The own identifying values, joined with commas. */
  readonly key: string
  /** The place in the collection: a hash, because a broker's collections have no order to rely on. */
  readonly order: number
  /** Readable values, without those that the path gives. Replaced, never changed in place. */
  values: Readonly<Values>
  /** Write-only values. */
  secrets: Readonly<Record<string, Secret>> | null
  /** Child collections by path segment, made when first written to: thousands of objects never have any. */
  children: Map<string, ObjectCollection> | null
}

/**
 * One collection: found by key through a map, paged by binary search in an array sorted by hash. An object that stays
 * is delivered exactly once while others come and go.
 */
export class ObjectCollection {
  readonly table: ObjectTable
  readonly #seed: number
  readonly #byKey = new Map<string, StoredObject>()
  readonly #sorted: StoredObject[] = []

  constructor(table: ObjectTable, seed: number) {
    this.table = table
    this.#seed = seed
  }

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): StoredObject | undefined {
    return this.#byKey.get(key)
  }

  keys(): IterableIterator<string> {
    return this.#byKey.keys()
  }

  objects(): IterableIterator<StoredObject> {
    return this.#byKey.values()
  }

  /** Adds an object that is not there yet. */
  add(key: string, values: Values): StoredObject {
    const object: StoredObject = { key, order: hashText(key, this.#seed), values, secrets: null, children: null }
    this.#byKey.set(key, object)
    this.#sorted.splice(this.indexAfter(object.order, key), 0, object)
    return object
  }

  delete(key: string): boolean {
    const object = this.#byKey.get(key)
    if (object === undefined) return false
    this.#byKey.delete(key)
    this.#sorted.splice(this.indexAfter(object.order, key) - 1, 1)
    return true
  }

  clear(): void {
    this.#byKey.clear()
    this.#sorted.length = 0
  }

  at(index: number): StoredObject | undefined {
    return this.#sorted[index]
  }

  /** The index of the first object behind the given place. */
  indexAfter(order: number, key: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const object = this.#sorted[middle]
      if (object !== undefined && (object.order < order || (object.order === order && object.key <= key))) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
