import { z } from 'zod'

const classOfServicePolicy = z
  .strictObject({
    id: z.string(),
    messageDeliveryMode: z.enum(['direct', 'guaranteed']),
    accessType: z.enum(['exclusive', 'non-exclusive']),
    maximumTimeToLive: z.int().min(-1).max(95_000_000).describe('Seconds; 0 and -1: messages do not expire.'),
    queueType: z.enum(['single', 'combined']).describe('One queue per Event API, or one per access request.'),
    maxMsgSpoolUsage: z.int().min(0).max(800_000).describe('MB.'),
  })
  .meta({ id: 'SolaceClassOfServicePolicy' })

export const plan = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    solaceClassOfServicePolicy: classOfServicePolicy,
    vendorClassOfServicePolicy: classOfServicePolicy.describe('The same under its vendor-neutral name.'),
  })
  .meta({ id: 'Plan' })
