import { DONE, type JobHandler } from './job-handler.ts'

export const pruneRecords: JobHandler<'prune-records'> = async (_payload, { services }) => {
  await services.pruneRecords()
  return DONE
}
