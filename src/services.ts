import type { JobServices } from '../jobs/job-services.ts'
import type { Context } from './context.ts'
import { codeOf } from './domain/errors.ts'
import { listManagedBrokers } from './store/broker-settings.ts'
import { retireExpired } from './store/generations.ts'
import { dueEndpoints, noticeExpiring } from './store/notification-outbox.ts'
import { laggingPairs, pairsOfRegistration, revokedPairs } from './store/pairs.ts'
import { pruneRecords } from './store/prune.ts'

const RETIRE_BATCH = 500

/** What the jobs call, on the context of this process. */
export function createJobServices({ db, engine, remote, notifier, now, config }: Context): JobServices {
  return {
    laggingPairs: (limit) => laggingPairs(db, limit),
    revokedPairs: (limit) => revokedPairs(db, limit),
    pairsOfRegistration: (accountId, registrationId) => pairsOfRegistration(db, accountId, registrationId),
    reconcilePair: (pair, trigger, signal) =>
      unlessPaused<'done' | 'busy' | 'gone'>(
        async () => (await engine.reconcilePair(pair, { trigger, signal })).status,
        'done',
      ),
    sweepBroker: (broker, trigger, signal, onProgress) =>
      unlessPaused(async () => {
        await engine.sweep(broker, { trigger, signal, onProgress: ({ done }) => onProgress(done, null) })
      }, undefined),
    followRemoteCatalogue: async (signal) => (remote === null ? false : await remote.poll(signal)),
    verifyBroker: async (broker, what, signal, onProgress) => {
      let logins = 0
      for await (const finding of engine.verify(broker, { ...what, signal })) {
        if (finding.type === 'login') logins += 1
        onProgress(logins, null)
      }
    },
    usableBrokers: () => listManagedBrokers(db),
    retireExpired: async () => {
      await noticeExpiring(db, now(), config.notifications.expiryNoticeMs)
      return await retireExpired(db, now(), RETIRE_BATCH)
    },
    pruneRecords: () => pruneRecords(db, now() - config.retentionMs),
    dueEndpoints: (limit) => dueEndpoints(db, now(), limit),
    deliverNotifications: (endpoint, signal) => notifier.deliver(endpoint, signal),
  }
}

/** Nothing is lost with the job: who resumes asks again, and the poll finds what lags. */
async function unlessPaused<Result>(run: () => Promise<Result>, paused: Result): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (codeOf(error) !== 'PAUSED') throw error
    return paused
  }
}
