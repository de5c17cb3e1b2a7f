import { DONE, type JobHandler } from './job-handler.ts'

/** Another holder of the lease is at work on the pair; it is looked at again when that one is likely done. */
const BUSY_AGAIN_MS = 1_000
/** Its username is off already; what is left to do is to see that nobody switched it on since. */
const REVOCATION_AGAIN_MS = 200

export const reconcilePair: JobHandler<'reconcile-pair'> = async (payload, { services, signal }) => {
  const { accountId, brokerId, registrationId, trigger } = payload
  const outcome = await services.reconcilePair({ accountId, brokerId, registrationId }, trigger, signal)
  return outcome === 'busy'
    ? { status: 'again', afterMs: trigger === 'revocation' ? REVOCATION_AGAIN_MS : BUSY_AGAIN_MS }
    : DONE
}
