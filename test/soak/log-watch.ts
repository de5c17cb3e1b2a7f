import { createWriteStream, type WriteStream } from 'node:fs'
import { codesOfFault, type FaultKind } from './fault-kinds.ts'

export interface LogContext {
  /** What is, or was just, wrong with a broker by its id. */
  readonly faultsOf: (broker: string) => readonly FaultKind[]
  /** A service stops, was killed or is starting. */
  readonly isRestarting: boolean
}

export type LogLine = Readonly<Record<string, unknown>>

const WARN = 40
/** A machine that is busy with something else for seconds: the job runs again, or is found by the poll. */
const MOST_STANDSTILLS = 5
const MOST_KEPT = 50

/** Reads the log of every service as it is written: keeps what nothing explains, and all of it in a file. */
export class LogWatch {
  /** Lines of warnings and errors by event and code. */
  readonly counts = new Map<string, number>()
  readonly unexplained: string[] = []
  /** All lines of warnings and errors. */
  warnings = 0
  readonly #file: WriteStream
  readonly #context: () => LogContext
  #standstills = 0

  constructor(file: string, context: () => LogContext) {
    this.#file = createWriteStream(file)
    this.#context = context
  }

  line(text: string): void {
    this.#file.write(`${text}\n`)
    const line = parsed(text)
    if (line === null) this.#keep(text)
    else if (Number(line.level) >= WARN) {
      const name = [line.event, line.code].filter((part) => part !== undefined).join(' ')
      this.warnings += 1
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
      if (isStandstill(line)) this.#standstills += 1
      if (isStandstill(line) ? this.#standstills > MOST_STANDSTILLS : !isExplained(line, this.#context()))
        this.#keep(text)
    }
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#file.end(resolve))
  }

  #keep(text: string): void {
    if (this.unexplained.length < MOST_KEPT) this.unexplained.push(text.slice(0, 1_000))
  }
}

function parsed(text: string): LogLine | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

/** What life brings with it, without any fault: somebody was faster, a hand that deletes among them. */
const ALWAYS: ReadonlySet<string> = new Set(['SUPERSEDED', 'ALREADY_EXISTS', 'NOT_FOUND'])
/** A job that stops in the middle. */
const AT_RESTART: ReadonlySet<string> = new Set(['ABORTED', 'BROKER_CLOSED'])

function isStandstill({ event, error, message }: LogLine): boolean {
  switch (event) {
    case 'queue.error':
      return LOST_LOCK.test(String(error))
    case 'job.failed':
      return LOST_LOCK.test(String(message))
    case 'queue.missed':
      return LATE_QUEUE.test(String(error))
    default:
      return false
  }
}

/** In the words of the queue's library, of the queue itself or of a job that could not be given back. */
const LOST_LOCK = /^(could not renew lock|Lock mismatch) for job /
const LATE_QUEUE = /^the queue did not answer within /

/** Whether a warning or an error is what one of the faults, or a restart, has to lead to. */
export function isExplained(line: LogLine, { faultsOf, isRestarting }: LogContext): boolean {
  switch (line.event) {
    case 'broker.resting':
      return faultsOf(String(line.broker)).length > 0
    case 'job.failed': {
      const code = String(line.code)
      if (ALWAYS.has(code) || (isRestarting && AT_RESTART.has(code))) return true
      const faults = faultsOf(brokerOfQueue(String(line.queueName)))
      return faults.some((fault) => codesOfFault(fault).includes(code))
    }
    case 'worker.impatient':
      return isRestarting
    default:
      return false
  }
}

/** Of the account `default`, and of brokers with plain ids. */
const PREFIX = 'broker-default-'

const brokerOfQueue = (queue: string): string => (queue.startsWith(PREFIX) ? queue.slice(PREFIX.length) : queue)
