import { z } from 'zod'
import {
  createAttribute,
  deleteAttribute,
  findAttribute,
  updateAttribute,
} from '../../store/registration-attributes.ts'
import { findRegistration } from '../../store/registrations-change.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, revisionOf, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { listOf, one, oneOf, sortedPage } from '../pagination.ts'
import { REGISTRATIONS, requirePermissions } from '../permissions.ts'
import { APP_REGISTRATION, placeOf } from './app-registrations.ts'
import { pageOf } from './registration-pages.ts'
import {
  ATTRIBUTE_SORT_FIELDS,
  attribute,
  attributeCreation,
  attributeName,
  attributeUpdate,
} from './schemas/attribute.ts'
import { noQuery } from './schemas/path-id.ts'
import { ofRegistration } from './schemas/registration-id.ts'

const tags = ['Application Registrations']
const ATTRIBUTES = `${APP_REGISTRATION}/attributes`
const ATTRIBUTE = `${ATTRIBUTES}/:attributeName`
const access = requirePermissions(...REGISTRATIONS)
const ofAttribute = ofRegistration.extend({ attributeName })

/** What integrations keep with a registration. */
export async function registrationAttributeRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addWriteRoutes(app, dependencies)
}

function addReadRoutes(app: App, { db }: HttpDependencies): void {
  app.get(
    ATTRIBUTES,
    {
      config: { access },
      schema: {
        tags,
        operationId: 'getAppRegistrationAttributes',
        summary: 'List the attributes of a registration',
        params: ofRegistration,
        querystring: z.strictObject(sortedPage(ATTRIBUTE_SORT_FIELDS)),
        response: { 200: listOf(attribute) },
      },
    },
    async ({ principal, params, query }) => {
      const { attributes } = await findRegistration(db, placeOf(principal.accountId, params))
      return pageOf(attributes, query, (each, field) => each[field])
    },
  )
  app.get(
    ATTRIBUTE,
    {
      config: { access },
      schema: {
        tags,
        operationId: 'getAppRegistrationAttribute',
        summary: 'Read an attribute of a registration',
        params: ofAttribute,
        querystring: noQuery,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findAttribute(db, placeOf(principal.accountId, params), params.attributeName)
      setEtag(reply, revisionOf(found))
      return one(found)
    },
  )
}

function addWriteRoutes(app: App, { db }: HttpDependencies): void {
  app.post(
    ATTRIBUTES,
    {
      config: { access, audit: 'registration.attribute.create' },
      schema: {
        tags,
        operationId: 'createAppRegistrationAttribute',
        summary: 'Add an attribute to a registration',
        params: ofRegistration,
        querystring: noQuery,
        body: attributeCreation,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params, body }, reply) => {
      const created = await createAttribute(db, placeOf(principal.accountId, params), body)
      setEtag(reply, revisionOf(created))
      return one(created)
    },
  )
  app.patch(
    ATTRIBUTE,
    {
      config: { access, audit: 'registration.attribute.update' },
      schema: {
        tags,
        operationId: 'updateAppRegistrationAttribute',
        summary: 'Change an attribute of a registration',
        params: ofAttribute,
        querystring: noQuery,
        body: attributeUpdate,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const check = ifMatch(headers['if-match'], 'attribute', params.attributeName)
      const change = { name: params.attributeName, value: body.value }
      const changed = await updateAttribute(db, placeOf(principal.accountId, params), change, (stored) =>
        check(revisionOf(stored)),
      )
      setEtag(reply, revisionOf(changed))
      return one(changed)
    },
  )
  app.delete(
    ATTRIBUTE,
    {
      config: { access, audit: 'registration.attribute.delete' },
      schema: {
        tags,
        operationId: 'deleteAppRegistrationAttribute',
        summary: 'Remove an attribute from a registration',
        params: ofAttribute,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const check = ifMatch(headers['if-match'], 'attribute', params.attributeName)
      await deleteAttribute(db, placeOf(principal.accountId, params), params.attributeName, (stored) =>
        check(revisionOf(stored)),
      )
      return reply.code(204).send()
    },
  )
}
