import type { Problem } from '../domain/errors.ts'
import type { PortalFile, PortalProductVersion } from '../domain/portal-file.ts'
import { versionedId } from './import-changes.ts'
import type { CatalogueState } from './import-state.ts'

/** A part of a portal file, one object of it, that refers to what is stored. Paths are those of the object's own fields. */
export function referenceProblems(current: CatalogueState, part: PortalFile): readonly Problem[] {
  const problems: Problem[] = []
  const refer = (known: ReadonlyMap<string, unknown>, what: string, path: string, id: string | null): void => {
    if (id !== null && !known.has(id)) problems.push({ path, message: `there is no ${what} ${id}` })
  }
  const domains = current.applicationDomains
  for (const mesh of part.eventMeshes) {
    refer(current.environments, 'environment', 'environmentId', mesh.environmentId)
  }
  for (const broker of part.brokers) refer(current.eventMeshes, 'event mesh', 'eventMeshId', broker.eventMeshId)
  for (const eventApi of part.eventApis) {
    refer(domains, 'application domain', 'applicationDomainId', eventApi.applicationDomainId)
  }
  for (const product of part.products) {
    refer(domains, 'application domain', 'applicationDomainId', product.applicationDomainId)
    for (const version of product.versions) {
      for (const [index, { id, version: wanted }] of version.eventApis.entries()) {
        refer(current.eventApis, 'Event API', `eventApis[${index}]`, versionedId(id, wanted))
      }
      for (const [index, id] of version.brokers.entries()) {
        refer(current.brokers, 'broker', `brokers[${index}]`, id)
      }
      problems.push(...duplicateProblems(version))
    }
  }
  return problems
}

function duplicateProblems(version: PortalProductVersion): readonly Problem[] {
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ['eventApis', version.eventApis.map(({ id }) => id)],
    ['brokers', version.brokers],
    ['plans', version.plans.map(({ id }) => id)],
    ['plans', version.plans.map(({ name }) => name)],
  ]
  return lists.flatMap(([field, texts]) =>
    texts.flatMap((text, index) =>
      texts.indexOf(text) === index ? [] : [{ path: `${field}[${index}]`, message: `${text} is in the list already` }],
    ),
  )
}
