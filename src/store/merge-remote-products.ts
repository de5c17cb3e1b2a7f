import type { PortalProduct, PortalProductVersion, PortalRegistration } from '../domain/portal-file.ts'
import { versionedId } from './import-changes.ts'
import type { CatalogueState, StoredProduct } from './import-state.ts'
import { type Merging, productName, versionName } from './merge-remote-names.ts'

/** Plan ids by product version, of every request that is or was made for it. */
export function plansInUse(
  current: CatalogueState,
  given: readonly PortalRegistration[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const plans = new Map<string, Set<string>>()
  const requests = [
    ...[...current.registrations.values()].flatMap(({ accessRequests }) => [...accessRequests.values()]),
    ...given.flatMap(({ accessRequests }) => accessRequests),
  ]
  for (const { productId, productVersion, planId } of requests) {
    const key = versionedId(productId, productVersion)
    plans.set(key, (plans.get(key) ?? new Set()).add(planId))
  }
  return plans
}

export interface ProductRules {
  /** Of Event APIs that are stored or given. */
  readonly eventApiKeys: ReadonlySet<string>
  readonly plansInUse: ReadonlyMap<string, ReadonlySet<string>>
}

export function mergeProducts(
  merging: Merging,
  given: readonly PortalProduct[],
  rules: ProductRules,
): readonly PortalProduct[] {
  const { current } = merging
  const products: PortalProduct[] = []
  const seen = new Set<string>()
  for (const product of given) {
    seen.add(product.id)
    const stored = current.products.get(product.id)
    const versions = product.versions.map((version) => completed(merging, product.id, version, rules))
    products.push({ ...product, versions: [...versions, ...keptVersions(merging, stored, versions)] })
  }
  for (const stored of current.products.values()) {
    if (seen.has(stored.id)) continue
    const versions = keptVersions(merging, stored, [])
    if (versions.length > 0) products.push({ ...stored, versions })
  }
  return products
}

/** With the brokers and Event APIs that are here, and with every plan that a request has. */
function completed(
  { current, warn }: Merging,
  productId: string,
  version: PortalProductVersion,
  { eventApiKeys, plansInUse: used }: ProductRules,
): PortalProductVersion {
  const name = versionName(productId, version.version)
  const eventApis = version.eventApis.filter((eventApi) => {
    const isHere = eventApiKeys.has(versionedId(eventApi.id, eventApi.version))
    if (!isHere)
      warn(`${name} has the Event API ${eventApi.id} ${eventApi.version}, which is not here; it was left out.`)
    return isHere
  })
  const key = versionedId(productId, version.version)
  const storedPlans = current.products.get(productId)?.versions.get(version.version)?.plans ?? []
  const kept = storedPlans.filter(
    ({ id }) => used.get(key)?.has(id) === true && !version.plans.some((plan) => plan.id === id),
  )
  for (const { id } of kept) warn(`${name} has lost the plan ${id}, which an access request has; it stays as stored.`)
  return {
    ...version,
    eventApis,
    plans: [...version.plans, ...kept],
    brokers: version.brokers.filter((id) => current.brokers.has(id)),
  }
}

function keptVersions(
  { unread }: Merging,
  stored: StoredProduct | undefined,
  given: readonly PortalProductVersion[],
): readonly PortalProductVersion[] {
  if (stored === undefined) return []
  return [...stored.versions.values()].flatMap((version) => {
    const { state } = version
    const isUnread = unread.has(productName(stored.id)) || unread.has(versionName(stored.id, version.version))
    if (state === 'DELETED' || !isUnread || given.some((each) => each.version === version.version)) return []
    return [{ ...version, state }]
  })
}
