import { z } from 'zod'
import { catalogueIdProblem, nameProblem } from '../../../domain/names.ts'
import { accessRequest } from './access-request.ts'
import { attribute, attributeCreation } from './attribute.ts'
import { credential } from './credential.ts'
import { filter } from './filter.ts'
import { messagingService } from './messaging-service.ts'
import { eventApiVersion } from './product.ts'
import { externalId, judged, name } from './registration-id.ts'
import { webhook } from './webhook.ts'

const applicationDomainId = judged(
  z
    .string()
    .min(2)
    .max(64)
    .regex(/^[a-zA-Z0-9]*$/, 'may contain letters and digits only'),
  catalogueIdProblem,
)
const sourceOwner = judged(z.string().max(128).regex(/^.*$/, 'must be one line'), (text) =>
  text === '' ? null : nameProblem(text),
)

export const registrationCreation = z
  .strictObject({
    registrationId: externalId.describe('The id of the application in the system that manages it.'),
    source: externalId.describe('That system.'),
    name,
    sourceOwner: sourceOwner.optional(),
    applicationDomainId: applicationDomainId.optional(),
    attributes: z
      .array(attributeCreation)
      .max(256)
      .superRefine((list, context) => {
        const known = new Set<string>()
        for (const [index, each] of list.entries()) {
          if (known.has(each.name))
            context.addIssue({ code: 'custom', path: [index, 'name'], message: 'is not unique' })
          known.add(each.name)
        }
      })
      .optional(),
  })
  .meta({ id: 'ApplicationRegistration' })

/** What is left out stays. */
export const registrationUpdate = z
  .strictObject({
    name: name.optional(),
    sourceOwner: sourceOwner.optional(),
    applicationDomainId: applicationDomainId.optional(),
  })
  .meta({ id: 'ApplicationRegistrationUpdate' })

const channelPermissions = z
  .record(
    z.string(),
    z
      .strictObject({
        permissions: z.array(z.string()).describe('Topics, as brokers allow them.'),
        channelId: z.string().optional(),
        isChannel: z.boolean(),
      })
      .meta({ id: 'ChannelPermission' }),
  )
  .describe('By the name of the channel.')

const gateway = z
  .strictObject({
    name: z.string(),
    messagingServiceConnections: messagingService.shape.messagingServiceConnections,
    permissions: z
      .strictObject({ publish: z.array(channelPermissions), subscribe: z.array(channelPermissions) })
      .meta({ id: 'Permissions' }),
  })
  .meta({ id: 'AppRegistrationMessagingService' })

export const registration = z
  .strictObject({
    registrationId: z.string(),
    source: z.string(),
    name: z.string(),
    sourceOwner: z.string().optional(),
    applicationDomainId: z.string().optional(),
    brokerType: z.enum(['solace', 'kafka']),
    attributes: z.array(attribute),
    filters: z.array(filter),
    accessRequests: z.array(accessRequest),
    apis: z.array(eventApiVersion),
    credentials: z.array(credential),
    webhooks: z.array(webhook),
    gatewayMessagingServices: z.array(gateway),
  })
  .meta({ id: 'ApplicationRegistrationView' })
