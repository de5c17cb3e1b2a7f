import { MSG_VPNS, type ObjectTable } from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'

/** One object on the way: its table and its own identifying values. */
export interface PathStep {
  readonly table: ObjectTable
  readonly key: string
  readonly identity: readonly string[]
}

export interface CollectionPath {
  /** From the message VPN down, without the addressed object. */
  readonly parents: readonly PathStep[]
  readonly table: ObjectTable
  /** Null when the path names the collection. */
  readonly object: PathStep | null
}

const noPath = (path: string) => new SempFailure('INVALID_PATH', `No paths found for ${path}`)

function decodePart(part: string, path: string): string {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    throw noPath(path)
  }
}

/** Parts are split at commas that are not percent-encoded, then decoded. */
function readStep(table: ObjectTable, segment: string, path: string): PathStep {
  const parts = segment.split(',')
  if (parts.length !== table.keys.length || segment === '') throw noPath(path)
  const identity = parts.map((part) => decodePart(part, path))
  return { table, identity, key: identity.length === 1 ? (identity[0] ?? '') : identity.join(',') }
}

/**
 * Reads `/msgVpns/…`, the part of a path behind the API's base path; `more` are collections of a message VPN beside
 * those that can be configured. Throws `INVALID_PATH`.
 */
export function readPath(path: string, more: ReadonlyMap<string, ObjectTable> = new Map()): CollectionPath {
  const segments = path.split('/')
  const parents: PathStep[] = []
  let tables: ReadonlyMap<string, ObjectTable> = ROOTS
  for (let index = 1; index < segments.length; index += 2) {
    const name = segments[index] ?? ''
    const table = tables.get(name) ?? (parents.length === 1 ? more.get(name) : undefined)
    if (table === undefined) throw noPath(path)
    const segment = segments[index + 1]
    if (segment === undefined) return { parents, table, object: null }
    const step = readStep(table, segment, path)
    if (index + 2 >= segments.length) return { parents, table, object: step }
    parents.push(step)
    tables = table.childByCollection
  }
  throw noPath(path)
}

const ROOTS: ReadonlyMap<string, ObjectTable> = new Map([[MSG_VPNS.collection, MSG_VPNS]])

/** `/msgVpns/a/queues/q`: the encoded path of an object, for links. */
export const stepPath = (table: ObjectTable, identity: readonly string[]): string =>
  `/${table.collection}/${identity.map(encodeURIComponent).join(',')}`
