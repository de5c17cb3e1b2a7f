import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Schema } from './schema.ts'

export type Database = Kysely<Schema>

export interface OpenDatabase {
  readonly db: Database
  readonly pool: pg.Pool
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly connectionString: string
  readonly maxConnections: number
  /**
   * False where a crash of the database itself may lose the last moments: what is lost is found again on the broker.
   * The default waits for the disk.
   */
  readonly waitForDisk?: boolean
  /** Told of errors of idle connections, which would otherwise end the process. */
  readonly onIdleError: (error: Error) => void
}

// int8 as a number: generations, versions and ids of ours stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => Number(text))

const CLOSE_PATIENCE_MS = 3_000

/**
 * A connection that breaks while it is lent out tells its query, and itself as an error that nobody listens to, which
 * would end the process.
 */
function survivePoolErrors(pool: pg.Pool): void {
  pool.on('connect', (client) => client.on('error', () => undefined))
}

export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections,
    application_name: 'keymesh',
    ...(options.waitForDisk === false ? { options: '-c synchronous_commit=off' } : {}),
    // A broken network is noticed in seconds; left alone the system asks after two hours.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 10_000,
  })
  let closing = false
  pool.on('error', (error) => {
    // A connection that is being given back may still be told that its server stops.
    if (!closing) options.onIdleError(error)
  })
  survivePoolErrors(pool)
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  const close = async (): Promise<void> => {
    closing = true
    // A server that is silent does not let its connections go; they end with the process.
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_PATIENCE_MS)
    })
    await Promise.race([db.destroy(), patience])
    clearTimeout(timer)
  }
  return { db, pool, close }
}
