import { randomBytes } from 'node:crypto'
import type { JobFailure } from '../../src/queue/job-queue.ts'
import { openQueueBackend, type QueueBackendOptions } from '../../src/queue/queue-backend.ts'
import { createTestDatabase } from './database.ts'
import { redisAvailable, startTestRedis } from './redis.ts'

export interface TestEngine {
  /** What opens the engine in this or another process. */
  readonly connection: Pick<QueueBackendOptions, 'connectionString' | 'redisUrl' | 'prefix'>
  readonly failures: JobFailure[]
  open(options?: Partial<QueueBackendOptions>): ReturnType<typeof openQueueBackend>
  /** Every job row (or key) as text. */
  dump(): Promise<string>
  stop(): Promise<void>
}

export interface EngineCase {
  readonly engine: 'PostgreSQL' | 'Redis'
  readonly skip: boolean
  start(): Promise<TestEngine>
}

/** Both engines; Redis is skipped, saying why, where there is none. */
export function engineCases(): EngineCase[] {
  const redis = redisAvailable()
  if (!redis.available) process.stderr.write(`skipped: the queue on Redis (${redis.reason})\n`)
  return [
    { engine: 'PostgreSQL', skip: false, start: startPostgres },
    { engine: 'Redis', skip: !redis.available, start: startRedis },
  ]
}

async function startPostgres(): Promise<TestEngine> {
  const database = await createTestDatabase({ migrated: false })
  return {
    ...engineOn({ connectionString: database.connectionString }),
    async dump() {
      const { rows } = await database.pool.query('select to_jsonb(job)::text as row from bullmq.job')
      return rows.map(({ row }) => row).join('\n')
    },
    stop: () => database.drop(),
  }
}

async function startRedis(): Promise<TestEngine> {
  const { Redis } = await import('ioredis')
  const server = await startTestRedis()
  const prefix = `test-${randomBytes(4).toString('hex')}`
  return {
    ...engineOn({ connectionString: '', redisUrl: server.url, prefix }),
    async dump() {
      const client = new Redis(server.url)
      const keys = await client.keys(`${prefix}:*`)
      const values = await Promise.all(
        keys.map(async (key) => ((await client.type(key)) === 'hash' ? JSON.stringify(await client.hgetall(key)) : '')),
      )
      client.disconnect()
      return values.join('\n')
    },
    stop: () => server.stop(),
  }
}

function engineOn(connection: TestEngine['connection']): Pick<TestEngine, 'connection' | 'failures' | 'open'> {
  const failures: JobFailure[] = []
  const observer = {
    onError: (queue: string, error: Error) => void process.stderr.write(`queue ${queue}: ${error.message}\n`),
    onJobFailed: (failure: JobFailure) => void failures.push(failure),
  }
  return {
    connection,
    failures,
    open: (options = {}) => openQueueBackend({ ...connection, observer, ...options }),
  }
}
