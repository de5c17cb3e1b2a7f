import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'
import { migrate } from '../../src/store/migrate.ts'
import { migrations } from '../../src/store/migrations.ts'
import { useScratchDirectory } from './scratch-directory.ts'
import { compileTestPrograms } from './test-programs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Answers with a `TestServer`, which is started when the first test file asks. */
    testDatabaseOrigin: string
    /** Where `src`, `jobs` and the children in `test/helpers` are as JavaScript. */
    testProgramsDirectory: string
  }
}

export interface TestServer {
  /** Names a database that always exists. */
  readonly url: string
  /** A database with every migration applied, to clone. */
  readonly template: string
}

/** Runs once per vitest run, in its main process. The database server waits until a test file asks for it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const removeScratch = await useScratchDirectory()
  let started: Promise<RunningServer> | undefined
  const origin = createServer((_request, response) => {
    started ??= startServer()
    started.then(
      ({ server }) => response.setHeader('content-type', 'application/json').end(JSON.stringify(server)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
  const address = origin.address()
  if (address === null || typeof address === 'string') throw new Error('no port for the test database')
  project.provide('testDatabaseOrigin', `http://127.0.0.1:${address.port}/`)
  const programs = await compileTestPrograms()
  project.provide('testProgramsDirectory', programs.directory)
  return async () => {
    await programs.remove()
    origin.closeAllConnections()
    await new Promise((resolve) => origin.close(resolve))
    await (await started)?.stop()
    await removeScratch()
  }
}

interface RunningServer {
  readonly server: TestServer
  stop(): Promise<void>
}

async function startServer(): Promise<RunningServer> {
  const template = `keymesh_template_${randomBytes(6).toString('hex')}`
  const given = process.env.KEYMESH_TEST_DATABASE_URL
  if (given !== undefined && given !== '') {
    await makeTemplate(given, template)
    return { server: { url: given, template }, stop: () => onServer(given, `drop database if exists ${template}`) }
  }
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-test-'))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(directory, 0o711)
  let embedded: EmbeddedPostgres | undefined
  const stop = async (): Promise<void> => {
    await embedded?.stop()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const dataDirectory = join(directory, 'data')
    embedded = await startEmbeddedPostgres({ dataDirectory, log: quiet, maxConnections: 300, unsafeFast: true })
    await makeTemplate(embedded.connectionString, template)
    return { server: { url: embedded.connectionString, template }, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

async function makeTemplate(url: string, template: string): Promise<void> {
  await onServer(url, `create database ${template} template template0`)
  const templateUrl = new URL(url)
  templateUrl.pathname = `/${template}`
  const pool = new pg.Pool({ connectionString: templateUrl.href, max: 1 })
  try {
    await migrate(pool, migrations)
  } finally {
    await pool.end()
  }
}

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
