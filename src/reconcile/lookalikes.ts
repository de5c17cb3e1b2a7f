import type { BrokerObject, ObjectRef } from '../domain/broker-object.ts'
import { CLIENT_PROFILES } from './client-profiles.ts'
import { allDone, concurrently } from './concurrently.ts'
import type { BrokerPort } from './ports.ts'

const OUR_PROFILES: ReadonlySet<string> = new Set(CLIENT_PROFILES.map(({ name }) => name))
const OUR_QUEUE = /^keymesh-[a-z2-7]{26}$/

/**
 * True when an object looks as if a Keymesh had made it: a client username with one of the shared client profiles, or a
 * queue whose name is made like ours. When it is not in the ledger, it was left by a store that is lost, or another
 * Keymesh works on the same message VPN.
 */
export function isLookalike({ kind, name, attributes }: BrokerObject): boolean {
  switch (kind) {
    case 'clientUsername':
      return OUR_PROFILES.has(String(attributes.clientProfileName))
    case 'queue':
      return OUR_QUEUE.test(name)
    case 'aclProfile':
    case 'clientProfile':
      return false
    default: {
      const unreachable: never = kind
      return unreachable
    }
  }
}

/** Of these objects, those that the ledger does not know. */
export type NotInLedger = (refs: readonly ObjectRef[]) => Promise<readonly ObjectRef[]>

/**
 * Objects of the broker that look like ours and are not in the ledger, in the order of kind and name. An ACL profile
 * counts when only such a client username uses it.
 */
export async function findOrphans(
  broker: BrokerPort,
  notInLedger: NotInLedger,
  signal?: AbortSignal,
): Promise<readonly ObjectRef[]> {
  await broker.facts(signal)
  const orphans: ObjectRef[] = []
  const profiles = new Set<string>()
  const usedByOthers = new Set<string>()
  const read = (kind: 'clientUsername' | 'queue'): Promise<void> =>
    concurrently(broker.list(kind, signal), 2, async (page) => {
      const candidates = page.filter(isLookalike)
      const found = candidates.length === 0 ? [] : await notInLedger(candidates.map(({ name }) => ({ kind, name })))
      const names = new Set(found.map(({ name }) => name))
      orphans.push(...found)
      if (kind === 'queue') return
      for (const { name, attributes } of page) {
        ;(names.has(name) ? profiles : usedByOthers).add(String(attributes.aclProfileName))
      }
    })
  await allDone([read('clientUsername'), read('queue')])
  const unused = [...profiles].filter((name) => name !== 'default' && !usedByOthers.has(name))
  if (unused.length > 0) {
    orphans.push(...(await notInLedger(unused.map((name): ObjectRef => ({ kind: 'aclProfile', name })))))
  }
  return orphans.sort((a, b) => compare(a.kind, b.kind) || compare(a.name, b.name))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
