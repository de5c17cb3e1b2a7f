export const OPERATIONS = ['list', 'get', 'post', 'put', 'patch', 'delete'] as const
export type Operation = (typeof OPERATIONS)[number]

export interface LoggedRequest {
  readonly method: string
  /** Path and query as they came; never a body. */
  readonly target: string
  readonly httpStatus: number
}

export interface CounterSnapshot {
  readonly total: number
  readonly reads: number
  readonly writes: number
  /** `list queues`, `get queues`, `post subscriptions`, … */
  readonly byOperation: Readonly<Record<string, number>>
  /** HTTP status; 0 for a request that got no answer. */
  readonly byStatus: Readonly<Record<string, number>>
}

const increase = <Key>(counts: Map<Key, number>, key: Key): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** What a broker was asked. Counting is always on; the log only after `keepLog`. */
export class RequestCounters {
  #total = 0
  #writes = 0
  readonly #byOperation = new Map<string, number>()
  readonly #byStatus = new Map<number, number>()
  readonly #log: LoggedRequest[] = []
  #logLimit = 0

  get total(): number {
    return this.#total
  }

  /** POST, PUT, PATCH and DELETE, whatever came of them. */
  get writes(): number {
    return this.#writes
  }

  get reads(): number {
    return this.#total - this.#writes
  }

  get log(): readonly LoggedRequest[] {
    return this.#log
  }

  /** Keeps the last `limit` requests from now on; 0 switches the log off. */
  keepLog(limit: number): void {
    this.#logLimit = limit
    this.#log.length = 0
  }

  /** @param kind a collection such as `queues`; all when absent */
  count(operation: Operation, kind?: string): number {
    if (kind !== undefined) return this.#byOperation.get(`${operation} ${kind}`) ?? 0
    let sum = 0
    for (const [key, count] of this.#byOperation) if (key.startsWith(`${operation} `)) sum += count
    return sum
  }

  reset(): void {
    this.#total = 0
    this.#writes = 0
    this.#byOperation.clear()
    this.#byStatus.clear()
    this.#log.length = 0
  }

  snapshot(): CounterSnapshot {
    return {
      total: this.total,
      reads: this.reads,
      writes: this.writes,
      byOperation: Object.fromEntries([...this.#byOperation].sort()),
      byStatus: Object.fromEntries(this.#byStatus),
    }
  }

  record(method: string, target: string, httpStatus: number): void {
    this.#total += 1
    if (method !== 'GET') this.#writes += 1
    increase(this.#byOperation, operationKey(method, target))
    increase(this.#byStatus, httpStatus)
    if (this.#logLimit === 0) return
    if (this.#log.length >= this.#logLimit) this.#log.shift()
    this.#log.push({ method, target, httpStatus })
  }
}

/** The kind is the last collection of the path: collections and object ids alternate behind the API's base. */
function operationKey(method: string, target: string): string {
  const question = target.indexOf('?')
  const segments = (question < 0 ? target : target.slice(0, question)).split('/')
  const isObject = segments.length % 2 === 0
  const collection = segments[segments.length - (isObject ? 2 : 1)] ?? ''
  return `${method === 'GET' ? (isObject ? 'get' : 'list') : method.toLowerCase()} ${collection}`
}
