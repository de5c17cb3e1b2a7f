import type { ObjectCollection, StoredObject } from './object-collection.ts'
import { hashFraction } from './seeded-random.ts'
import { SempFailure } from './semp-errors.ts'

/**
 * A broker may answer with fewer objects than asked for, or none, and still have more. How often, from 0 to 1. Which
 * pages these are follows from the seed and the position alone, so that a run repeats.
 */
export interface PagingOptions {
  readonly shortPageRate: number
  readonly emptyPageRate: number
}
export const FULL_PAGES: PagingOptions = { shortPageRate: 0, emptyPageRate: 0 }
export const UNEVEN_PAGES: PagingOptions = { shortPageRate: 0.1, emptyPageRate: 0.05 }

export interface Page {
  readonly objects: readonly StoredObject[]
  readonly cursor: string | null
}

interface Place {
  readonly order: number
  readonly key: string
  /** The page before this one was empty, so this one is not. */
  readonly afterEmpty: boolean
}

const START: Place = { order: -1, key: '', afterEmpty: false }

const writeCursor = (place: Place): string =>
  Buffer.from(`${place.afterEmpty ? 'e' : 'p'}${place.order}:${place.key}`, 'utf8').toString('base64url')

function readCursor(cursor: string): Place {
  const decoded = Buffer.from(cursor, 'base64url').toString('utf8')
  const [, mark, order, key] = /^([ep])(-1|\d+):(.*)$/s.exec(decoded) ?? []
  if (mark === undefined || order === undefined || key === undefined) {
    throw new SempFailure('INVALID_PARAMETER', 'The cursor query parameter is not one that this broker gave.')
  }
  return { order: Number(order), key, afterEmpty: mark === 'e' }
}

export function readPage(
  collection: ObjectCollection | undefined,
  request: { readonly count: number; readonly cursor: string | null },
  matches: ((object: StoredObject) => boolean) | null,
  options: PagingOptions & { readonly seed: number },
): Page {
  const place = request.cursor === null ? START : readCursor(request.cursor)
  if (collection === undefined || collection.size === 0) return { objects: [], cursor: null }
  const chance = hashFraction(`${collection.table.collection}:${place.order}:${request.count}`, options.seed)
  const isEmpty = !place.afterEmpty && chance < options.emptyPageRate
  if (isEmpty) return { objects: [], cursor: writeCursor({ ...place, afterEmpty: true }) }
  const isShort = chance < options.emptyPageRate + options.shortPageRate
  const limit = isShort ? Math.max(1, Math.floor(request.count / 2)) : request.count
  const objects: StoredObject[] = []
  let index = collection.indexAfter(place.order, place.key)
  let last: StoredObject | undefined
  for (; objects.length < limit; index += 1) {
    const object = collection.at(index)
    if (object === undefined) return { objects, cursor: null }
    last = object
    if (matches === null || matches(object)) objects.push(object)
  }
  const hasMore = collection.at(index) !== undefined
  if (!hasMore || last === undefined) return { objects, cursor: null }
  return { objects, cursor: writeCursor({ order: last.order, key: last.key, afterEmpty: false }) }
}
