/** A schema of the description of the APIM API, to be changed in place. */
export interface DescribedSchema {
  properties?: Record<string, DescribedSchema>
  readonly [keyword: string]: unknown
}

/** Where an answer of ours is another than the description says, because the specification demands it, or people need it. */
export interface Difference {
  /** A name under `components.schemas`. */
  readonly schema: string
  readonly reason: string
  readonly apply: (schema: DescribedSchema) => void
}

const alsoNamed = (property: string, as: string) => (schema: DescribedSchema) => {
  const known = schema.properties?.[property]
  if (known === undefined) throw new Error(`the description has no property ${property}`)
  schema.properties = { ...schema.properties, [as]: known }
}

const VENDOR_NEUTRAL = 'Section 2.1 of the specification names the field without the vendor; both names are answered.'

/** All of them. A test that validates answers against the description applies each before. */
export const APIM_DIFFERENCES: readonly Difference[] = [
  {
    schema: 'Pagination',
    reason: 'Section 2.2 of the specification: `nextPage` is null when there is no next page.',
    apply: (schema) => {
      schema.properties = { ...schema.properties, nextPage: { ...schema.properties?.nextPage, nullable: true } }
    },
  },
  {
    schema: 'EventApiProduct',
    reason: VENDOR_NEUTRAL,
    apply: alsoNamed('solaceMessagingServices', 'vendorMessagingServices'),
  },
  {
    schema: 'Plan',
    reason: VENDOR_NEUTRAL,
    apply: alsoNamed('solaceClassOfServicePolicy', 'vendorClassOfServicePolicy'),
  },
  {
    schema: 'SolaceMessagingService',
    reason: VENDOR_NEUTRAL,
    apply: alsoNamed('solaceCloudMessagingServiceId', 'vendorCloudMessagingServiceId'),
  },
  {
    schema: 'MessagingService',
    reason: VENDOR_NEUTRAL,
    apply: alsoNamed('solaceCloudMessagingServiceId', 'vendorCloudMessagingServiceId'),
  },
  {
    schema: 'EventApiProductRegistration',
    reason: 'The description has the state ERROR and nowhere says what went wrong.',
    apply: (schema) => {
      schema.properties = { ...schema.properties, reason: { type: 'string' } }
    },
  },
  {
    schema: 'CommonTopic',
    reason: 'The permissions are the topics that brokers hold: `a` and `*/updated` are topics too.',
    apply: (schema) => {
      Object.assign(schema, { pattern: '^[^#]', minLength: 1 })
    },
  },
  {
    schema: 'String2MB',
    reason: 'The document of an Event API of a registration is bare JSON, as the two calls like it have it.',
    apply: (schema) => {
      Object.assign(schema, { type: ['string', 'object'] })
    },
  },
]

/** A status that an operation has and its description lacks; its answer is an ErrorResponse. */
export interface UndescribedStatus {
  readonly method: string
  /** The end of the path, as the description writes it. */
  readonly pathEnd: string
  readonly status: number
  readonly reason: string
}

/** Of what can be deleted; the description has the status for changes of the same. */
const DELETABLE = [
  '/attributes/{attributeName}',
  '/appRegistrations/{registrationId}',
  '/accessRequests/{accessRequestId}',
  '/credentials/{consumerKey}',
  '/filters/{filterName}',
  '/webhooks/{webhookId}',
]

export const APIM_UNDESCRIBED_STATUSES: readonly UndescribedStatus[] = DELETABLE.map((pathEnd) => ({
  method: 'DELETE',
  pathEnd,
  status: 412,
  reason: 'A deletion heeds If-Match like a change does, so that no change is lost.',
}))
