import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'
import { type ClusterHome, clusterHome, openDataDirectory } from './data-directory.ts'
import { type DataDirectoryLock, tryLockDirectory } from './data-directory-lock.ts'
import { postgresBinaries } from './embedded-postgres-binaries.ts'
import { openCluster, SUPERUSER, writeFileAtomically } from './embedded-postgres-cluster.ts'
import { databaseLostError, directoryError, errnoOf } from './embedded-postgres-errors.ts'
import { type PostgresServer, startServer } from './embedded-postgres-server.ts'
import { canReach, type ServerUser, serverUserFor } from './embedded-postgres-user.ts'

const DATABASE = 'keymesh'
/** How long a process waits for another one that holds the data directory to be ready, or to be gone. */
const JOIN_WITHIN_MS = 30_000
const DEFAULT_MAX_CONNECTIONS = 200

export interface EmbeddedPostgresLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface EmbeddedPostgresOptions {
  readonly dataDirectory: string
  readonly log: EmbeddedPostgresLog
  /** 200 unless told. */
  readonly maxConnections?: number
  /** Gives up durability for speed. For tests only. */
  readonly unsafeFast?: boolean
  /** Where the PostgreSQL programs are; the installed npm package unless told. */
  readonly packageDirectory?: string
}

export interface EmbeddedPostgres {
  /** TCP on the loopback, with the password: never log it. */
  readonly connectionString: string
  readonly port: number
  /**
   * True when another live process serves this data directory. That process decides how long the server lives: when it
   * stops, this one's connections fail, and a new `startEmbeddedPostgres` takes over.
   */
  readonly joined: boolean
  /** The directory of the cluster itself; outside the data directory when PostgreSQL's user cannot reach that. */
  readonly clusterDirectory: string
  /** Resolves when the server ends although nobody called `stop`; never rejects, and never settles for a joined one. */
  readonly lost: Promise<KeymeshError>
  /** Stops the server with all that was committed on disk; only lets go when `joined`. Idempotent. */
  stop(): Promise<void>
}

const connectionSchema = z.object({ token: z.string(), port: z.number().int(), password: z.string() })

