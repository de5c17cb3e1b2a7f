import { DONE, type JobHandler } from './job-handler.ts'

/** What fails is tried again when its time comes: the poll finds it, the job itself has done its work. */
export const deliverNotifications: JobHandler<'deliver-notifications'> = async (payload, { services, signal }) => {
  const { accountId, endpointId } = payload
  await services.deliverNotifications({ accountId, endpointId }, signal)
  return DONE
}
