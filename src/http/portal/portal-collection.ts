import type { FastifyReply, FastifyRequest, FastifyTypeProviderDefault } from 'fastify'
import { z } from 'zod'
import type { PortalFile } from '../../domain/portal-file.ts'
import { conflict, notFound } from '../../domain/refusals.ts'
import type { Database } from '../../store/database.ts'
import type { CatalogueState } from '../../store/import-state.ts'
import { editPortal, type PortalEdit, type StoredCatalogue } from '../../store/portal-change.ts'
import type { Listed, Selection } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { enqueueRaised } from '../operations/enqueueing.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { BASE, PORTAL, type PortalAccess } from './access.ts'
import { GENERATED_ID_LENGTH, idParameter } from './portal-schemas.ts'

/** Objects that have an id of their own: how they are read, shown, made and changed. */
export interface Collection<Stored, Shown, Create extends { readonly id?: string | undefined }, Change> {
  /** Of the path. */
  readonly segment: string
  readonly kind: 'environment' | 'eventMesh' | 'applicationDomain' | 'broker' | 'product'
  /** Such as `event mesh`. */
  readonly words: string
  readonly access: PortalAccess
  readonly schemas: {
    readonly shown: z.ZodType<Shown>
    readonly create: z.ZodType<Create>
    readonly change: z.ZodType<Change>
  }
  readonly view: (db: Database, accountId: string, selection: Selection) => Promise<Listed<Stored>>
  readonly show: (stored: Stored) => Shown
  readonly revision: (stored: Stored) => string
  readonly storedIn: (state: CatalogueState) => ReadonlyMap<string, Stored>
  /** As a portal file would declare the new one. */
  readonly build: (body: Create, id: string) => Partial<PortalFile>
  /** As a portal file would declare the changed one. */
  readonly change: (stored: Stored, body: Change, catalogue: StoredCatalogue) => Promise<Partial<PortalFile>>
}

const params = z.strictObject({ id: idParameter })
interface ById {
  readonly Params: z.output<typeof params>
}

/** The five routes of a collection. Bodies are typed by the collection's schemas, which the routes validate with. */
export function collectionRoutes<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  app: App,
  dependencies: HttpDependencies,
  collection: Collection<Stored, Shown, Create, Change>,
): void {
  const plain = app.withTypeProvider<FastifyTypeProviderDefault>()
  readRoutes(plain, dependencies, collection)
  createRoute(plain, dependencies, collection)
  changeRoute(plain, dependencies, collection)
  removeRoute(plain, dependencies, collection)
}

type PlainApp = ReturnType<App['withTypeProvider']>

function readRoutes<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  app: PlainApp,
  { db }: HttpDependencies,
  collection: Collection<Stored, Shown, Create, Change>,
): void {
  const { segment, words, access, schemas, view, show, revision } = collection
  app.get<{ Querystring: z.output<typeof pageQuery> }>(
    `${BASE}/${segment}`,
    {
      config: { access: access.read },
      schema: {
        tags: PORTAL,
        summary: `List: ${words}`,
        querystring: pageQuery,
        response: { 200: listOf(schemas.shown) },
      },
    },
    async ({ principal, query }) => {
      const { items, count } = await view(db, principal.accountId, limitOf(query))
      return paginate(query, items.map(show), count)
    },
  )
  app.get<ById>(
    `${BASE}/${segment}/:id`,
    {
      config: { access: access.read },
      schema: { tags: PORTAL, summary: `Read: ${words}`, params, response: { 200: oneOf(schemas.shown) } },
    },
    async ({ principal, params: { id } }, reply) => {
      const [stored] = (await view(db, principal.accountId, { id })).items
      if (stored === undefined) throw notFound(words, id)
      setEtag(reply, revision(stored))
      return one(show(stored))
    },
  )
}

