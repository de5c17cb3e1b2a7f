import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import type { Disposer } from '../../src/disposer.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'
import { benchDirectory, type Environment } from './bench-context.ts'

/** Enough for several services, each with a connection per broker. */
const MAX_CONNECTIONS = 500

/** One PostgreSQL server, which every process of a bench may reach, with a new database for each measurement. */
export class BenchCluster {
  readonly #connectionString: string
  #databases = 0

  private constructor(connectionString: string) {
    this.#connectionString = connectionString
  }

  static async start(opened: Disposer): Promise<BenchCluster> {
    const dataDirectory = join(await benchDirectory(opened), 'data')
    const log = pino({ level: 'silent' })
    const server = await startEmbeddedPostgres({ dataDirectory, log, maxConnections: MAX_CONNECTIONS })
    opened.defer(() => server.stop())
    return new BenchCluster(server.connectionString)
  }

  /** What processes need to share a new, empty database; it is gone with `opened`, whoever is still connected. */
  async create(opened: Disposer): Promise<Environment> {
    this.#databases += 1
    const name = `bench_${this.#databases}`
    await this.#query(`create database ${name}`)
    opened.defer(() => this.#query(`drop database ${name} with (force)`))
    const url = new URL(this.#connectionString)
    url.pathname = `/${name}`
    return { DATABASE_URL: url.href, KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal() }
  }

  async #query(text: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#connectionString })
    await client.connect()
    try {
      await client.query(text)
    } finally {
      await client.end()
    }
  }
}
