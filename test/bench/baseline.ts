import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import type { Context } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import type { BaselineChildResult } from './baseline-child.ts'
import { benchDirectory, forgetBrokers, importCatalogue, openBenchContext } from './bench-context.ts'
import type { ChildResult } from './child.ts'
import { round } from './figures.ts'
import { meshCatalogue, REQUEST_CONCURRENCY } from './fixture.ts'
import { authorization, SandboxProcess } from './sandbox-process.ts'

export interface BaselineBenchOptions {
  readonly registrations: number
  readonly latencyMs: number
  /** Registrations where both are held to so many requests a second: at such a pace all of them would take hours. */
  readonly limitedRegistrations: number
  readonly requestsPerSecond: number
  readonly print: (line: object) => void
}

const RECHECK_GOAL = 10

/** Of one pass: a first apply, or a look at everything that finds nothing to do. */
interface Pass {
  readonly seconds: number
  readonly requests: number
  readonly failed: number
}

interface Passes {
  readonly apply: Pass
  readonly recheck: Pass
}

/**
 * The same desired state by this service and by an executor that goes object by object: applied to an empty broker, then
 * looked at again. One JSON line per pass and pace; the ratio is the executor's seconds to the service's.
 */
export async function benchBaseline(options: BaselineBenchOptions): Promise<void> {
  const { registrations, latencyMs, limitedRegistrations, requestsPerSecond, print } = options
  const full = await Contest.open({ registrations, latencyMs, requestsPerSecond: null })
  let ours: Passes
  let theirs: Passes
  try {
    ours = await full.ours()
    theirs = await full.theirs(1)
    const size = `${registrations}-at-${latencyMs}ms`
    printPasses(print, `${size}-one-at-a-time`, { ours, theirs }, { theirConcurrency: 1 })
    const beside = await full.theirs(REQUEST_CONCURRENCY)
    printPasses(print, `${size}-side-by-side`, { ours, theirs: beside }, { theirConcurrency: REQUEST_CONCURRENCY })
  } finally {
    await full.close()
  }
  const limited = await Contest.open({ registrations: limitedRegistrations, latencyMs, requestsPerSecond })
  try {
    const passes = { ours: await limited.ours(), theirs: await limited.theirs(REQUEST_CONCURRENCY) }
    const computed = (pass: keyof Passes) => ({
      computed: {
        registrations,
        seconds: round(ours[pass].requests / requestsPerSecond),
        theirSeconds: round(theirs[pass].requests / requestsPerSecond),
      },
    })
    const size = `${limitedRegistrations}-at-${requestsPerSecond}-per-second`
    printPasses(print, size, passes, { theirConcurrency: REQUEST_CONCURRENCY }, computed)
  } finally {
    await limited.close()
  }
}

function printPasses(
  print: (line: object) => void,
  name: string,
  { ours, theirs }: { readonly ours: Passes; readonly theirs: Passes },
  settings: object,
  more: (pass: keyof Passes) => object = () => ({}),
): void {
  for (const pass of ['apply', 'recheck'] as const) {
    const [own, other] = [ours[pass], theirs[pass]]
    print({
      case: `baseline-${pass}-${name}`,
      ratio: round(other.seconds / own.seconds),
      goal: pass === 'recheck' ? RECHECK_GOAL : null,
      seconds: round(own.seconds),
      theirSeconds: round(other.seconds),
      requests: own.requests,
      theirRequests: other.requests,
      ...more(pass),
      concurrency: REQUEST_CONCURRENCY,
      ...settings,
      failed: own.failed,
      theirFailed: other.failed,
    })
  }
}

interface ContestOptions {
  readonly registrations: number
  readonly latencyMs: number
  /** Null: no limit. */
  readonly requestsPerSecond: number | null
}

/** One broker and one desired state, for whoever applies it. */
class Contest {
  readonly #options: ContestOptions
  readonly #opened: Disposer
  readonly #directory: string
  readonly #sandbox: SandboxProcess
  readonly #context: Context
  /** What the service's own first apply left on the broker. */
  #counts = ''

