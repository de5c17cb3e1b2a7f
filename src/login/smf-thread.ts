import { Worker } from 'node:worker_threads'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import { TIMED_OUT } from './deadline.ts'
import type { FromSmfThread, ToSmfThread } from './serve-smf-logins.ts'
import type { SmfClient } from './smf-client.ts'

/** A thread without work is given up after this long. */
const IDLE_MS = 60_000
/** A thread that has not even let go of an aborted login after this long hangs. */
const HANGING_MS = 10_000
/** A broker that promises large messages is not believed. */
const LIMITS = { maxOldGenerationSizeMb: 128 }

const BROKEN = notVerified('unknown', 'The SMF client broke during the login.')

export interface SmfThreadOptions {
  /** What the thread runs. */
  readonly entry?: URL
  readonly hangingMs?: number
}

interface Login {
  readonly end: (verdict: Verdict) => void
}

interface Thread {
  readonly worker: Worker
  readonly logins: Map<number, Login>
  idle: NodeJS.Timeout | undefined
}

const isSource = import.meta.url.endsWith('.ts')
const ENTRY = new URL(`./smf-thread-entry.${isSource ? 'ts' : 'js'}`, import.meta.url)

/** A thread has no part in how its process came to run TypeScript; the loader is that of the development setup. */
const fromSource = (entry: URL): string =>
  `import('tsx/esm/api').then((tsx) => { tsx.register(); return import(${JSON.stringify(entry.href)}) })`

/**
 * solclientjs in a thread of its own, started at the first login. The library throws out of its sockets' events when a
 * broker answers what it cannot parse: here that ends the logins of the moment, and anywhere else the process. What it
 * prints goes nowhere, and of the environment it sees nothing.
 */
export function createSmfThread({ entry = ENTRY, hangingMs = HANGING_MS }: SmfThreadOptions = {}): SmfClient {
  let thread: Thread | null = null
  let lastId = 0

  const start = (): Thread => {
    const options = { env: {}, execArgv: ['--no-warnings'], resourceLimits: LIMITS, stdout: true, stderr: true }
    const worker = isSource ? new Worker(fromSource(entry), { ...options, eval: true }) : new Worker(entry, options)
    const started: Thread = { worker, logins: new Map(), idle: undefined }
    const broken = (): void => {
      if (thread === started) thread = null
      for (const login of started.logins.values()) login.end(BROKEN)
      clearTimeout(started.idle)
    }
    worker.on('error', broken)
    worker.on('exit', broken)
    worker.on('message', ({ id, verdict }: FromSmfThread) => started.logins.get(id)?.end(verdict))
    worker.unref()
    return started
  }

  const stop = (stopped: Thread): void => {
    if (thread === stopped) thread = null
    void stopped.worker.terminate()
  }

  return {
    logIn(request, signal) {
      if (signal.aborted) return Promise.resolve(TIMED_OUT)
      thread ??= start()
      const { worker, logins } = thread
      const used = thread
      lastId += 1
      const id = lastId
      return new Promise((resolve) => {
        let hanging: NodeJS.Timeout | undefined
        const onAbort = (): void => {
          tell(worker, { kind: 'abort', id })
          hanging = setTimeout(() => stop(used), hangingMs).unref()
          // The thread still has the socket: `end` stays registered, and lets go of the thread when it answers.
          resolve(TIMED_OUT)
        }
        const end = (verdict: Verdict): void => {
          logins.delete(id)
          clearTimeout(hanging)
          signal.removeEventListener('abort', onAbort)
          if (logins.size === 0) {
            worker.unref()
            used.idle = setTimeout(() => stop(used), IDLE_MS).unref()
          }
          resolve(verdict)
        }
        clearTimeout(used.idle)
        if (logins.size === 0) worker.ref()
        logins.set(id, { end })
        signal.addEventListener('abort', onAbort, { once: true })
        tell(worker, { kind: 'log-in', id, request })
      })
    },
    close() {
      if (thread !== null) stop(thread)
    },
  }
}

const tell = (worker: Worker, message: ToSmfThread): void => worker.postMessage(message)
