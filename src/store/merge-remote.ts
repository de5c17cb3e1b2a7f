import type { PortalFile, PortalProduct } from '../domain/portal-file.ts'
import type { RemoteCatalogue } from '../domain/remote-catalogue.ts'
import { versionedId } from './import-changes.ts'
import { hasUnstorableText } from './import-content.ts'
import type { CatalogueState } from './import-state.ts'
import { type Merging, productName, registrationName, unreadNames } from './merge-remote-names.ts'
import { mergeProducts, plansInUse } from './merge-remote-products.ts'
import { mergeRegistrations } from './merge-remote-registrations.ts'

/** A remote catalogue as a portal file that can be imported here whatever the remote says. */
export interface MergedCatalogue {
  /** Without environments, meshes and brokers, which are declared here. */
  readonly file: PortalFile
  /** What is stored and may be taken away when the file lacks it. */
  readonly removable: CatalogueState
  readonly warnings: readonly string[]
}

/**
 * Pure. What could not be read is filled in with what is stored, what cannot be stored is left out with a warning, so
 * that one odd object holds up nothing else.
 */
export function mergeRemote(current: CatalogueState, remote: RemoteCatalogue, origin: string): MergedCatalogue {
  const warnings = [...remote.warnings]
  const merging: Merging = { current, unread: unreadNames(remote.unread), warn: (warning) => warnings.push(warning) }
  const storable = <Item extends object>(items: readonly Item[], nameOf: (item: Item) => string): readonly Item[] =>
    items.filter((item) => {
      if (!hasUnstorableText(item)) return true
      merging.warn(`${nameOf(item)} holds text that cannot be stored; what is stored of it stays.`)
      merging.unread.add(nameOf(item))
      return false
    })
  const eventApis = storable(remote.eventApis, ({ id, version }) => `Event API ${id} ${version}`)
  const givenProducts = storable(remote.products, ({ id }) => productName(id))
  const givenRegistrations = storable(remote.registrations, ({ id }) => registrationName(id))
  const eventApiKeys = new Set([
    ...current.eventApis.keys(),
    ...eventApis.map(({ id, version }) => versionedId(id, version)),
  ])
  const products = mergeProducts(merging, givenProducts, {
    eventApiKeys,
    plansInUse: plansInUse(current, givenRegistrations),
  })
  const registrations = mergeRegistrations(merging, givenRegistrations, products)
  const file: PortalFile = {
    file: `The catalogue of ${origin}`,
    environments: [],
    eventMeshes: [],
    brokers: [],
    applicationDomains: storable(remote.applicationDomains, ({ id }) => `Application domain ${id}`),
    eventApis,
    products,
    registrations,
    warnings: [],
  }
  return { file, removable: removableOf(current, products), warnings: [...new Set(warnings)] }
}

const NOTHING: ReadonlyMap<string, never> = new Map<string, never>()

/** What is declared here stays, and what something that stays rests on. */
function removableOf(current: CatalogueState, products: readonly PortalProduct[]): CatalogueState {
  const named = new Set(
    products.flatMap(({ versions }) =>
      versions.flatMap(({ eventApis }) => eventApis.map(({ id, version }) => versionedId(id, version))),
    ),
  )
  const domainsOfEventApis = new Set([...current.eventApis.values()].map((eventApi) => eventApi.applicationDomainId))
  return {
    ...current,
    environments: NOTHING,
    eventMeshes: NOTHING,
    brokers: NOTHING,
    applicationDomains: kept(current.applicationDomains, (id) => !domainsOfEventApis.has(id)),
    eventApis: kept(current.eventApis, (key) => !named.has(key)),
  }
}

const kept = <Value>(map: ReadonlyMap<string, Value>, stays: (key: string) => boolean): ReadonlyMap<string, Value> =>
  new Map([...map].filter(([key]) => stays(key)))
