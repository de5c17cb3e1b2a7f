import { DONE, type JobHandler } from './job-handler.ts'

export const sweepBroker: JobHandler<'sweep-broker'> = async ({ accountId, brokerId, trigger }, context) => {
  await context.services.sweepBroker({ accountId, brokerId }, trigger, context.signal, context.progress)
  return DONE
}
