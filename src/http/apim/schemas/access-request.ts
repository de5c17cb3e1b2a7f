import { z } from 'zod'
import { catalogueIdProblem } from '../../../domain/names.ts'
import { filter } from './filter.ts'
import { externalId, judged, ofRegistration, pathExternalId } from './registration-id.ts'

const catalogueId = judged(
  z
    .string()
    .min(2)
    .max(64)
    .regex(/^[a-zA-Z0-9]*$/, 'may contain letters and digits only'),
  catalogueIdProblem,
)

const state = z
  .enum(['PENDING_APPROVAL', 'REJECTED', 'REVOKED', 'APPROVED', 'ERROR', 'LIVE'])
  .meta({ id: 'AccessRequestState' })

const queue = z
  .strictObject({
    name: z.string().describe('Of the queue on the broker.'),
    eventApiId: z.string().optional().describe('Where each Event API has a queue of its own.'),
    accessType: z.enum(['exclusive', 'non-exclusive']),
    maxTtl: z.int().describe('Seconds; 0: messages do not expire.'),
    maxMsgSpoolUsage: z.int().describe('MB.'),
  })
  .meta({ id: 'GuaranteedMessagingInformation' })

export const accessRequest = z
  .strictObject({
    accessRequestId: z.string(),
    registrationId: z.string(),
    eventApiProductId: z.string(),
    eventApiProductVersion: z.string().describe('Of the time when access was asked for.'),
    planId: z.string(),
    state: state.describe('LIVE: in effect on every broker of the product. ERROR: a person is needed.'),
    reason: z
      .string()
      .optional()
      .describe('Of ERROR: which broker, what happened there, what to do next.')
      .meta({ example: 'Broker Frankfurt: the client username app-1 exists and is not ours. …' }),
    filters: z.array(filter),
    eventApiProductResourceInformation: queue.optional().describe('The queue of the request.'),
    eventApiResourceInformation: z.array(queue).optional().describe('The queue of each Event API.'),
  })
  .meta({ id: 'EventApiProductRegistration' })

export const accessRequestCreation = z
  .strictObject({ accessRequestId: externalId, eventApiProductId: catalogueId, planId: catalogueId })
  .meta({ id: 'EventApiProductRegistrationCreate' })

/** Without a state nothing changes. */
export const accessRequestUpdate = z
  .strictObject({ state: state.optional() })
  .meta({ id: 'EventApiProductRegistrationUpdate' })

export const ofAccessRequest = ofRegistration.extend({ accessRequestId: pathExternalId })
