import { z } from 'zod'
import { NOTIFICATION_KINDS } from '../../domain/notifications.ts'
import { DELIVERY_STATES } from '../../store/notification-deliveries.ts'
import { notificationPayload } from '../../store/notification-payload.ts'
import { epochMs } from './operations-schemas.ts'

const MAX_OVERLAP_SECONDS = 30 * 86_400

const name = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}]*$/u, 'must be one line')
const url = z
  .string()
  .max(2048)
  .refine((text) => URL.canParse(text), 'must be a URL')
  .describe('https; a user, password and query in it are kept sealed and never shown again.')
const kinds = z
  .array(z.enum(NOTIFICATION_KINDS))
  .max(NOTIFICATION_KINDS.length)
  .transform((given) => NOTIFICATION_KINDS.filter((kind) => given.includes(kind)))
  .describe('What is told to it.')

export const newEndpoint = z.strictObject({
  name,
  url,
  kinds: kinds.default([...NOTIFICATION_KINDS]),
  enabled: z.boolean().default(true),
})
/** A change of some of it. */
export const endpointChange = z.strictObject({
  name: name.optional(),
  url: url.optional(),
  kinds: kinds.optional(),
  enabled: z.boolean().optional(),
})

export const endpoint = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    address: z.string().describe('The URL without user, password and query.'),
    kinds: z.array(z.enum(NOTIFICATION_KINDS)).readonly(),
    enabled: z.boolean(),
    disabledReason: z.string().nullable().describe('Why it was switched off, when the receiver asked for it.'),
    createdAtMs: epochMs,
    lastDeliveredAtMs: epochMs.nullable(),
    failingSinceMs: epochMs.nullable().describe('Null while the receiver takes what it is sent.'),
    lastError: z.string().nullable(),
    pendingDeliveries: z.int(),
    deadDeliveries: z.int(),
  })
  .meta({ id: 'NotificationEndpoint' })

export const endpointWithSecret = z
  .strictObject({
    ...endpoint.shape,
    signingSecret: z.string().describe('Signs what is sent to it. Shown only now.'),
  })
  .meta({ id: 'NotificationEndpointWithSecret' })

export const rotation = z
  .strictObject({
    overlapSeconds: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_SECONDS)
      .default(86_400)
      .describe('How long the older secret signs too; 0: it signs no more.'),
  })
  .default({ overlapSeconds: 86_400 })

export const delivery = z
  .strictObject({
    id: z.string().describe('What the receiver gets as webhook-id.'),
    endpointId: z.string(),
    state: z.enum(DELIVERY_STATES).describe('dead: given up, until it is sent again.'),
    test: z.boolean(),
    notifications: z.int().describe('How many notifications it tells.'),
    attempts: z.int(),
    createdAtMs: epochMs,
    nextAttemptAtMs: epochMs.nullable(),
    giveUpAtMs: epochMs,
    lastAttemptAtMs: epochMs.nullable(),
    lastStatus: z.int().nullable().describe('HTTP status of the last answer.'),
    lastError: z.string().nullable(),
    finishedAtMs: epochMs.nullable(),
  })
  .meta({ id: 'NotificationDelivery' })

export const deliveryWithPayload = z
  .strictObject({ ...delivery.shape, payload: notificationPayload })
  .meta({ id: 'NotificationDeliveryWithPayload' })
