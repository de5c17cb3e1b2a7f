import type { JobServices } from '../jobs/job-services.ts'
import type { Context } from './context.ts'
import { listManagedBrokers } from './store/broker-settings.ts'
import { retireExpired } from './store/generations.ts'
import { laggingPairs, pairsOfRegistration } from './store/pairs.ts'
import { pruneRecords } from './store/prune.ts'

const RETIRE_BATCH = 500

/** What the jobs call, on the context of this process. */
export function createJobServices({ db, engine, now, config }: Context): JobServices {
  return {
    laggingPairs: (limit) => laggingPairs(db, limit),
    pairsOfRegistration: (accountId, registrationId) => pairsOfRegistration(db, accountId, registrationId),
    reconcilePair: async (pair, trigger, signal) => (await engine.reconcilePair(pair, { trigger, signal })).status,
    sweepBroker: async (broker, trigger, signal, onProgress) => {
      await engine.sweep(broker, { trigger, signal, onProgress: ({ done }) => onProgress(done, null) })
    },
    usableBrokers: () => listManagedBrokers(db),
    retireExpired: () => retireExpired(db, now(), RETIRE_BATCH),
    pruneRecords: () => pruneRecords(db, now() - config.retentionMs),
  }
}
