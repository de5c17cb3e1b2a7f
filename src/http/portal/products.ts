import { z } from 'zod'
import { productId } from '../../domain/ids.ts'
import type { StoredProduct } from '../../store/import-state.ts'
import { productRevision } from '../../store/portal-revisions.ts'
import { viewProducts } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { CATALOGUE } from './access.ts'
import { type Collection, collectionRoutes } from './portal-collection.ts'
import { attributes, description, name, newId, reference, shownAttributes } from './portal-schemas.ts'

const create = z.strictObject({
  id: newId.optional(),
  name: name.optional(),
  description: description.default(''),
  applicationDomainId: reference.nullable().default(null),
  shared: z.boolean().default(false),
  attributes: attributes.default([]),
})
const change = z.strictObject({
  name: name.optional(),
  description: description.optional(),
  applicationDomainId: reference.nullable().optional(),
  shared: z.boolean().optional(),
  attributes: attributes.optional().describe('All of them: what is not in the list is removed.'),
})
const shown = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    applicationDomainId: z.string().nullable(),
    shared: z.boolean(),
    attributes: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    versions: z.array(z.strictObject({ version: z.string(), state: z.string(), public: z.boolean() })),
  })
  .meta({ id: 'PortalProduct' })

const products: Collection<StoredProduct, z.output<typeof shown>, z.output<typeof create>, z.output<typeof change>> = {
  segment: 'products',
  kind: 'product',
  words: 'product',
  access: CATALOGUE,
  schemas: { shown, create, change },
  view: viewProducts,
  show: ({ versions, attributes, id, name, description, applicationDomainId, shared }) => ({
    id,
    name,
    description,
    applicationDomainId,
    shared,
    attributes: shownAttributes(attributes),
    versions: [...versions.values()].map((each) => ({
      version: each.version,
      state: each.state,
      public: each.public,
    })),
  }),
  revision: productRevision,
  storedIn: (state) => state.products,
  build: (body, id) => ({ products: [{ ...body, id: productId(id), name: body.name ?? id, versions: [] }] }),
  change: async ({ versions: _versions, ...stored }, body) => ({
    products: [
      {
        ...stored,
        name: body.name ?? stored.name,
        description: body.description ?? stored.description,
        applicationDomainId:
          body.applicationDomainId === undefined ? stored.applicationDomainId : body.applicationDomainId,
        shared: body.shared ?? stored.shared,
        attributes: body.attributes ?? stored.attributes,
        versions: [],
      },
    ],
  }),
}

export async function productRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  collectionRoutes(app, dependencies, products)
}
