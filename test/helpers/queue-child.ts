import { startWorkers } from '../../jobs/start-workers.ts'
import { accountId, brokerId } from '../../src/domain/ids.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { openQueueBackend } from '../../src/queue/queue-backend.ts'

/**
 * A worker process for tests: `node queue-child.js JSON`. Prints one line per event. A registration whose
 * name begins with `slow` runs until its signal is aborted; all others are done at once.
 */
const { connection, broker, patienceMs } = JSON.parse(process.argv[2] ?? '') as {
  connection: { connectionString: string; redisUrl?: string; prefix?: string }
  broker: string
  patienceMs: number
}
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const backend = await openQueueBackend({
  ...connection,
  stalledIntervalMs: 1_000,
  observer: {
    onError: (_queue, error) => say(`error ${error.message}`),
    onJobFailed: ({ message }) => say(`failed ${message}`),
  },
})
const workers = await startWorkers({
  backend,
  enqueue: createEnqueuer({ backend, now: Date.now, onMissed: (what) => say(`missed ${what}`) }),
  onError: (what) => say(`error ${what}`),
  services: {
    laggingPairs: async () => [],
    revokedPairs: async () => [],
    pairsOfRegistration: async () => [],
    async reconcilePair({ registrationId }, _trigger, signal) {
      say(`start ${registrationId}`)
      if (registrationId.startsWith('slow')) await aborted(signal)
      say(`done ${registrationId}`)
      return 'done'
    },
    sweepBroker: async () => undefined,
    verifyBroker: async () => undefined,
    usableBrokers: async () => [{ accountId: accountId('acme'), brokerId: brokerId(broker), paused: false }],
    followRemoteCatalogue: async () => false,
    retireExpired: async () => 0,
    pruneRecords: async () => 0,
    dueEndpoints: async () => [],
    deliverNotifications: async () => 0,
  },
})
process.once('SIGTERM', () => {
  void workers
    .close(patienceMs)
    .then((clean) => say(`closed ${clean}`))
    .then(() => backend.close())
})
say('ready')

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })
}
