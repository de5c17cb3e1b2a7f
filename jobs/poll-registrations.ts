import { DONE, type JobHandler } from './job-handler.ts'

/** Of one poll; the rest lags until the next. */
const LIMIT = 5_000

/** Finds every pair that lags, also those whose job was lost. */
export const pollRegistrations: JobHandler<'poll-registrations'> = async (_payload, { services, enqueue }) => {
  const revoked = await services.revokedPairs(LIMIT)
  if (revoked.length > 0) await enqueue.pairs(revoked, 'revocation')
  const pairs = await services.laggingPairs(LIMIT)
  if (pairs.length > 0) await enqueue.pairs(pairs, 'poll')
  return DONE
}
