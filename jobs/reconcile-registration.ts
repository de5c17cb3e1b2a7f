import { DONE, type JobHandler } from './job-handler.ts'

/** One job for each broker, on the broker's own queue: a sick broker holds up nobody else. */
export const reconcileRegistration: JobHandler<'reconcile-registration'> = async (payload, { services, enqueue }) => {
  const pairs = await services.pairsOfRegistration(payload.accountId, payload.registrationId)
  await enqueue.pairs(pairs, 'on-demand')
  return DONE
}
