import { z } from 'zod'
import type { PortalApplicationDomain, PortalEnvironment, PortalEventMesh } from '../../domain/portal-file.ts'
import { applicationDomainRevision, environmentRevision, eventMeshRevision } from '../../store/portal-revisions.ts'
import { viewApplicationDomains, viewEnvironments, viewEventMeshes } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { BROKERS, CATALOGUE } from './access.ts'
import { type Collection, collectionRoutes } from './portal-collection.ts'
import { description, name, newId, reference } from './portal-schemas.ts'

const environmentCreate = z.strictObject({ id: newId.optional(), name })
const environmentChange = z.strictObject({ name: name.optional() })
const environments: Collection<
  PortalEnvironment,
  { id: string; name: string },
  z.output<typeof environmentCreate>,
  z.output<typeof environmentChange>
> = {
  segment: 'environments',
  kind: 'environment',
  words: 'environment',
  access: BROKERS,
  schemas: {
    shown: z.strictObject({ id: z.string(), name: z.string() }),
    create: environmentCreate,
    change: environmentChange,
  },
  view: viewEnvironments,
  show: ({ id, name }) => ({ id, name }),
  revision: environmentRevision,
  storedIn: (state) => state.environments,
  build: ({ name }, id) => ({ environments: [{ id, name }] }),
  change: async (stored, body) => ({ environments: [{ ...stored, name: body.name ?? stored.name }] }),
}

const meshCreate = z.strictObject({ id: newId.optional(), name, environmentId: reference })
const meshChange = z.strictObject({ name: name.optional(), environmentId: reference.optional() })
const eventMeshes: Collection<
  PortalEventMesh,
  { id: string; name: string; environmentId: string },
  z.output<typeof meshCreate>,
  z.output<typeof meshChange>
> = {
  segment: 'eventMeshes',
  kind: 'eventMesh',
  words: 'event mesh',
  access: BROKERS,
  schemas: {
    shown: z.strictObject({ id: z.string(), name: z.string(), environmentId: z.string() }),
    create: meshCreate,
    change: meshChange,
  },
  view: viewEventMeshes,
  show: ({ id, name, environmentId }) => ({ id, name, environmentId }),
  revision: eventMeshRevision,
  storedIn: (state) => state.eventMeshes,
  build: ({ name, environmentId }, id) => ({ eventMeshes: [{ id, name, environmentId }] }),
  change: async (stored, body) => ({
    eventMeshes: [
      { ...stored, name: body.name ?? stored.name, environmentId: body.environmentId ?? stored.environmentId },
    ],
  }),
}

const domainCreate = z.strictObject({ id: newId.optional(), name, description: description.default('') })
const domainChange = z.strictObject({ name: name.optional(), description: description.optional() })
const applicationDomains: Collection<
  PortalApplicationDomain,
  { id: string; name: string; description: string },
  z.output<typeof domainCreate>,
  z.output<typeof domainChange>
> = {
  segment: 'applicationDomains',
  kind: 'applicationDomain',
  words: 'application domain',
  access: CATALOGUE,
  schemas: {
    shown: z.strictObject({ id: z.string(), name: z.string(), description: z.string() }),
    create: domainCreate,
    change: domainChange,
  },
  view: viewApplicationDomains,
  show: ({ id, name, description }) => ({ id, name, description }),
  revision: applicationDomainRevision,
  storedIn: (state) => state.applicationDomains,
  build: ({ name, description }, id) => ({ applicationDomains: [{ id, name, description }] }),
  change: async (stored, body) => ({
    applicationDomains: [
      { ...stored, name: body.name ?? stored.name, description: body.description ?? stored.description },
    ],
  }),
}

/** What brokers and products are put into. */
export async function placeRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  collectionRoutes(app, dependencies, environments)
  collectionRoutes(app, dependencies, eventMeshes)
  collectionRoutes(app, dependencies, applicationDomains)
}
