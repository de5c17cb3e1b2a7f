import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, inject } from 'vitest'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'

const WITHIN_MS = 20_000

export interface ChildOptions {
  readonly write?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly user?: { readonly uid: number; readonly gid: number }
}

export type ChildLine = Readonly<Record<string, unknown>>

/** Another process on a data directory; see `embedded-postgres-child.ts`. */
export class DatabaseChild {
  readonly #process: ChildProcess
  readonly lines: ChildLine[] = []
  #stderr = ''

  constructor(dataDirectory: string, options: ChildOptions = {}) {
    const program = join(inject('testProgramsDirectory'), 'test/helpers/embedded-postgres-child.js')
    const args = [program, dataDirectory, ...(options.write === true ? ['--write'] : [])]
    this.#process = spawn(process.execPath, args, {
      ...options.user,
      env: { PATH: process.env.PATH, HOME: '/nonexistent', ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const { stdout, stderr } = this.#process
    if (stdout === null || stderr === null) throw new Error('a child without pipes')
    createInterface(stdout).on('line', (line) => this.lines.push(JSON.parse(line)))
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
  }

  /** The first line that has this field. */
  async line(field: string): Promise<ChildLine> {
    return until(`the child prints ${field}`, () => {
      const found = this.lines.find((line) => field in line)
      if (found !== undefined) return found
      if (this.#process.exitCode === null && this.#process.signalCode === null) return null
      throw new Error(`the child ended before: ${JSON.stringify(this.lines)} ${this.#stderr}`)
    })
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'close')
    this.#process.kill('SIGKILL')
    await ended
  }

  /** Lets it stop in order. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null) return
    const ended = once(this.#process, 'close')
    this.#process.stdin?.end()
    await ended
  }
}

/** The value of `look` once it is not null. */
export async function until<Value>(what: string, look: () => Value | null | Promise<Value | null>): Promise<Value> {
  const giveUpAt = performance.now() + WITHIN_MS
  for (;;) {
    const value = await look()
    if (value !== null) return value
    if (performance.now() > giveUpAt) throw new Error(`waited ${WITHIN_MS / 1000} seconds in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Ids of the postmasters and of the watchdogs that serve a cluster; Linux only. */
export async function serversOf(clusterDirectory: string): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const words = (await readFile(join('/proc', name, 'cmdline'), 'utf8').catch(() => '')).split('\0')
    if (words.includes(clusterDirectory)) found.push(Number(name))
  }
  return found
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

export const isRoot = process.getuid?.() === 0
export const nobody = { uid: 65_534, gid: 65_534 }

export interface StartOptions {
  readonly dataDirectory?: string
  readonly packageDirectory?: string
  readonly unsafeFast?: boolean
  readonly maxConnections?: number
}

/** What a test of the embedded database works with; everything started through it ends with the test. */
export interface EmbeddedFixture {
  readonly directory: string
  /** `data` in `directory`; does not exist yet. */
  readonly dataDirectory: string
  /** Makes the data directory from a cluster that was made and stopped before: making one takes a second. */
  usePrepared(): Promise<void>
  start(options?: StartOptions): Promise<EmbeddedPostgres>
  startChild(options?: ChildOptions, dataDirectory?: string): DatabaseChild
  /** Runs after the test, last come first served. */
  release(act: () => Promise<unknown>): void
}

/** `const embedded = withEmbedded()`, then `embedded()` inside a test. */
export function withEmbedded(): () => EmbeddedFixture {
  let prepared: string
  let fixture: EmbeddedFixture | undefined
  let releases: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    prepared = await openDirectory('keymesh-prepared-')
    const dataDirectory = join(prepared, 'data')
    await startEmbeddedPostgres({ dataDirectory, log: quiet, unsafeFast: true }).then((database) => database.stop())
  })
  afterAll(() => rm(prepared, { recursive: true, force: true }))
  beforeEach(async () => {
    const directory = await openDirectory('keymesh-embedded-')
    const dataDirectory = join(directory, 'data')
    const release = (act: () => Promise<unknown>): void => void releases.push(act)
    release(() => rm(directory, { recursive: true, force: true }))
    fixture = {
      directory,
      dataDirectory,
      release,
      async usePrepared() {
        await promisify(execFile)('cp', ['-a', join(prepared, 'data'), dataDirectory])
      },
      async start(options = {}) {
        const database = await startEmbeddedPostgres({ dataDirectory, log: quiet, unsafeFast: true, ...options })
        release(() => database.stop())
        return database
      },
      startChild(options = {}, where = dataDirectory) {
        const child = new DatabaseChild(where, options)
        release(() => child.kill())
        return child
      },
    }
  })
  afterEach(async () => {
    const acts = releases.reverse()
    releases = []
    for (const act of acts) await act()
  })
  return () => {
    if (fixture === undefined) throw new Error('the embedded database of a test exists only inside it')
    return fixture
  }
}

/** As root PostgreSQL runs as another user, who has to pass through. */
async function openDirectory(prefix: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix))
  await chmod(directory, 0o711)
  return directory
}

export async function query(connectionString: unknown, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: String(connectionString) })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
