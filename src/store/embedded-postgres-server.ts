import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { KeymeshError } from '../domain/errors.ts'
import type { PostgresBinaries } from './embedded-postgres-binaries.ts'
import type { Cluster } from './embedded-postgres-cluster.ts'
import { databaseStartError } from './embedded-postgres-errors.ts'
import { readPostmasterFile, stopOrphan } from './embedded-postgres-orphan.ts'
import { type ServerUser, spawnIdentity } from './embedded-postgres-user.ts'

/** Recovery after a crash may take long; a server that works on it is not given up early. */
const READY_WITHIN_MS = 600_000
/** A server that was just killed holds its shared memory until its last child is gone. */
const PREDECESSOR_GONE_WITHIN_MS = 15_000
const PORT_ATTEMPTS = 10
const FAST_STOP_MS = 15_000
const IMMEDIATE_STOP_MS = 5_000

export interface ServerExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The last lines that the server wrote. */
  readonly output: string
}

export interface PostgresServer {
  readonly port: number
  readonly pid: number
  /** Settles once, however the server ends. */
  readonly exited: Promise<ServerExit>
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly binaries: PostgresBinaries
  readonly cluster: Cluster
  readonly user: ServerUser
  readonly maxConnections: number
  readonly unsafeFast: boolean
  /** Each line that the server writes. */
  readonly onLine: (line: string) => void
}

/** Starts the server on a free loopback port, after whatever an earlier one left is out of the way. */
export async function startServer(options: ServerOptions): Promise<PostgresServer> {
  const giveUpAt = performance.now() + PREDECESSOR_GONE_WITHIN_MS
  let portAttempts = 0
  for (;;) {
    const { reusedPid } = await stopOrphan(options.cluster.dataDirectory)
    const port = await freePort()
    const server = launch(options, port, reusedPid)
    const failure = await readyOrExit(server, options.cluster.dataDirectory)
    if (failure === null) return server
    const portTaken = /could not bind|Address already in use|could not create any TCP\/IP sockets/.test(failure.output)
    const predecessor = /lock file .* already exists|still in use|being accessed/.test(failure.output)
    if (portTaken && ++portAttempts < PORT_ATTEMPTS) continue
    if (predecessor && performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      continue
    }
    throw databaseStartError(`start on ${options.cluster.dataDirectory}`, failure.output)
  }
}

/** Null when it is ready. */
async function readyOrExit(server: PostgresServer, dataDirectory: string): Promise<ServerExit | null> {
  const end = performance.now() + READY_WITHIN_MS
  while (performance.now() < end) {
    const exit = await Promise.race([server.exited, new Promise<null>((resolve) => setTimeout(resolve, 10, null))])
    if (exit !== null) return exit
    const file = await readPostmasterFile(dataDirectory)
    if (file?.pid === server.pid && file.ready) return null
  }
  await server.stop()
  throw databaseStartError(`start on ${dataDirectory}`, `it was not ready after ${READY_WITHIN_MS / 1000} seconds`)
}

function launch(options: ServerOptions, port: number, reusedPid: number | null): PostgresServer {
  const child = spawnServer(options, port, reusedPid)
  const lines = lastLinesOf(child, options.onLine)
  const exited = new Promise<ServerExit>((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, output: error.message }))
    child.once('exit', (code, signal) => {
      // Tells the watchdog that there is nothing left to stop, before the process id may be reused.
      child.stdin?.end('\n')
      const done = (): void => resolve({ code, signal, output: lines.join('\n') })
      // A reader that was given the pipe's last bytes closes it; a backend that lingers may not hold this up.
      const patience = setTimeout(done, 500)
      child.once('close', () => {
        clearTimeout(patience)
        done()
      })
    })
  })
  child.stdin?.on('error', () => undefined)
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= stopServer(child, exited, options)
    return stopping
  }
  return { port, pid: child.pid ?? -1, exited, stop }
}