  private constructor(
    options: ContestOptions,
    opened: Disposer,
    parts: { readonly directory: string; readonly sandbox: SandboxProcess; readonly context: Context },
  ) {
    this.#options = options
    this.#opened = opened
    this.#directory = parts.directory
    this.#sandbox = parts.sandbox
    this.#context = parts.context
  }

  static async open(options: ContestOptions): Promise<Contest> {
    const opened = new Disposer()
    try {
      const directory = await benchDirectory(opened)
      const sandbox = await SandboxProcess.start({ brokers: 1 })
      opened.defer(() => sandbox.stop())
      const context = await openBenchContext({ KEYMESH_DATA_DIR: join(directory, 'data') }, opened)
      const file = meshCatalogue([sandbox.only], {
        registrations: options.registrations,
        broker: (declared) => ({
          ...declared,
          management: declared.management && {
            ...declared.management,
            ...(options.requestsPerSecond !== null && { maxRequestsPerSecond: options.requestsPerSecond }),
          },
        }),
      })
      await importCatalogue(context, file)
      return new Contest(options, opened, { directory, sandbox, context })
    } catch (error) {
      await opened.dispose()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#opened.dispose()
  }

  /** Also records what has to be created. */
  async ours(): Promise<Passes> {
    const sweep = async (env: Readonly<Record<string, string>> = {}): Promise<Pass> =>
      this.#counted(() => this.#run<ChildResult>('child.js', { BENCH_MODE: 'sweep', ...env }))
    const record = { BENCH_RECORD: this.#script }
    // At a pace of its own the recording would take as long again, and costs the measurement nothing.
    if (this.#options.requestsPerSecond === null) {
      await this.#empty(0)
      await sweep(record)
    }
    await this.#empty(this.#options.latencyMs)
    const apply = await sweep(this.#options.requestsPerSecond === null ? {} : record)
    this.#counts = await this.#objectCounts()
    return { apply, recheck: await sweep() }
  }

  /** After `ours`. Throws when the executor leaves another state than the service did. */
  async theirs(concurrency: number): Promise<Passes> {
    const env = {
      BENCH_CONCURRENCY: String(concurrency),
      BENCH_PER_SECOND: String(this.#options.requestsPerSecond ?? 0),
      BENCH_SCRIPT: this.#script,
    }
    const pass = async (): Promise<Pass> =>
      this.#counted(() => this.#run<BaselineChildResult>('baseline-child.js', env))
    await this.#empty(this.#options.latencyMs)
    const passes = { apply: await pass(), recheck: await pass() }
    const counts = await this.#objectCounts()
    if (counts !== this.#counts) throw new Error(`the executor made ${counts}, the service ${this.#counts}`)
    return passes
  }

  get #script(): string {
    return join(this.#directory, 'requests.json')
  }

  /** A broker without objects, and a ledger that knows of none. */
  async #empty(latencyMs: number): Promise<void> {
    await this.#sandbox.control('clear', {})
    await forgetBrokers(this.#context)
    await this.#sandbox.control('latency', { latencyMs })
  }

  async #counted(run: () => Promise<{ readonly seconds: number; readonly failed: number }>): Promise<Pass> {
    await this.#sandbox.control('reset', {})
    const { seconds, failed } = await run()
    return { seconds, failed, requests: await this.#sandbox.requests() }
  }

  async #objectCounts(): Promise<string> {
    const { only } = this.#sandbox
    return (await fetch(`${only.url}/sandbox/objects`, { headers: authorization(only) })).text()
  }

  async #run<Result>(program: string, env: Readonly<Record<string, string>>): Promise<Result> {
    const { url, username, password } = this.#sandbox.only
    const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, program)], {
      env: {
        ...process.env,
        KEYMESH_DATA_DIR: join(this.#directory, 'data'),
        BENCH_URL: url,
        BENCH_LOGIN: `${username}:${password}`,
        ...env,
      },
    })
    return JSON.parse(stdout) as Result
  }
}
