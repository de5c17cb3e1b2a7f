import { type BrokerObject, MEMBERS_OF, type Members } from '../domain/broker-object.ts'

/** The same state has one form: attribute keys and members sorted, members unique, every member kind present. */
export function canonical(object: BrokerObject): BrokerObject {
  const attributes = Object.fromEntries(Object.entries(object.attributes).sort(([a], [b]) => (a < b ? -1 : 1)))
  return { kind: object.kind, name: object.name, attributes, members: canonicalMembers(object) }
}

function canonicalMembers(object: BrokerObject): Members {
  const entries = MEMBERS_OF[object.kind].map((kind) => [kind, sortedUnique(object.members[kind] ?? [])] as const)
  return Object.fromEntries(entries)
}

export const sortedUnique = (items: readonly string[]): readonly string[] => [...new Set(items)].sort()

/**
 * One text for one state, of the attributes that `desired` sets: two objects agree where it matters exactly when their
 * texts are equal.
 */
export function stateText(object: BrokerObject, attributeNames: readonly string[]): string {
  const attributes = attributeNames.map((name) => object.attributes[name] ?? null)
  const members = MEMBERS_OF[object.kind].map((kind) => sortedUnique(object.members[kind] ?? []))
  return JSON.stringify([attributes, members])
}
