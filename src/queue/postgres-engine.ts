import { createPostgresBackend, Queue, runMigrations } from 'bullmq'
import pg from 'pg'
import { KeymeshError } from '../domain/errors.ts'
import { type BullEngine, EVENTS } from './bullmq-engine.ts'
import type { QueueBacklog } from './job-queue.ts'
import { PacedWorker } from './paced-worker.ts'
import { repeatDeadlocked } from './repeat-deadlocked.ts'

/** The library's own schema, beside the service's tables. With a pool of ours it looks for this name. */
export const QUEUE_SCHEMA = 'bullmq'

export interface PostgresEngineOptions {
  readonly connectionString: string
  /** Connections for queries; each worker adds one that listens. */
  readonly baseConnections: number
  readonly onError: (error: Error) => void
}

/**
 * BullMQ on PostgreSQL through one pool: `baseConnections` for queries and one slot per worker, which holds it for
 * LISTEN as long as it lives. With a pool that is too small no job would run and nothing would say so, so the pool grows
 * with the workers. A pooler in transaction mode cannot carry LISTEN: give a direct address.
 */
export async function openPostgresEngine(options: PostgresEngineOptions): Promise<BullEngine> {
  const config = poolConfig(options.connectionString)
  await migrateQueue(config)
  const pool = new pg.Pool({ ...config, max: options.baseConnections })
  repeatDeadlocked(pool)
  // Each queue and worker adds a listener of its own.
  pool.setMaxListeners(0)
  pool.on('error', options.onError)
  // One that breaks while it is lent out tells its query, and itself as an error that would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  let workers = 0
  const resize = (change: 1 | -1): void => {
    workers += change
    pool.options.max = options.baseConnections + workers
  }
  return {
    engine: 'postgresql',
    newQueue: (name) => new Queue(name, { connection: pool, streams: EVENTS }, createPostgresBackend),
    newWorker(name, processor, workerOptions) {
      resize(1)
      return new PacedWorker(name, processor, { ...workerOptions, connection: pool }, createPostgresBackend)
    },
    backlog: (queues, nowMs) =>
      readBacklog(
        pool,
        queues.map(({ name }) => name),
        nowMs,
      ),
    workerClosed: () => resize(-1),
    maxConnections: () => options.baseConnections + workers,
    close: () => pool.end(),
    // Connections end with the process.
    abandon: () => undefined,
  }
}

/** A job that is delayed keeps the time for which it was delayed; one whose time has come waits, whatever its state. */
async function readBacklog(pool: pg.Pool, names: readonly string[], nowMs: number): Promise<readonly QueueBacklog[]> {
  const { rows } = await pool.query<QueueBacklog>(
    `select queue, count(*) filter (where state = 'waiting')::int as waiting,
       count(*) filter (where state = 'active')::int as active, count(*) filter (where state = 'delayed')::int as delayed,
       count(*) filter (where state = 'failed')::int as failed,
       (min(coalesce(process_at_ms, added_at_ms)) filter (where state = 'waiting' or process_at_ms <= $2
         and state = 'delayed'))::float8 as "waitingSinceMs"
     from job where queue = any($1) and state in ('waiting', 'active', 'delayed', 'failed') group by queue`,
    [names, nowMs],
  )
  return rows
}

/** Safe when several replicas start at once: the library takes an advisory lock for its own transaction. */
async function migrateQueue(config: pg.PoolConfig): Promise<void> {
  const client = new pg.Client(config)
  // Also told to whoever waits for the query.
  client.on('error', () => undefined)
  await client.connect()
  try {
    await runMigrations(client, QUEUE_SCHEMA)
  } finally {
    await client.end()
  }
}

function poolConfig(connectionString: string): pg.PoolConfig {
  const url = parseUrl(connectionString)
  const given = url.searchParams.get('options')
  url.searchParams.delete('options')
  return {
    connectionString: url.href,
    options: [given, `-c search_path=${QUEUE_SCHEMA}`].filter((part) => part !== null).join(' '),
    application_name: 'keymesh-queue',
    // LISTEN notices a broken network only this way, and in seconds: left alone the system asks after two hours.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 10_000,
  }
}

/** Over a unix socket a worker whose database went away spins without a pause and does not come back. */
function parseUrl(connectionString: string): URL {
  const url = URL.canParse(connectionString) ? new URL(connectionString) : null
  const host = url === null ? '' : decodeURIComponent(url.searchParams.get('host') ?? url.hostname)
  if (url !== null && host !== '' && !host.startsWith('/')) return url
  throw new KeymeshError({
    code: 'QUEUE_ADDRESS',
    fate: 'stop',
    message: 'The queue needs the database over TCP, and its address names no host (a unix socket, or no URL).',
    hint: 'Write DATABASE_URL as postgres://user@host:port/name, or give the queue a Redis server with REDIS_URL.',
  })
}
