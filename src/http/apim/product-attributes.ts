import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import {
  createProductAttribute,
  deleteProductAttribute,
  findProductAttribute,
  updateProductAttribute,
} from '../../store/product-attributes.ts'
import { listProductPart } from '../../store/product-view.ts'
import type { App } from '../app.ts'
import type { Principal } from '../authentication.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { sendDocuments } from '../document-answer.ts'
import { ifMatch, revisionOf, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, sortedPage } from '../pagination.ts'
import { CATALOGUE_READ, CATALOGUE_WRITE, requirePermissions } from '../permissions.ts'
import { EVENT_API_PRODUCTS } from './event-api-products.ts'
import {
  ATTRIBUTE_SORT_FIELDS,
  attribute,
  attributeCreation,
  attributeName,
  attributeUpdate,
} from './schemas/attribute.ts'
import { noQuery, pathId } from './schemas/path-id.ts'

const tags = ['Event API Products']
const description = 'Attributes stay when a new version of the product is released.'
const ATTRIBUTES = `${EVENT_API_PRODUCTS}/:eventApiProductId/attributes`
const ATTRIBUTE = `${ATTRIBUTES}/:attributeName`
const ofProduct = z.strictObject({ eventApiProductId: pathId })
const ofAttribute = ofProduct.extend({ attributeName })
const sorted = z.strictObject(sortedPage(ATTRIBUTE_SORT_FIELDS))

/** What integrations keep with a product. */
export async function productAttributeRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  addReadRoutes(app, dependencies)
  addWriteRoutes(app, dependencies)
}

function addReadRoutes(app: App, dependencies: HttpDependencies): void {
  const { db } = dependencies
  const config = { access: requirePermissions(...CATALOGUE_READ) }
  app.get(
    ATTRIBUTES,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductAttributes',
        summary: 'List the attributes of an Event API Product',
        description,
        params: ofProduct,
        querystring: sorted,
        response: { 200: listOf(attribute) },
      },
    },
    async ({ principal, params, query }, reply) => {
      const { eventApiProductId: id } = params
      const order = { ...query, ...limitOf(query) }
      const page = await listProductPart(db, principal.accountId, id, 'attributes', order)
      if (page === null) throw notFound('Event API Product', id)
      return sendDocuments(reply, dependencies, query, page)
    },
  )
  app.get(
    ATTRIBUTE,
    {
      config,
      schema: {
        tags,
        operationId: 'getEventAPIProductAttribute',
        summary: 'Read an attribute of an Event API Product',
        description,
        params: ofAttribute,
        querystring: noQuery,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params }, reply) => {
      const found = await findProductAttribute(db, placeOf(principal.accountId, params))
      setEtag(reply, revisionOf(found))
      return one(found)
    },
  )
}

function addWriteRoutes(app: App, { db }: HttpDependencies): void {
  const access = requirePermissions(...CATALOGUE_WRITE)
  app.post(
    ATTRIBUTES,
    {
      config: { access, audit: 'product.attribute.create' },
      schema: {
        tags,
        operationId: 'createEventApiProductAttribute',
        summary: 'Add an attribute to an Event API Product',
        description,
        params: ofProduct,
        body: attributeCreation,
        querystring: noQuery,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params, body }, reply) => {
      const place = changeOf(principal, { ...params, attributeName: body.name })
      const created = await createProductAttribute(db, place, body.value)
      setEtag(reply, revisionOf(created))
      return one(created)
    },
  )
  app.patch(
    ATTRIBUTE,
    {
      config: { access, audit: 'product.attribute.update' },
      schema: {
        tags,
        operationId: 'updateEventApiProductAttribute',
        summary: 'Change an attribute of an Event API Product',
        description,
        params: ofAttribute,
        body: attributeUpdate,
        querystring: noQuery,
        response: { 200: oneOf(attribute) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const check = ifMatch(headers['if-match'], 'attribute', params.attributeName)
      const place = changeOf(principal, params)
      const changed = await updateProductAttribute(db, place, body.value, (stored) => check(revisionOf(stored)))
      setEtag(reply, revisionOf(changed))
      return one(changed)
    },
  )
  app.delete(
    ATTRIBUTE,
    {
      config: { access, audit: 'product.attribute.delete' },
      schema: {
        tags,
        operationId: 'deleteEventApiProductAttribute',
        summary: 'Remove an attribute from an Event API Product',
        description,
        params: ofAttribute,
        querystring: noQuery,
        response: { 204: noContent },
      },
    },
    async ({ principal, params, headers }, reply) => {
      const check = ifMatch(headers['if-match'], 'attribute', params.attributeName)
      await deleteProductAttribute(db, changeOf(principal, params), (stored) => check(revisionOf(stored)))
      return reply.code(204).send()
    },
  )
}

const placeOf = (accountId: string, params: z.output<typeof ofAttribute>) => ({
  accountId,
  productId: params.eventApiProductId,
  name: params.attributeName,
})

const changeOf = ({ accountId, userId }: Principal, params: z.output<typeof ofAttribute>) => ({
  ...placeOf(accountId, params),
  changedBy: userId,
})
