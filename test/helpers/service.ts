import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { serversOf } from './embedded-postgres.ts'

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))
/** A start on a busy machine makes a cluster first. */
const WITHIN_MS = 60_000

export interface ServiceOptions {
  readonly dataDirectory: string
  readonly env?: Readonly<Record<string, string>>
  /** Words of another command than `serve`. */
  readonly command?: readonly string[]
}

export type LogLine = Readonly<Record<string, unknown>>

/** `keymesh serve` in a process of its own, on the embedded database of a data directory. */
export class Service implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #dataDirectory: string
  readonly #ended: Promise<unknown>
  /** The JSON lines of its log, and any other line as `{ text }`. */
  readonly log: LogLine[] = []
  /** Everything that it printed, as it came. */
  printed = ''

  private constructor({ dataDirectory, env, command = ['serve'] }: ServiceOptions) {
    this.#dataDirectory = dataDirectory
    this.#process = spawn(process.execPath, [join(inject('testProgramsDirectory'), 'src/main.js'), ...command], {
      cwd: REPOSITORY,
      env: { PATH: process.env.PATH, HOME: '/nonexistent', KEYMESH_DATA_DIR: dataDirectory, PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#ended = once(this.#process, 'close')
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      if (stream === null) throw new Error('a service without pipes')
      createInterface(stream).on('line', (line) => {
        this.printed += `${line}\n`
        this.log.push(parsed(line))
      })
    }
  }

  /** Does not wait until it is at work: for one that is stopped on its way there, or another command. */
  static begin(options: ServiceOptions): Service {
    return new Service(options)
  }

  /** Resolves when it is at work. */
  static async start(options: ServiceOptions): Promise<Service> {
    const service = new Service(options)
    try {
      await service.logged('service.started')
      return service
    } catch (error) {
      await service.kill()
      throw error
    }
  }

  /** The first line of the log with this event. Throws when the process ends before. */
  async logged(event: string): Promise<LogLine> {
    return until(`the service logs ${event}`, () => {
      const found = this.log.find((line) => line.event === event)
      if (found !== undefined) return found
      if (this.isRunning) return null
      throw new Error(`the service ended before it logged ${event}:\n${this.printed}`)
    })
  }

  /** SIGTERM; resolves with the exit status when the process is gone. */
  async stop(): Promise<number | null> {
    if (this.isRunning) this.#process.kill('SIGTERM')
    await this.#ended
    return this.#process.exitCode
  }

  /** SIGSTOP: it stands still, with all that it holds, until `resume`. */
  pause(): void {
    this.#process.kill('SIGSTOP')
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    if (this.isRunning) this.#process.kill('SIGKILL')
    await this.#ended
  }

  /** Resolves when no database server and no watchdog of one is left; a watchdog ends a moment after its server. */
  async databaseGone(): Promise<void> {
    await until('the database is gone', async () => ((await this.databaseServers()).length === 0 ? true : null))
  }

  /** Process ids of the database servers on the data directory, and of their watchdogs; Linux only. */
  databaseServers(): Promise<readonly number[]> {
    return serversOf(join(this.#dataDirectory, 'postgres', 'data'))
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

/** The value of `look` once it is not null. */
export async function until<Value>(what: string, look: () => Value | null | Promise<Value | null>): Promise<Value> {
  const giveUpAtMs = performance.now() + WITHIN_MS
  for (;;) {
    const value = await look()
    if (value !== null) return value
    if (performance.now() > giveUpAtMs) throw new Error(`waited ${WITHIN_MS / 1000} seconds in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function parsed(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : { text: line }
  } catch {
    return { text: line }
  }
}
