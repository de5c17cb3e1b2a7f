import { DONE, type JobHandler } from './job-handler.ts'

/** A broker that came, went or was paused shows here first. */
export const pollCatalogue: JobHandler<'poll-catalogue'> = async (_payload, { followBrokers }) => {
  await followBrokers()
  return DONE
}