/**
 * Serves the data directory's own PostgreSQL, or joins the process that does. Creates whatever is missing. Runs as root
 * too, with PostgreSQL itself as an unprivileged user. A `kill -9` of this process leaves no server behind.
 * Throws KeymeshError: EMBEDDED_POSTGRES_UNAVAILABLE, DATA_DIRECTORY_UNUSABLE, DISK_FULL, DATABASE_VERSION,
 * DATABASE_MISSING, DATABASE_RECORD_MISSING, DATABASE_USER_UNKNOWN, DATABASE_USER_REFUSED, DATABASE_BUSY, DATABASE_START.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDirectory = await openDataDirectory(options.dataDirectory)
  try {
    return await serveOrJoin(options, dataDirectory)
  } catch (error) {
    throw directoryError('use the data directory', dataDirectory, error)
  }
}

async function serveOrJoin(options: EmbeddedPostgresOptions, dataDirectory: string): Promise<EmbeddedPostgres> {
  const home = await clusterHome(dataDirectory)
  const giveUpAt = performance.now() + JOIN_WITHIN_MS
  for (;;) {
    const { lock, holder } = await tryLockDirectory(home.directory)
    if (lock !== undefined) return serve(options, dataDirectory, home, lock)
    const joined = await joinRunning(home.directory, holder.token)
    if (joined !== null) return joined
    if (performance.now() > giveUpAt) throw busy(dataDirectory, holder.pid)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function serve(
  options: EmbeddedPostgresOptions,
  dataDirectory: string,
  home: ClusterHome,
  lock: DataDirectoryLock,
): Promise<EmbeddedPostgres> {
  const connectionFile = join(home.directory, 'connection.json')
  let server: PostgresServer | undefined
  try {
    await rm(connectionFile, { force: true })
    const started = await startCluster(options, dataDirectory, home)
    server = started.server
    const connectionString = urlOf(server.port, started.password)
    await createDatabase(server.port, started.password)
    const details = { token: lock.token, port: server.port, password: started.password }
    await writeFileAtomically(connectionFile, JSON.stringify(details))
    return handleOf(options, home, lock, server, connectionString, connectionFile)
  } catch (error) {
    await server?.stop()
    await lock.release()
    throw directoryError('start in', home.directory, error)
  }
}

async function startCluster(
  options: EmbeddedPostgresOptions,
  dataDirectory: string,
  home: ClusterHome,
): Promise<{ server: PostgresServer; password: string }> {
  const { log, unsafeFast = false, maxConnections = DEFAULT_MAX_CONNECTIONS } = options
  const user = await serverUserFor(join(home.directory, 'data'))
  if (!(await canReach(user, [home.directory]))) throw outOfReach(home.directory, user)
  const binaries = await postgresBinaries(user, join(dataDirectory, 'postgres-programs'), options.packageDirectory)
  const cluster = await openCluster(home.directory, binaries, user, unsafeFast)
  const onLine = (line: string): void => log.debug({ event: 'database.line' }, line)
  const server = await startServer({ binaries, cluster, user, maxConnections, unsafeFast, onLine })
  const fields = { directory: home.directory, programs: binaries.directory, port: server.port, uid: user?.uid }
  if (home.outside) {
    log.warn(
      { event: 'database.moved', ...fields },
      `The database of ${dataDirectory} is kept in ${home.directory}: user ${user?.uid} cannot reach the former`,
    )
  } else {
    log.info({ event: 'database.ready', ...fields }, 'The embedded database is ready')
  }
  return { server, password: cluster.password }
}

function handleOf(
  options: EmbeddedPostgresOptions,
  home: ClusterHome,
  lock: DataDirectoryLock,
  server: PostgresServer,
  connectionString: string,
  connectionFile: string,
): EmbeddedPostgres {
  let stopping: Promise<void> | undefined
  const lost = new Promise<KeymeshError>((resolve) => {
    void server.exited.then((exit) => {
      if (stopping !== undefined) return
      const error = databaseLostError(exit)
      options.log.error(
        { event: 'database.ended', code: exit.code, signal: exit.signal, output: exit.output },
        error.message,
      )
      resolve(error)
    })
  })
  const stop = async (): Promise<void> => {
    await rm(connectionFile, { force: true })
    try {
      await server.stop()
    } finally {
      await lock.release()
    }
  }
  return {
    connectionString,
    port: server.port,
    joined: false,
    clusterDirectory: join(home.directory, 'data'),
    lost,
    stop() {
      stopping ??= stop()
      return stopping
    },
  }
}

/** Null while the holder is not ready, or no more. */
async function joinRunning(homeDirectory: string, token: string): Promise<EmbeddedPostgres | null> {
  const details = await readConnection(join(homeDirectory, 'connection.json'))
  if (details === null || details.token !== token) return null
  const connectionString = urlOf(details.port, details.password)
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch {
    return null
  } finally {
    await client.end().catch(() => undefined)
  }
  return {
    connectionString,
    port: details.port,
    joined: true,
    clusterDirectory: join(homeDirectory, 'data'),
    lost: new Promise(() => undefined),
    stop: async () => undefined,
  }
}

async function readConnection(path: string): Promise<z.infer<typeof connectionSchema> | null> {
  try {
    return connectionSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw directoryError('read', path, error)
  }
}

/** Knowing the password, it also proves that the server on this port is ours. */
async function createDatabase(port: number, password: string): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf(port, password, 'postgres'), connectionTimeoutMillis: 10_000 })
  try {
    await client.connect()
    const found = await client.query('select from pg_database where datname = $1', [DATABASE])
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`)
  } finally {
    await client.end()
  }
}

function urlOf(port: number, password: string, database: string = DATABASE): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`
}

function outOfReach(directory: string, user: ServerUser): KeymeshError {
  return new KeymeshError({
    code: 'DATA_DIRECTORY_UNUSABLE',
    fate: 'stop',
    message: `The embedded database is in ${directory}, which user ${user?.uid} that PostgreSQL runs as can no longer reach.`,
    hint: 'Let other users pass through the directories on that path (chmod o+x), or run as the owner of the database.',
  })
}

function busy(dataDirectory: string, pid: number): KeymeshError {
  return new KeymeshError({
    code: 'DATABASE_BUSY',
    fate: 'wait',
    message: `Another process (${pid}) holds the data directory ${dataDirectory}, and its database cannot be reached from here.`,
    hint: 'Wait until that process is ready, or stop it. Containers that share a data directory need one network namespace.',
  })
}
