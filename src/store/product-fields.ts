import type { WhereFields } from './where.ts'

// What documents of the catalogue hold, for filters and for sorting; as `product-documents-migration.ts` makes them.

const nameValues = { array: { name: 'text', value: 'text' } } as const satisfies WhereFields[string]

const classOfServicePolicy = {
  object: {
    id: 'text',
    messageDeliveryMode: 'text',
    accessType: 'text',
    queueType: 'text',
    maximumTimeToLive: 'number',
    maxMsgSpoolUsage: 'number',
  },
} as const satisfies WhereFields[string]

const messagingServices = {
  array: {
    id: 'text',
    messagingServiceId: 'text',
    messagingServiceName: 'text',
    solaceCloudMessagingServiceId: 'text',
    vendorCloudMessagingServiceId: 'text',
    supportedProtocols: { array: 'text' },
    environmentName: 'text',
    eventMeshName: 'text',
  },
} as const satisfies WhereFields[string]

/** The fields of a product by which a list can be sorted. */
export const PRODUCT_SORT_FIELDS = {
  id: 'text',
  name: 'text',
  displayName: 'text',
  description: 'text',
  version: 'version',
  state: 'text',
  applicationDomainId: 'text',
  applicationDomainName: 'text',
  approvalType: 'text',
  brokerType: 'text',
  createdTime: 'number',
  updatedTime: 'number',
  createdBy: 'text',
  changedBy: 'text',
} as const satisfies WhereFields
export type ProductSortField = keyof typeof PRODUCT_SORT_FIELDS

export const PRODUCT_FIELDS: WhereFields = {
  ...PRODUCT_SORT_FIELDS,
  plans: {
    array: {
      id: 'text',
      name: 'text',
      solaceClassOfServicePolicy: classOfServicePolicy,
      vendorClassOfServicePolicy: classOfServicePolicy,
    },
  },
  apis: {
    array: {
      id: 'text',
      name: 'text',
      displayName: 'text',
      description: 'text',
      version: 'text',
      customAttributes: nameValues,
    },
  },
  apiParameters: {
    array: { name: 'text', dataType: 'text', parameterType: 'text', values: { array: 'text' } },
  },
  solaceMessagingServices: messagingServices,
  vendorMessagingServices: messagingServices,
  customAttributes: nameValues,
  attributes: nameValues,
}

/** The description of the API calls plans `plan` in its example. */
export const PRODUCT_FIELD_ALIASES = { plan: 'plans' } as const

export const GATEWAY_SORT_FIELDS = {
  id: 'text',
  name: 'text',
  brokerType: 'text',
  environmentName: 'text',
  eventMeshName: 'text',
  solaceCloudMessagingServiceId: 'text',
  vendorCloudMessagingServiceId: 'text',
} as const satisfies WhereFields
export type GatewaySortField = keyof typeof GATEWAY_SORT_FIELDS

export const GATEWAY_FIELDS: WhereFields = {
  ...GATEWAY_SORT_FIELDS,
  messagingServiceConnections: {
    array: {
      name: 'text',
      url: 'text',
      protocol: 'text',
      protocolVersion: 'text',
      bindings: { object: { msgVpn: 'text' } },
    },
  },
}
