import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { type AccountId, registrationId } from '../../domain/ids.ts'
import { type RegistrationView, readRegistration } from '../../store/registration-view.ts'
import { listRegistrations, REGISTRATION_SORT_FIELDS } from '../../store/registration-view-list.ts'
import { createRegistration, deleteRegistration, updateRegistration } from '../../store/registrations.ts'
import type { RegistrationPlace } from '../../store/registrations-change.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { enqueueRaised } from '../operations/enqueueing.ts'
import { limitOf, listOf, one, oneOf, paginate, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { registrationAnswer } from './registration-answers.ts'
import { noQuery, where } from './schemas/path-id.ts'
import { registration, registrationCreation, registrationUpdate } from './schemas/registration.ts'
import { ofRegistration } from './schemas/registration-id.ts'

export const APP_REGISTRATIONS = '/api/v2/apim/appRegistrations'
export const APP_REGISTRATION = `${APP_REGISTRATIONS}/:registrationId`
const tags = ['Application Registrations']
const access = requirePermissions(...REGISTRATIONS)

/** Application registrations, each with all that hangs on it. */
export async function appRegistrationRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addCreateRoute(app, dependencies)
  addChangeRoutes(app, dependencies)
}

const readerOf = ({ db, sealer, config }: HttpDependencies) => ({ db, sealer, maxTopics: config.maxTopics })

export const placeOf = (accountId: AccountId, params: { readonly registrationId: string }): RegistrationPlace => ({
  accountId,
  registrationId: params.registrationId,
})

/** After the commit: what the change means for brokers is done soon, and the answer does not wait for it. */
export async function enqueueIfTouched(
  { enqueue }: Pick<HttpDependencies, 'enqueue'>,
  place: RegistrationPlace,
  { touched }: { readonly touched: boolean },
): Promise<void> {
  if (touched) await enqueue.registration(place.accountId, registrationId(place.registrationId))
}

/** The same for what takes access away: straight to the brokers' queues, before everything that waits there. */
export async function enqueueRevocation(
  dependencies: Pick<HttpDependencies, 'db' | 'enqueue'>,
  { accountId, registrationId: id }: RegistrationPlace,
): Promise<void> {
  await enqueueRaised(dependencies, accountId, [id], 'revocation')
}

function answered(reply: FastifyReply, view: RegistrationView) {
  setEtag(reply, view.revision)
  return one(registrationAnswer(view))
}

function addReadRoutes(app: App, dependencies: HttpDependencies): void {
  app.get(
    APP_REGISTRATIONS,
    {
      config: { access, audit: 'registration.list' },
      schema: {
        tags,
        operationId: 'listAppRegistrations',
        summary: 'List the application registrations',
        description: 'With their credentials.',
        querystring: z.strictObject({ where, ...sortedPage(REGISTRATION_SORT_FIELDS) }),
        response: { 200: listOf(registration) },
      },
    },
    async ({ principal, query }) => {
      const order = { ...query, ...limitOf(query) }
      const { items, count } = await listRegistrations(readerOf(dependencies), principal.accountId, order)
      return paginate(query, items.map(registrationAnswer), count)
    },
  )
  app.get(
    APP_REGISTRATION,
    {
      config: { access, audit: 'registration.read' },
      schema: {
        tags,
        operationId: 'getAppRegistration',
        summary: 'Read an application registration',
        description: 'With its credentials.',
        params: ofRegistration,
        querystring: noQuery,
        response: { 200: oneOf(registration) },
      },
    },
    async ({ principal, params }, reply) => {
      const place = placeOf(principal.accountId, params)
      return answered(reply, await readRegistration(readerOf(dependencies), place))
    },
  )
}

function addCreateRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    APP_REGISTRATIONS,
    {
      config: { access, audit: 'registration.create' },
      schema: {
        tags,
        operationId: 'createAppRegistration',
        summary: 'Create an application registration',
        querystring: noQuery,
        body: registrationCreation,
        response: { 201: oneOf(registration) },
      },
    },
    async (request, reply) => {
      const { registrationId: id, name, source, sourceOwner, applicationDomainId, attributes } = request.body
      const place = placeOf(request.principal.accountId, { registrationId: id })
      request.auditSubject = `${APP_REGISTRATIONS}/${id}`
      const created = await createRegistration(readerOf(dependencies), place, {
        name,
        source,
        sourceOwner: ownerOf(sourceOwner) ?? null,
        applicationDomainId: applicationDomainId ?? null,
        attributes: attributes ?? [],
      })
      await enqueueIfTouched(dependencies, place, created)
      reply.code(201).header('location', `${APP_REGISTRATIONS}/${encodeURIComponent(id)}`)
      return answered(reply, created.result)
    },
  )
}

/** An owner without a name is none. */
const ownerOf = (given: string | undefined): string | null | undefined => (given === '' ? null : given)

function addChangeRoutes(app: App, dependencies: HttpDependencies): void {
  app.patch(
    APP_REGISTRATION,
    {
      config: { access, audit: 'registration.update' },
      schema: {
        tags,
        operationId: 'updateAppRegistration',
        summary: 'Change an application registration',
        params: ofRegistration,
        querystring: noQuery,
        body: registrationUpdate,
        response: { 200: oneOf(registration) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const place = placeOf(principal.accountId, params)
      const check = ifMatch(headers['if-match'], 'application registration', place.registrationId)
      const update = { ...body, sourceOwner: ownerOf(body.sourceOwner) }
      const changed = await updateRegistration(readerOf(dependencies), place, update, check)
      await enqueueIfTouched(dependencies, place, changed)
      return answered(reply, changed.result)
    },
  )
  app.delete(
    APP_REGISTRATION,
    {
      config: { access, audit: 'registration.delete' },
      schema: {
        tags,
        operationId: 'deleteAppRegistration',
        summary: 'Delete an application registration',
        description: 'Its credentials end at once; what it has on brokers is withdrawn.',
        params: ofRegistration,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const place = placeOf(principal.accountId, params)
      const check = ifMatch(headers['if-match'], 'application registration', place.registrationId)
      const deleted = await deleteRegistration(dependencies.db, place, check)
      await enqueueIfTouched(dependencies, place, deleted)
      return reply.code(204).send()
    },
  )
}
