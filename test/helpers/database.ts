import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, inject } from 'vitest'
import type { TestServer } from './global-setup.ts'

export interface TestDatabase {
  readonly connectionString: string
  /** Closed by `drop`. */
  readonly pool: pg.Pool
  /** Drops the database; throws when connections other than the pool's are still open. */
  drop(): Promise<void>
}

export interface TestDatabaseOptions {
  /** False for a database without any table. */
  readonly migrated?: boolean
  /** How long `drop` waits for connections that are just closing. */
  readonly leakWaitMs?: number
}

/**
 * A database for one test file, made before its tests and dropped after them:
 * `const database = withDatabase()`, then `database().pool` inside a test.
 */
export function withDatabase(options: TestDatabaseOptions = {}): () => TestDatabase {
  let database: TestDatabase | undefined
  beforeAll(async () => {
    database = await createTestDatabase(options)
  })
  afterAll(async () => {
    await database?.drop()
  })
  return () => {
    if (database === undefined) throw new Error('the test database exists only inside tests and hooks')
    return database
  }
}

export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { migrated = true, leakWaitMs = 3_000 } = options
  const server = await testServer()
  const name = `keymesh_test_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name} template ${migrated ? server.template : 'template0'}`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href, max: 5 })
  // A server that is stopped under a test must not end the test's process.
  pool.on('error', () => undefined)
  return {
    connectionString: url.href,
    pool,
    async drop() {
      await pool.end()
      const leaked = await connectionsLeft(server, name, leakWaitMs)
      await onServer(server, `drop database if exists ${name} with (force)`)
      if (leaked.length > 0) {
        throw new Error(`${leaked.length} connections to the test database were left open:\n${leaked.join('\n')}`)
      }
    },
  }
}

async function testServer(): Promise<TestServer> {
  const response = await fetch(inject('testDatabaseOrigin'))
  if (!response.ok) throw new Error(`the test database did not start: ${await response.text()}`)
  return (await response.json()) as TestServer
}

/** A client's end is seen by the server a moment later, so this waits, but not for long. */
async function connectionsLeft(server: TestServer, name: string, waitMs: number): Promise<string[]> {
  const giveUpAt = performance.now() + waitMs
  for (;;) {
    const { rows } = await onServer<{ application_name: string; state: string | null; query: string }>(
      server,
      `select application_name, state, query from pg_stat_activity
        where datname = '${name}' and backend_type = 'client backend'`,
    )
    if (rows.length === 0) return []
    if (performance.now() > giveUpAt) {
      return rows.map((row) => `${row.application_name || 'unnamed'} ${row.state ?? ''}: ${row.query.slice(0, 200)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function onServer<Row extends pg.QueryResultRow>(server: TestServer, sql: string): Promise<pg.QueryResult<Row>> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    return await client.query<Row>(sql)
  } finally {
    await client.end()
  }
}
