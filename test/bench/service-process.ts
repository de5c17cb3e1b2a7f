import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Environment } from './bench-context.ts'

/** The last lines of the log that a failure shows. */
const SHOWN_LINES = 20

/** `keymesh serve` in a process of its own. */
export class ServiceProcess {
  /** From the spawn to the line of the log that says that every role runs. */
  readonly startedAfterMs: number
  /** Of the API; empty without that role. */
  readonly url: string
  readonly pid: number
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>

  private constructor(child: ChildProcess, ended: Promise<unknown>, url: string, startedAfterMs: number) {
    this.#process = child
    this.#ended = ended
    this.url = url
    this.startedAfterMs = startedAfterMs
    this.pid = child.pid ?? Number.NaN
  }

  static async start(env: Environment): Promise<ServiceProcess> {
    const startedMs = performance.now()
    const main = join(import.meta.dirname, '..', '..', 'src', 'main.js')
    const child = spawn(process.execPath, [main, 'serve'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH, PORT: '0', KEYMESH_HOST: '127.0.0.1', KEYMESH_RATE_LIMIT: '0', ...env },
    })
    const ended = once(child, 'exit')
    const shown: string[] = []
    let url = ''
    for await (const line of createInterface({ input: child.stderr })) {
      const { event, url: found } = readLine(line)
      if (event === 'api.listening') url = found ?? ''
      if (event === 'service.started') {
        // Read on, or it would stop at a full pipe.
        child.stderr.resume()
        return new ServiceProcess(child, ended, url, performance.now() - startedMs)
      }
      shown.push(line)
    }
    await ended
    throw new Error(`the service ended before it had started:\n${shown.slice(-SHOWN_LINES).join('\n')}`)
  }

  /** Lets it end its work. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    await this.#ended
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }
}

function readLine(line: string): { readonly event?: string; readonly url?: string } {
  try {
    return JSON.parse(line) as object
  } catch {
    return {}
  }
}

/** A cron expression that did not tick in the last forty days and does not in the next. */
export function neverNow(): string {
  const month = new Date().getUTCMonth()
  return `0 0 1 ${((month + 6) % 12) + 1} *`
}
