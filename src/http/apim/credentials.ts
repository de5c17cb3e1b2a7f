import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { notFound } from '../../domain/refusals.ts'
import { Secret } from '../../domain/secret.ts'
import { createCredential, deleteCredential, updateCredential } from '../../store/credentials.ts'
import {
  CREDENTIAL_SORT_FIELDS,
  type CredentialView,
  findCredential,
  listCredentials,
} from '../../store/credentials-view.ts'
import { findRegistration } from '../../store/registrations-change.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, paginate, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { APP_REGISTRATION, enqueueIfTouched, enqueueRevocation, placeOf } from './app-registrations.ts'
import { credentialAnswer } from './registration-answers.ts'
import { credential, credentialCreation, credentialUpdate, ofCredential } from './schemas/credential.ts'
import { noQuery } from './schemas/path-id.ts'
import { ofRegistration } from './schemas/registration-id.ts'

const tags = ['Credentials']
const CREDENTIALS = `${APP_REGISTRATION}/credentials`
const CREDENTIAL = `${CREDENTIALS}/:consumerKey`
const access = requirePermissions(...REGISTRATIONS)

/** What the clients of a registration log in with. Every answer holds secrets, and every read is recorded. */
export async function credentialRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addCreateRoute(app, dependencies)
  addChangeRoutes(app, dependencies)
}

function answered(reply: FastifyReply, view: CredentialView) {
  setEtag(reply, view.revision)
  return one(credentialAnswer(view))
}

function addReadRoutes(app: App, dependencies: HttpDependencies): void {
  app.get(
    CREDENTIALS,
    {
      config: { access, audit: 'credential.list' },
      schema: {
        tags,
        operationId: 'getAppRegistrationCredentials',
        summary: 'List the credentials of a registration',
        description: 'Those that work: what has expired or was deleted is not listed.',
        params: ofRegistration,
        querystring: z.strictObject(sortedPage(CREDENTIAL_SORT_FIELDS)),
        response: { 200: listOf(credential) },
      },
    },
    async ({ principal, params, query }) => {
      const place = placeOf(principal.accountId, params)
      await findRegistration(dependencies.db, place)
      const { items, count } = await listCredentials(dependencies, place, { ...query, ...limitOf(query) })
      return paginate(query, items.map(credentialAnswer), count)
    },
  )
  app.get(
    CREDENTIAL,
    {
      config: { access, audit: 'credential.read' },
      schema: {
        tags,
        operationId: 'getAppRegistrationCredential',
        summary: 'Read credentials',
        params: ofCredential,
        querystring: noQuery,
        response: { 200: oneOf(credential) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findCredential(dependencies, placeOf(principal.accountId, params), params.consumerKey)
      if (found === null) throw notFound('credential', params.consumerKey)
      return answered(reply, found)
    },
  )
}

function addCreateRoute(app: App, dependencies: HttpDependencies): void {
  app.post(
    CREDENTIALS,
    {
      config: { access, audit: 'credential.create' },
      schema: {
        tags,
        operationId: 'createAppRegistrationCredentials',
        summary: 'Create credentials',
        description:
          'With a name only, key and secret are generated; with a key, the secret is; or both are given. ' +
          'Credentials that exist go on working.',
        params: ofRegistration,
        querystring: noQuery,
        body: credentialCreation,
        response: { 200: oneOf(credential) },
      },
    },
    async ({ principal, params, body }, reply) => {
      if (body.name === undefined && !dependencies.config.credentialNameOptional) {
        throw new InvalidInputError('The request', [{ path: 'name', message: 'is required' }])
      }
      const place = placeOf(principal.accountId, params)
      const writer = { ...dependencies, nowMs: dependencies.now() }
      const { secret } = body
      const created = await createCredential(writer, place, {
        name: body.name ?? null,
        consumerKey: secret?.consumerKey ?? null,
        consumerSecret: secret?.consumerSecret === undefined ? null : new Secret(secret.consumerSecret),
        expiresAtMs: expiryOf(body.expiresAt) ?? null,
      })
      await enqueueIfTouched(dependencies, place, created)
      return answered(reply, created.result)
    },
  )
}

/** -1: never. */
const expiryOf = (given: number | undefined): number | null | undefined => (given === -1 ? null : given)

function addChangeRoutes(app: App, dependencies: HttpDependencies): void {
  app.patch(
    CREDENTIAL,
    {
      config: { access, audit: 'credential.update' },
      schema: {
        tags,
        operationId: 'updateAppRegistrationCredentials',
        summary: 'Change credentials',
        description:
          'A new secret replaces the old one on every broker. For a change without a gap, create other credentials, ' +
          'move the clients, then delete these.',
        params: ofCredential,
        querystring: noQuery,
        body: credentialUpdate,
        response: { 200: oneOf(credential) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const { secret } = body
      if (secret !== undefined && secret.consumerKey !== params.consumerKey) {
        const message = 'cannot be changed: create other credentials'
        throw new InvalidInputError('The request', [{ path: 'secret.consumerKey', message }])
      }
      const place = placeOf(principal.accountId, params)
      const change = {
        name: body.name,
        consumerSecret: secret?.consumerSecret === undefined ? undefined : new Secret(secret.consumerSecret),
        expiresAtMs: expiryOf(body.expiresAt),
      }
      const check = ifMatch(headers['if-match'], 'credential', params.consumerKey)
      const writer = { ...dependencies, nowMs: dependencies.now() }
      const changed = await updateCredential(writer, { ...place, consumerKey: params.consumerKey }, change, check)
      await enqueueIfTouched(dependencies, place, changed)
      return answered(reply, changed.result)
    },
  )
  app.delete(
    CREDENTIAL,
    {
      config: { access, audit: 'credential.delete' },
      schema: {
        tags,
        operationId: 'deleteAppRegistrationCredentials',
        summary: 'Delete credentials',
        description:
          'They end at once: before anything else that waits, brokers disable the client username, which drops its ' +
          'clients; it is removed later.',
        params: ofCredential,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const place = placeOf(principal.accountId, params)
      const check = ifMatch(headers['if-match'], 'credential', params.consumerKey)
      await deleteCredential(dependencies.db, { ...place, consumerKey: params.consumerKey }, check)
      await enqueueRevocation(dependencies, place)
      return reply.code(204).send()
    },
  )
}
