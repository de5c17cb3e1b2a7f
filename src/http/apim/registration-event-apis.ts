import { z } from 'zod'
import type { AccountId } from '../../domain/ids.ts'
import { type EventApisPlace, findEventApi, listEventApis } from '../../store/registration-view-apis.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { listOf, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { ACCESS_REQUEST } from './access-requests.ts'
import { APP_REGISTRATION, placeOf } from './app-registrations.ts'
import { documentAnswer, documentQuery, sendAsyncApiDocument } from './asyncapi-document.ts'
import { eventApiAnswer } from './registration-answers.ts'
import { pageOf } from './registration-pages.ts'
import { ofAccessRequest } from './schemas/access-request.ts'
import { pathId } from './schemas/path-id.ts'
import { eventApiVersion } from './schemas/product.ts'
import { ofRegistration } from './schemas/registration-id.ts'

const access = requirePermissions(...REGISTRATIONS)
const sorted = z.strictObject(sortedPage(['id', 'name', 'displayName', 'version']))

interface SubjectParams {
  readonly registrationId: string
  readonly accessRequestId?: string
}

/** What has the Event APIs: a registration or one of its access requests. */
interface Subject {
  readonly path: string
  readonly name: string
  readonly tags: string[]
  readonly params: z.ZodType<SubjectParams>
  readonly eventApiParams: z.ZodType<SubjectParams & { readonly eventApiId: string }>
  readonly operationIds: Readonly<Record<'list' | 'get', string>>
}

const REGISTRATION: Subject = {
  path: `${APP_REGISTRATION}/eventApis`,
  name: 'a registration',
  tags: ['Application Registrations'],
  params: ofRegistration,
  eventApiParams: ofRegistration.extend({ eventApiId: pathId }),
  operationIds: { list: 'getAppRegistrationApis', get: 'getAppRegistrationApi' },
}

const REQUEST: Subject = {
  path: `${ACCESS_REQUEST}/eventApis`,
  name: 'an access request',
  tags: ['Access Requests'],
  params: ofAccessRequest,
  eventApiParams: ofAccessRequest.extend({ eventApiId: pathId }),
  operationIds: { list: 'getAppRegistrationAccessRequestApis', get: 'getAppRegistrationAccessRequestApi' },
}

/** The Event APIs that a registration asked for, and their AsyncAPI documents. */
export async function registrationEventApiRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  for (const subject of [REGISTRATION, REQUEST]) addRoutes(app, dependencies, subject)
}

const eventApisPlace = (accountId: AccountId, params: SubjectParams): EventApisPlace => ({
  ...placeOf(accountId, params),
  accessRequestId: params.accessRequestId ?? null,
})

function addRoutes(app: App, { db }: HttpDependencies, subject: Subject): void {
  const { path, name, tags, operationIds } = subject
  app.get(
    path,
    {
      config: { access },
      schema: {
        tags,
        operationId: operationIds.list,
        summary: `List the Event APIs of ${name}`,
        params: subject.params,
        querystring: sorted,
        response: { 200: listOf(eventApiVersion) },
      },
    },
    async ({ principal, params, query }) => {
      const eventApis = await listEventApis(db, eventApisPlace(principal.accountId, params))
      return pageOf(eventApis.map(eventApiAnswer), query, (eventApi, field) => eventApi[field])
    },
  )
  app.get(
    `${path}/:eventApiId`,
    {
      config: { access },
      schema: {
        tags,
        operationId: operationIds.get,
        summary: `Read the AsyncAPI document of an Event API of ${name}`,
        params: subject.eventApiParams,
        querystring: documentQuery,
        response: documentAnswer,
      },
    },
    async ({ principal, params, query }, reply) => {
      const { eventApiId } = params
      const { productId, source } = await findEventApi(db, eventApisPlace(principal.accountId, params), eventApiId)
      return sendAsyncApiDocument(reply, { productId, eventApiId }, source, query)
    },
  )
}
