import { DONE, type JobHandler } from './job-handler.ts'

/** Of one poll; the rest waits for the next. */
const LIMIT = 500

/** Finds every endpoint with something to send, also those whose job was lost. */
export const pollNotifications: JobHandler<'poll-notifications'> = async (_payload, { services, enqueue }) => {
  const endpoints = await services.dueEndpoints(LIMIT)
  if (endpoints.length > 0) await enqueue.notifications(endpoints)
  return DONE
}
