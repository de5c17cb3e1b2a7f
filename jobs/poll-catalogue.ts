import { DONE, type JobHandler } from './job-handler.ts'
import { pollRegistrations } from './poll-registrations.ts'

/**
 * A broker that came, went or was paused shows here first; then what another service's catalogue has that is new. What
 * has to be reconciled for it is looked for at once.
 */
export const pollCatalogue: JobHandler<'poll-catalogue'> = async (payload, context) => {
  await context.followBrokers()
  const changed = await context.services.followRemoteCatalogue(context.signal)
  return changed ? await pollRegistrations(payload, context) : DONE
}
