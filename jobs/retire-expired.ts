import { DONE, type JobHandler } from './job-handler.ts'

export const retireExpired: JobHandler<'retire-expired'> = async (_payload, { services }) => {
  await services.retireExpired()
  return DONE
}