/**
 * Becomes the server, after it leaves a small shell behind that waits on a pipe from this process. When this process ends
 * in whatever way, the pipe closes and the shell asks the server for a fast shutdown, which keeps all that was committed;
 * a server that is busy with recovery may miss that, so an immediate one follows. The shell is detached by a second fork:
 * PostgreSQL takes the violent end of any child of its own for a crash of the database.
 */
const WATCHDOG = `exec 3<&0
( {
  read -r line <&3 && exit
  kill -INT "$$"
  for second in 1 2 3 4 5; do sleep 1; kill -0 "$$" || exit; done
  kill -QUIT "$$"
} >/dev/null 2>&1 & )
exec "$@" 3<&- </dev/null`

function spawnServer(options: ServerOptions, port: number, reusedPid: number | null): ChildProcess {
  const program = join(options.binaries.directory, 'bin', 'postgres')
  const settings = serverSettings(options, port).flatMap((setting) => ['-c', setting])
  const args = ['-D', options.cluster.dataDirectory, ...settings]
  if (process.platform === 'win32')
    return spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'], env: { LC_ALL: 'C' } })
  return spawn('/bin/sh', ['-c', WATCHDOG, 'sh', program, ...args], {
    ...spawnIdentity(options.user),
    cwd: '/',
    // PostgreSQL passes over its grandparent when it looks for a rival: its own way to say that an id was reused.
    env: {
      LC_ALL: 'C',
      PATH: '/usr/bin:/bin',
      ...(reusedPid === null ? {} : { PG_GRANDPARENT_PID: String(reusedPid) }),
    },
    stdio: ['pipe', 'ignore', 'pipe'],
    // Its own session: the terminal's Ctrl-C must reach Keymesh, which drains and then stops the server.
    detached: true,
  })
}

function serverSettings({ maxConnections, unsafeFast }: ServerOptions, port: number): string[] {
  return [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `max_connections=${maxConnections}`,
    'password_encryption=scram-sha-256',
    'timezone=UTC',
    'log_timezone=UTC',
    'logging_collector=off',
    'log_destination=stderr',
    // Statements and rows may hold sealed secrets; the caller gets the error anyway.
    'log_min_error_statement=panic',
    'log_error_verbosity=terse',
    // Recovering in place can hang for ever on a full disk; a new start recovers, and says what is wrong when it cannot.
    'restart_after_crash=off',
    ...(unsafeFast ? ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'] : []),
  ]
}

async function stopServer(child: ChildProcess, exited: Promise<ServerExit>, options: ServerOptions): Promise<void> {
  if (process.platform === 'win32') {
    const pgCtl = join(options.binaries.directory, 'bin', 'pg_ctl')
    await promisify(execFile)(pgCtl, ['stop', '-m', 'fast', '-D', options.cluster.dataDirectory])
    await exited
    return
  }
  for (const [signal, withinMs] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
    ['SIGKILL', IMMEDIATE_STOP_MS],
  ] as const) {
    child.kill(signal)
    if (await settlesWithin(exited, withinMs)) return
  }
  throw new KeymeshError({
    code: 'DATABASE_STOP',
    fate: 'stop',
    message: `The embedded database (process ${child.pid}) does not stop.`,
    hint: 'Look at the disk: a process that waits for it cannot end. What was committed is kept.',
  })
}

async function settlesWithin(promise: Promise<unknown>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, withinMs, false)
  })
  const settled = await Promise.race([promise.then(() => true), timeout])
  clearTimeout(timer)
  return settled
}

const REFUSED_CLIENT = /FATAL: {2}(?:the database system is|terminating connection)/

function lastLinesOf(child: ChildProcess, onLine: (line: string) => void): string[] {
  const last: string[] = []
  let rest = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n')
    rest = (lines.pop() ?? '').slice(-4096)
    for (const line of lines) {
      // Clients that try again would push out why it ends.
      if (!REFUSED_CLIENT.test(line)) last.push(line)
      if (last.length > 20) last.shift()
      onLine(line)
    }
  })
  return last
}

async function freePort(): Promise<number> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port)
        else reject(new Error('the operating system gave no port'))
      })
    })
  })
}
