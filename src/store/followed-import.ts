import type { Problem } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import { type FollowedCatalogue, followsRemote } from './followed-catalogues.ts'
import type { ImportRemovals } from './import-plan.ts'
import type { CatalogueState } from './import-state.ts'

// What may be declared here of an account that follows another service's catalogue: brokers, event meshes, environments.

const REMOTE_SECTIONS = ['applicationDomains', 'eventApis', 'products', 'registrations'] as const

/** Throws CONFLICT when the file, or the change, holds what comes from the other service. */
export function refuseRemoteSections(followed: FollowedCatalogue, file: Partial<PortalFile>): void {
  if (REMOTE_SECTIONS.some((section) => (file[section]?.length ?? 0) > 0)) throw followsRemote(followed)
}

const NOTHING: ReadonlyMap<string, never> = new Map<string, never>()

/** What an import may remove: what comes from the other service is not in the file and stays. */
export const declaredHere = (current: CatalogueState): CatalogueState => ({
  ...current,
  applicationDomains: NOTHING,
  eventApis: NOTHING,
  products: NOTHING,
  registrations: NOTHING,
})

/** A broker that is declared without messaging settings keeps those that the other service gave it. */
export function withRemoteMessaging(
  { messagingOf }: FollowedCatalogue,
  current: CatalogueState,
  file: PortalFile,
): PortalFile {
  const brokers = file.brokers.map((broker) => {
    const kept = messagingOf.includes(broker.id) ? (current.brokers.get(broker.id)?.messaging ?? null) : null
    return broker.messaging === null && kept !== null ? { ...broker, messaging: kept } : broker
  })
  return { ...file, brokers }
}

/** Brokers that the file gives messaging settings of their own. */
export const ownMessagingOf = ({ brokers }: Pick<PortalFile, 'brokers'>): readonly string[] =>
  brokers.filter(({ messaging }) => messaging !== null).map(({ id }) => id)

/** The other service still has products on a broker that is to go. */
export function removedBrokersInUse(
  followed: FollowedCatalogue,
  current: CatalogueState,
  { brokers }: Pick<ImportRemovals, 'brokers'>,
): readonly Problem[] {
  const versions = [...current.products.values()].flatMap((product) => [...product.versions.values()])
  const used = new Set<string>(versions.flatMap((version) => version.brokers))
  return brokers
    .filter((id) => used.has(id))
    .map((id) => ({
      path: 'brokers',
      message: `broker \`${id}\` cannot be removed while products of ${followed.origin} are on it`,
    }))
}
