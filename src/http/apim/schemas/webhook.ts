import { z } from 'zod'
import { hasUnsafeCharacters } from '../../../domain/names.ts'
import { judged, name, ofRegistration } from './registration-id.ts'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

const headerName = (maxLength: number) =>
  z.string().min(1).max(maxLength).regex(HEADER_NAME, 'must be the name of an HTTP header')
const headerValue = (maxLength: number) =>
  judged(z.string().min(1).max(maxLength), (text) =>
    hasUnsafeCharacters(text) ? 'must not contain line breaks or control characters' : null,
  )

const uri = judged(
  z
    .string()
    .min(8)
    .max(200)
    .regex(/^https?:\/\/[A-Za-z.:0-9-]*.*$/, 'must be an http or https address'),
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : null
    if (url === null || !/^https?:$/.test(url.protocol) || /\s/.test(text)) return 'must be an http or https address'
    return url.username !== '' || url.password !== '' ? 'must not contain a username or a password' : null
  },
)

const authentication = z
  .strictObject({
    basicAuth: z
      .strictObject({
        username: z
          .string()
          .min(1)
          .max(64)
          .regex(/^[.a-zA-Z0-9@_-]*$/, 'may contain letters, digits, `.`, `@`, `_`, `-`'),
        password: headerValue(256)
          .min(8)
          .regex(/^[\S]*$/, 'must not contain white space'),
      })
      .optional(),
    headerAuth: z.strictObject({ headerName: headerName(512), headerValue: headerValue(16_384) }).optional(),
  })
  .refine((value) => value.basicAuth === undefined || value.headerAuth === undefined, {
    message: 'must be either basicAuth or headerAuth',
  })
  .meta({ id: 'WebhookAuth' })

const requestHeaders = z
  .array(z.strictObject({ headerName: headerName(50), headerValue: headerValue(1024) }).meta({ id: 'WebhookHeader' }))
  .max(50)

const optional = {
  gatewayMessagingServiceIds: z
    .array(z.string().min(1).max(128))
    .max(255)
    .optional()
    .describe('Brokers that call it; all of the registration when absent.'),
  authentication: authentication.optional(),
  tlsOptions: z
    .strictObject({ tlsTrustedCommonNames: z.array(z.string().min(1).max(253)).max(255) })
    .meta({ id: 'WebhookTLSOptions', deprecated: true })
    .optional(),
  requestHeaders: requestHeaders.optional(),
  appendTopicToUrl: z.boolean().optional().describe('Whether the topic of the message is added to the address.'),
}

const webhookName = name.min(3).describe('Unique in the registration: the id of the webhook in paths.')

/** What is called when messages arrive. */
export const webhook = z
  .strictObject({
    uri: z.string(),
    name: z.string(),
    method: z.enum(['POST', 'PUT']),
    mode: z.enum(['parallel', 'serial']),
    ...optional,
  })
  .meta({ id: 'Webhook' })

/** A name that is left out is generated. */
export const webhookCreation = z.strictObject({
  uri,
  name: webhookName.optional(),
  method: z.enum(['POST', 'PUT']),
  mode: z.enum(['parallel', 'serial']).default('parallel'),
  ...optional,
})

/** What is left out stays. */
export const webhookUpdate = z.strictObject({
  uri: uri.optional(),
  name: webhookName.optional(),
  method: z.enum(['POST', 'PUT']).optional(),
  mode: z.enum(['parallel', 'serial']).optional(),
  ...optional,
})

/** One line of the list. */
export const webhookSummary = z.strictObject({ uri: z.string(), name: z.string() }).meta({ id: 'WebhookIds' })

export const ofWebhook = ofRegistration.extend({ webhookId: z.string().min(1).max(188) })
