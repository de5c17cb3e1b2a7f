import { z } from 'zod'
import { attribute } from './attribute.ts'
import { messagingServiceOfProduct } from './messaging-service.ts'
import { plan } from './plan.ts'

const state = z.enum(['RELEASED', 'DEPRECATED', 'RETIRED', 'DELETED']).meta({ id: 'EventApiProductState' })

/** An Event API in one version, without its document. */
export const eventApiVersion = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    displayName: z.string(),
    description: z.string(),
    version: z.string(),
    customAttributes: z.array(attribute),
  })
  .meta({ id: 'EventApiVersion' })

const apiParameter = z
  .strictObject({
    name: z.string(),
    dataType: z.literal('string'),
    parameterType: z.enum(['enum', 'unbounded']),
    values: z.array(z.string()).optional().describe('What an enum allows.'),
  })
  .meta({ id: 'APIParameter' })

export const eventApiProduct = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    displayName: z.string(),
    description: z.string(),
    version: z.string().describe('A semantic version.'),
    state,
    applicationDomainId: z.string().describe('`none` when the product belongs to no application domain.'),
    applicationDomainName: z.string(),
    approvalType: z.enum(['automatic', 'manual']),
    brokerType: z.enum(['solace', 'kafka']),
    createdTime: z.int().describe('Epoch milliseconds.'),
    updatedTime: z.int().describe('Epoch milliseconds.'),
    createdBy: z.string(),
    changedBy: z.string(),
    plans: z.array(plan),
    apis: z.array(eventApiVersion),
    apiParameters: z.array(apiParameter),
    solaceMessagingServices: z.array(messagingServiceOfProduct),
    vendorMessagingServices: z.array(messagingServiceOfProduct).describe('The same under its vendor-neutral name.'),
    customAttributes: z.array(attribute).describe('Declared with the version; read only.'),
    attributes: z.array(attribute).describe('Kept by integrations; they outlive versions.'),
  })
  .meta({ id: 'EventApiProduct' })

export const eventApiProductSummary = z
  .strictObject({ version: z.string(), displayName: z.string(), state })
  .meta({ id: 'EventApiProductSummary' })
