import { z } from 'zod'
import type { AccountId } from '../../domain/ids.ts'
import {
  createFilter,
  deleteFilter,
  type FilterPlace,
  findFilter,
  listFilters,
  updateFilter,
} from '../../store/filters.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, revisionOf, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { listOf, one, oneOf, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { ACCESS_REQUEST, requestWriterOf } from './access-requests.ts'
import { APP_REGISTRATION, enqueueIfTouched, placeOf } from './app-registrations.ts'
import { filterAnswer } from './registration-answers.ts'
import { pageOf } from './registration-pages.ts'
import { ofAccessRequest } from './schemas/access-request.ts'
import { filter, filterCreation, filterName, filterUpdate } from './schemas/filter.ts'
import { noQuery } from './schemas/path-id.ts'
import { ofRegistration } from './schemas/registration-id.ts'

const access = requirePermissions(...REGISTRATIONS)
const sorted = z.strictObject(sortedPage(['name']))

interface SubjectParams {
  readonly registrationId: string
  readonly accessRequestId?: string
}

/** What has the filters: a registration or one of its access requests. */
interface Subject {
  readonly path: string
  readonly name: string
  readonly tags: string[]
  readonly params: z.ZodType<SubjectParams>
  readonly filterParams: z.ZodType<SubjectParams & { readonly filterName: string }>
  readonly operationIds: Readonly<Record<'list' | 'create' | 'get' | 'update' | 'delete', string>>
}

const REGISTRATION: Subject = {
  path: `${APP_REGISTRATION}/filters`,
  name: 'a registration',
  tags: ['Application Registrations'],
  params: ofRegistration,
  filterParams: ofRegistration.extend({ filterName }),
  operationIds: {
    list: 'getAppRegistrationFilters',
    create: 'createAppRegistrationFilter',
    get: 'getAppRegistrationFilter',
    update: 'updateAppRegistrationFilter',
    delete: 'deleteAppRegistrationFilter',
  },
}

const REQUEST: Subject = {
  path: `${ACCESS_REQUEST}/filters`,
  name: 'an access request',
  tags: ['Access Requests'],
  params: ofAccessRequest,
  filterParams: ofAccessRequest.extend({ filterName }),
  operationIds: {
    list: 'getEventApiProductAccessRequestFilters',
    create: 'createEventApiProductAccessRequestFilter',
    get: 'getEventApiProductAccessRequestFilter',
    update: 'updateEventApiProductAccessRequestFilter',
    delete: 'deleteEventApiProductAccessRequestFilter',
  },
}

/** Values that parameters of topics are narrowed to, for a registration as a whole and for one access request. */
export async function registrationFilterRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  for (const subject of [REGISTRATION, REQUEST]) {
    addReadRoutes(app, dependencies, subject)
    addCreateRoute(app, dependencies, subject)
    addChangeRoutes(app, dependencies, subject)
  }
}

const filterPlace = (accountId: AccountId, params: SubjectParams): FilterPlace => ({
  ...placeOf(accountId, params),
  accessRequestId: params.accessRequestId ?? null,
})

function addReadRoutes(app: App, { db }: HttpDependencies, subject: Subject): void {
  const { tags, operationIds } = subject
  app.get(
    subject.path,
    {
      config: { access },
      schema: {
        tags,
        operationId: operationIds.list,
        summary: `List the filters of ${subject.name}`,
        params: subject.params,
        querystring: sorted,
        response: { 200: listOf(filter) },
      },
    },
    async ({ principal, params, query }) => {
      const filters = await listFilters(db, filterPlace(principal.accountId, params))
      return pageOf(filters.map(filterAnswer), query, ({ name }) => name)
    },
  )
  app.get(
    `${subject.path}/:filterName`,
    {
      config: { access },
      schema: {
        tags,
        operationId: operationIds.get,
        summary: `Read a filter of ${subject.name}`,
        params: subject.filterParams,
        querystring: noQuery,
        response: { 200: oneOf(filter) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findFilter(db, filterPlace(principal.accountId, params), params.filterName)
      setEtag(reply, revisionOf(found))
      return one(filterAnswer(found))
    },
  )
}

function addCreateRoute(app: App, dependencies: HttpDependencies, subject: Subject): void {
  app.post(
    subject.path,
    {
      config: { access, audit: 'filter.create' },
      schema: {
        tags: subject.tags,
        operationId: subject.operationIds.create,
        summary: `Add a filter to ${subject.name}`,
        params: subject.params,
        querystring: noQuery,
        body: filterCreation,
        response: { 200: oneOf(filter) },
      },
    },
    async ({ principal, params, body }, reply) => {
      const place = filterPlace(principal.accountId, params)
      const created = await createFilter(requestWriterOf(dependencies), place, body)
      await enqueueIfTouched(dependencies, place, created)
      setEtag(reply, revisionOf(created.result))
      return one(filterAnswer(created.result))
    },
  )
}

function addChangeRoutes(app: App, dependencies: HttpDependencies, subject: Subject): void {
  const { tags, operationIds } = subject
  app.patch(
    `${subject.path}/:filterName`,
    {
      config: { access, audit: 'filter.update' },
      schema: {
        tags,
        operationId: operationIds.update,
        summary: `Change a filter of ${subject.name}`,
        params: subject.filterParams,
        querystring: noQuery,
        body: filterUpdate,
        response: { 200: oneOf(filter) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const place = filterPlace(principal.accountId, params)
      const check = ifMatch(headers['if-match'], 'filter', params.filterName)
      const change = { name: params.filterName, values: body.values }
      const changed = await updateFilter(requestWriterOf(dependencies), place, change, (stored) =>
        check(revisionOf(stored)),
      )
      await enqueueIfTouched(dependencies, place, changed)
      setEtag(reply, revisionOf(changed.result))
      return one(filterAnswer(changed.result))
    },
  )
  app.delete(
    `${subject.path}/:filterName`,
    {
      config: { access, audit: 'filter.delete' },
      schema: {
        tags,
        operationId: operationIds.delete,
        summary: `Remove a filter from ${subject.name}`,
        params: subject.filterParams,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const place = filterPlace(principal.accountId, params)
      const check = ifMatch(headers['if-match'], 'filter', params.filterName)
      const deleted = await deleteFilter(requestWriterOf(dependencies), place, params.filterName, (stored) =>
        check(revisionOf(stored)),
      )
      await enqueueIfTouched(dependencies, place, deleted)
      return reply.code(204).send()
    },
  )
}
