import { conflict, notFound } from '../domain/refusals.ts'
import { versionedId } from './import-changes.ts'
import { noRemovals, type Removed } from './import-prune.ts'
import type { CatalogueState, StoredProductVersion } from './import-state.ts'

/** One object to remove. */
export type RemovalTarget =
  | { readonly kind: 'environment' | 'eventMesh' | 'applicationDomain' | 'broker' | 'product'; readonly id: string }
  | { readonly kind: 'eventApi' | 'productVersion'; readonly id: string; readonly version: string }

/** What removing the object takes away. Throws NOT_FOUND, or CONFLICT while something stored rests on it. */
export function removalOf(current: CatalogueState, target: RemovalTarget): Removed {
  const removed = (part: Partial<Removed['removals']>, touched: Partial<Removed['touched']> = {}): Removed => ({
    changes: [{ type: 'delete', kind: target.kind, id: idOf(target), attributes: [] }],
    removals: { ...noRemovals.removals, ...part },
    touched: { ...noRemovals.touched, ...touched },
  })
  switch (target.kind) {
    case 'environment':
      known(current.environments, 'environment', target.id)
      unused('environment', target.id, 'event meshes', usersOf(current.eventMeshes, 'environmentId', target.id))
      return removed({ environments: [target.id] })
    case 'eventMesh':
      known(current.eventMeshes, 'event mesh', target.id)
      unused('event mesh', target.id, 'brokers', usersOf(current.brokers, 'eventMeshId', target.id))
      return removed({ eventMeshes: [target.id] })
    case 'applicationDomain':
      known(current.applicationDomains, 'application domain', target.id)
      unused('application domain', target.id, 'Event APIs or products', [
        ...usersOf(current.eventApis, 'applicationDomainId', target.id),
        ...usersOf(current.products, 'applicationDomainId', target.id),
      ])
      return removed({ applicationDomains: [target.id] })
    case 'broker':
      known(current.brokers, 'broker', target.id)
      unused(
        'broker',
        target.id,
        'product versions',
        versionsWith(current, ({ brokers }) => brokers.some((id) => id === target.id)),
      )
      refuseOwned(current, target.id)
      return removed({ brokers: [target.id] })
    case 'eventApi': {
      const id = versionedId(target.id, target.version)
      known(current.eventApis, 'Event API version', id)
      const uses = ({ eventApis }: StoredProductVersion) =>
        eventApis.some((each) => versionedId(each.id, each.version) === id)
      unused('Event API version', id, 'product versions', versionsWith(current, uses))
      return removed({ eventApis: [{ id: target.id, version: target.version }] })
    }
    case 'product':
      return removed(...productRemoval(current, target.id))
    case 'productVersion':
      return removed(...versionRemoval(current, target))
    default: {
      const unreachable: never = target
      return unreachable
    }
  }
}

const idOf = (target: RemovalTarget): string =>
  'version' in target ? versionedId(target.id, target.version) : target.id

function known(objects: ReadonlyMap<string, unknown>, kind: string, id: string): void {
  if (!objects.has(id)) throw notFound(kind, id)
}

const SHOWN = 3

function unused(kind: string, id: string, what: string, users: readonly string[]): void {
  if (users.length === 0) return
  const rest = users.length > SHOWN ? ` and ${users.length - SHOWN} more` : ''
  throw conflict(
    `The ${kind} ${id} still has ${what}: ${users.slice(0, SHOWN).join(', ')}${rest}.`,
    'Change them first.',
  )
}

/** What is on its message VPN would stay there, forgotten. */
function refuseOwned(current: CatalogueState, id: string): void {
  const owned = current.brokers.get(id)?.ownedObjects ?? 0
  if (owned === 0) return
  const hint = 'Remove it from the product versions, and try again when the objects are withdrawn.'
  throw conflict(`Broker ${id} still has ${owned} object${owned === 1 ? '' : 's'} of registrations on it.`, hint)
}

function usersOf<Key extends string>(
  objects: ReadonlyMap<string, { readonly [Name in Key]: string | null }>,
  key: Key,
  id: string,
): readonly string[] {
  return [...objects].flatMap(([user, object]) => (object[key] === id ? [user] : []))
}

function versionsWith(current: CatalogueState, uses: (version: StoredProductVersion) => boolean): readonly string[] {
  return [...current.products.values()].flatMap((product) =>
    [...product.versions.values()].filter(uses).map(({ version }) => versionedId(product.id, version)),
  )
}

type Parts = [Partial<Removed['removals']>, Partial<Removed['touched']>]

/** A version that an access request names stays, as DELETED, and its product with it. */
function productRemoval(current: CatalogueState, id: string): Parts {
  const product = current.products.get(id)
  if (product === undefined) throw notFound('product', id)
  const versions = [...product.versions.values()]
  for (const version of versions) refusePublished(id, version)
  const named = versions.filter(({ version }) => isNamed(current, id, version))
  if (named.length === 0) return [{ products: [id] }, {}]
  const gone = versions.filter((each) => !named.includes(each)).map(({ version }) => ({ id, version }))
  const deleted = named.filter(({ state }) => state !== 'DELETED').map(({ version }) => ({ id, version }))
  return [{ productVersions: gone, deletedVersions: deleted }, { productVersions: deleted }]
}

function versionRemoval(
  current: CatalogueState,
  { id, version }: { readonly id: string; readonly version: string },
): Parts {
  const stored = current.products.get(id)?.versions.get(version)
  if (stored === undefined) throw notFound('product version', versionedId(id, version))
  refusePublished(id, stored)
  const key = { id, version }
  if (!isNamed(current, id, version)) return [{ productVersions: [key] }, {}]
  return [{ deletedVersions: [key] }, { productVersions: [key] }]
}

function refusePublished(id: string, { version, state }: StoredProductVersion): void {
  if (state !== 'RELEASED' && state !== 'DEPRECATED') return
  throw conflict(`Version ${version} of product ${id} is in state ${state}.`, 'Retire it first.')
}

const isNamed = (current: CatalogueState, id: string, version: string): boolean =>
  [...current.registrations.values()].some(({ accessRequests }) =>
    [...accessRequests.values()].some((each) => each.productId === id && each.productVersion === version),
  )
