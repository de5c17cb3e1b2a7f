import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { AskForSample, Sample, Told } from './probe.ts'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const ANSWERS_WITHIN_MS = 30_000
/** A service that stops waits for its jobs, then gives them back. */
const STOPS_WITHIN_MS = 60_000

export interface ServiceProcessOptions {
  readonly name: string
  readonly env: Readonly<Record<string, string>>
  readonly onLine: (line: string) => void
  readonly onDelete: (request: { readonly origin: string; readonly path: string }) => void
}

/** `keymesh serve` in a process of its own, with a probe inside; the database and the brokers are elsewhere. */
export class ServiceProcess {
  readonly name: string
  /** Resolves when it is at work; rejects when it ends before. */
  readonly started: Promise<void>
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #waiting = new Map<number, (sample: Sample) => void>()
  #samples = 0
  #isStopping = false

  constructor({ name, env, onLine, onDelete }: ServiceProcessOptions) {
    this.name = name
    const flags = ['--expose-gc', '--import', 'tsx', '--import', file('./probe.ts')]
    this.#process = spawn(process.execPath, [...flags, file('../../src/main.ts'), 'serve'], {
      cwd: file('../../'),
      env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#ended = once(this.#process, 'close')
    this.#process.on('message', (told: Told) => {
      if (told.type === 'deletes') onDelete(told)
      else this.#waiting.get(told.id)?.(told)
    })
    this.started = new Promise((resolve, reject) => {
      for (const stream of [this.#process.stdout, this.#process.stderr]) {
        if (stream === null) throw new Error('a service without pipes')
        createInterface(stream).on('line', (line) => {
          onLine(line)
          if (line.includes('"service.started"')) resolve()
        })
      }
      void this.#ended.then(() => reject(new Error(`the service ${name} ended before it was at work`)))
    })
    this.started.catch(() => undefined)
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** True when nobody asked it to end. */
  get isLost(): boolean {
    return !this.isRunning && !this.#isStopping
  }

  async sample(): Promise<Sample> {
    this.#samples += 1
    const id = this.#samples
    const answer = new Promise<Sample>((resolve) => this.#waiting.set(id, resolve))
    try {
      this.#process.send({ sample: id } satisfies AskForSample)
      return await within(answer, ANSWERS_WITHIN_MS, `a sample of the service ${this.name}`)
    } finally {
      this.#waiting.delete(id)
    }
  }

  /** SIGTERM; throws when that does not end it well. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.isRunning) this.#process.kill('SIGTERM')
    try {
      await within(this.#ended, STOPS_WITHIN_MS, `the end of the service ${this.name}`)
    } catch (error) {
      await this.kill()
      throw error
    }
    const { exitCode, signalCode } = this.#process
    if (exitCode !== 0) throw new Error(`the service ${this.name} ended with ${exitCode ?? signalCode}`)
  }

  async kill(): Promise<void> {
    this.#isStopping = true
    if (this.isRunning) this.#process.kill('SIGKILL')
    await this.#ended
  }
}

async function within<Value>(promise: Promise<Value>, withinMs: number, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${withinMs / 1000} seconds in vain for ${what}`)), withinMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
