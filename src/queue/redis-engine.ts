import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { type BullEngine, EVENTS } from './bullmq-engine.ts'
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