function createRoute<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  app: PlainApp,
  dependencies: HttpDependencies,
  collection: Collection<Stored, Shown, Create, Change>,
): void {
  const { segment, kind, words, access, schemas, build, storedIn } = collection
  app.post(
    `${BASE}/${segment}`,
    {
      config: { access: access.create, audit: `${kind}.create` },
      schema: {
        tags: PORTAL,
        summary: `Create: ${words}`,
        body: schemas.create,
        response: { 201: oneOf(schemas.shown) },
      },
    },
    async (request, reply) => {
      const body = request.body as Create
      const id = body.id ?? dependencies.random.token(GENERATED_ID_LENGTH)
      request.auditSubject = `${words} ${id}`
      await edit(dependencies, request, async ({ state }) => {
        if (storedIn(state).has(id)) throw conflict(`There is a ${words} ${id} already.`)
        return { put: build(body, id) }
      })
      reply.code(201)
      return await shown(dependencies, request, reply, collection, id)
    },
  )
}

function changeRoute<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  app: PlainApp,
  dependencies: HttpDependencies,
  collection: Collection<Stored, Shown, Create, Change>,
): void {
  const { segment, kind, words, access, schemas, change, storedIn, revision } = collection
  app.patch<ById>(
    `${BASE}/${segment}/:id`,
    {
      config: { access: access.change, audit: `${kind}.change` },
      schema: {
        tags: PORTAL,
        summary: `Change: ${words}`,
        description: 'What is left out stays; a nested object is replaced as a whole.',
        params,
        body: schemas.change,
        response: { 200: oneOf(schemas.shown) },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const check = ifMatch(request.headers['if-match'], words, id)
      const changeStored = async (catalogue: StoredCatalogue) => {
        const stored = storedIn(catalogue.state).get(id)
        if (stored === undefined) throw notFound(words, id)
        check(revision(stored))
        return { put: await change(stored, request.body as Change, catalogue) }
      }
      await edit(dependencies, request, changeStored, kind === 'product' ? [id] : [])
      return await shown(dependencies, request, reply, collection, id)
    },
  )
}

function removeRoute<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  app: PlainApp,
  dependencies: HttpDependencies,
  collection: Collection<Stored, Shown, Create, Change>,
): void {
  const { segment, kind, words, access, storedIn, revision } = collection
  app.delete<ById>(
    `${BASE}/${segment}/:id`,
    {
      config: { access: access.change, audit: `${kind}.delete` },
      schema: { tags: PORTAL, summary: `Remove: ${words}`, params, response: { 204: noContent } },
    },
    async (request, reply) => {
      const { id } = request.params
      const check = ifMatch(request.headers['if-match'], words, id)
      const requestsFor = kind === 'product' ? [id] : []
      await edit(
        dependencies,
        request,
        async ({ state }) => {
          const stored = storedIn(state).get(id)
          if (stored !== undefined) check(revision(stored))
          return { remove: { kind, id } }
        },
        requestsFor,
      )
      return reply.code(204).send()
    },
  )
}

/** Commits the edit, then asks for the reconciliation of what it touched. */
export async function edit(
  dependencies: HttpDependencies,
  { principal }: Pick<FastifyRequest, 'principal'>,
  change: PortalEdit['edit'],
  requestsFor: readonly string[] = [],
): Promise<void> {
  const { db, sealer, random, now } = dependencies
  const { accountId, userId } = principal
  const raised = await editPortal(
    { db, sealer, random, nowMs: now },
    { accountId, changedBy: userId, requestsFor, edit: change },
  )
  await enqueueRaised(dependencies, accountId, raised)
}

async function shown<Stored, Shown, Create extends { readonly id?: string | undefined }, Change>(
  { db }: HttpDependencies,
  { principal }: Pick<FastifyRequest, 'principal'>,
  reply: FastifyReply,
  { view, words, revision, show }: Collection<Stored, Shown, Create, Change>,
  id: string,
) {
  const [stored] = (await view(db, principal.accountId, { id })).items
  if (stored === undefined) throw notFound(words, id)
  setEtag(reply, revision(stored))
  return one(show(stored))
}
