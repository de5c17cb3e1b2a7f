import { z } from 'zod'
import { PROTOCOLS } from '../../../domain/catalogue.ts'

const protocol = z.enum(PROTOCOLS).meta({ id: 'MessagingServiceProtocol' })

/** A broker that a product can be used on. */
export const messagingServiceOfProduct = z
  .strictObject({
    id: z.string(),
    messagingServiceId: z.string(),
    messagingServiceName: z.string(),
    solaceCloudMessagingServiceId: z.string(),
    vendorCloudMessagingServiceId: z.string().describe('The same under its vendor-neutral name.'),
    supportedProtocols: z.array(protocol),
    environmentName: z.string(),
    eventMeshName: z.string(),
  })
  .meta({ id: 'SolaceMessagingService' })

/** A broker with the addresses of its protocols; no credentials, which every registration has of its own. */
export const messagingService = z
  .strictObject({
    id: z.string(),
    solaceCloudMessagingServiceId: z.string(),
    vendorCloudMessagingServiceId: z.string().describe('The same under its vendor-neutral name.'),
    brokerType: z.enum(['solace', 'kafka']),
    name: z.string(),
    messagingServiceConnections: z.array(
      z.strictObject({
        name: z.string(),
        url: z.string(),
        protocol,
        protocolVersion: z.string(),
        bindings: z.record(z.string(), z.string()),
        messagingServiceAuthentications: z.array(z.never()),
      }),
    ),
    environmentName: z.string(),
    eventMeshName: z.string(),
  })
  .meta({ id: 'MessagingService' })
