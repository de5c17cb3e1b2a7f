import { type BrokerObject, MEMBERS_OF, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import type { Observed } from './diff.ts'
import type { BrokerPort } from './ports.ts'

/** Point reads of the named objects with their members, all at once; the adapter bounds the concurrency. */
export async function observe(broker: BrokerPort, refs: readonly ObjectRef[], signal?: AbortSignal): Promise<Observed> {
  const objects = await Promise.all(refs.map((ref) => observeOne(broker, ref, signal)))
  return new Map(refs.map((ref, index) => [objectKey(ref), objects[index] ?? null]))
}

async function observeOne(broker: BrokerPort, ref: ObjectRef, signal?: AbortSignal): Promise<BrokerObject | null> {
  const object = await broker.get(ref, signal)
  if (object === null || MEMBERS_OF[ref.kind].length === 0) return object
  const members = await broker.members(ref, signal)
  return members === null ? null : { ...object, members }
}

/** Messages held by the queues that the grace period no longer protects; read only for those. */
export async function readQueuedMessages(
  broker: BrokerPort,
  queueNames: readonly string[],
  signal?: AbortSignal,
): Promise<Readonly<Record<string, number | null>>> {
  const counts = await Promise.all(queueNames.map((name) => broker.queuedMessages(name, signal)))
  return Object.fromEntries(queueNames.map((name, index) => [name, counts[index] ?? null]))
}
