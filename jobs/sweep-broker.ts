import { DONE, type JobHandler } from './job-handler.ts'

export const sweepBroker: JobHandler<'sweep-broker'> = async ({ trigger, ...broker }, context) => {
  await context.services.sweepBroker(broker, trigger, context.signal, context.progress)
  return DONE
}
