import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { type BullEngine, type BullQueue, EVENTS } from './bullmq-engine.ts'
import type { QueueBacklog } from './job-queue.ts'
import { PacedWorker } from './paced-worker.ts'

export interface RedisEngineOptions {
  readonly redisUrl: string
  /** Names every key; installations that share a server differ by it. */
  readonly prefix: string
  readonly onError: (error: Error) => void
}

/**
 * BullMQ on Redis or Valkey: one connection for commands and one per worker, which it blocks to wait for jobs. While the
 * server is away commands wait instead of failing, so whoever must not wait bounds the wait itself.
 */
export async function openRedisEngine({ redisUrl, prefix, onError }: RedisEngineOptions): Promise<BullEngine> {
  const connection = new Redis(redisUrl, {
    maxRetriesPerRequest: null,
    lazyConnect: true,
    connectionName: 'keymesh-queue',
    retryStrategy: (times) => Math.min(100 * 2 ** Math.min(times, 6), 5_000),
  })
  connection.setMaxListeners(0)
  connection.on('error', onError)
  let workers = 0
  return {
    engine: 'redis',
    newQueue: (name) => new Queue(name, { connection, prefix, streams: EVENTS }),
    newWorker(name, processor, options) {
      workers += 1
      return new PacedWorker(name, processor, { ...options, connection, prefix })
    },
    backlog: (queues, nowMs) => Promise.all(queues.map((queue) => readBacklog(queue, nowMs))),
    workerClosed() {
      workers -= 1
    },
    maxConnections: () => 1 + workers,
    async close() {
      // A command that waits for a server that is away would wait for ever.
      if (connection.status === 'ready') await connection.quit()
      else connection.disconnect()
    },
    abandon: () => connection.disconnect(),
  }
}

/** The first of each line is asked for: of jobs with priorities that is the one that is next, and hardly ever not the oldest. */
async function readBacklog(queue: BullQueue, nowMs: number): Promise<QueueBacklog> {
  const [counts, ...first] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
    queue.getJobs(['delayed'], 0, 0, true),
  ])
  const readyAtMs = first
    .flat()
    .map(({ timestamp, delay }) => timestamp + delay)
    .filter((atMs) => atMs <= nowMs)
  return {
    queue: queue.name,
    waiting: (counts.waiting ?? 0) + (counts.prioritized ?? 0),
    active: counts.active ?? 0,
    delayed: counts.delayed ?? 0,
    failed: counts.failed ?? 0,
    waitingSinceMs: readyAtMs.length === 0 ? null : Math.min(...readyAtMs),
  }
}
