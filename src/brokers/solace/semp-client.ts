import pRetry from 'p-retry'
import { Pool } from 'undici'
import type { ManagementSettings } from '../../domain/catalogue.ts'
import { codeOf, fateOf, KeymeshError } from '../../domain/errors.ts'
import type { Secret } from '../../domain/secret.ts'
import { exchange, type HttpAnswer } from './http-exchange.ts'
import { type Lane, RequestLimiter } from './request-limiter.ts'
import { readAnswer, type SempAnswer } from './semp-answer.ts'
import { type Attempted, abortError, httpError, mayRepeat, transportCodeOf, transportError } from './semp-errors.ts'
import { type SempAddress, sempAddress } from './semp-paths.ts'
import { SempSession, type SessionTicket } from './semp-session.ts'
import { secureContextOf } from './tls-trust.ts'

/** One HTTP exchange, for metrics. Names and values of objects are never in it. */
export interface SempRequestEvent {
  readonly method: SempRequest['method']
  /** What was asked for: an object kind, a SEMP collection, `msgVpn`, `about` or `queueMonitor`. */
  readonly kind: string
  /** HTTP status, or null when there was no whole answer. */
  readonly status: number | null
  /** Code of the KeymeshError that came of it; null for success. */
  readonly code: string | null
  readonly seconds: number
}

export interface SempClientOptions {
  readonly onRequest?: (event: SempRequestEvent) => void
  /** Repeats inside one call; default 3. */
  readonly maxRepeats?: number
  /** Pause before the first repeat, doubled for each further one and jittered; default 100. */
  readonly repeatDelayMs?: number
  /** Default 8 MiB. */
  readonly maxAnswerBytes?: number
  /** While true the background takes fewer of the connections. */
  readonly isUrgent?: () => boolean
}

export interface SempRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly kind: string
  /** Below the base URL, encoded. */
  readonly path: string
  readonly describe: () => string
  readonly body?: string
  /** Texts in the body that no message may repeat. */
  readonly secrets?: readonly string[]
  readonly signal?: AbortSignal | undefined
  /** Whose turn it is while others wait; the foreground when absent. */
  readonly lane?: Lane
}

/** What reads and writes need of a client. */
export interface SempSender {
  readonly address: SempAddress
  send(request: SempRequest): Promise<SempAnswer>
}

/** Rounds of one request: a cookie that ended, a cookie that ended again while others logged in, a basic login. */
const MAX_LOGIN_ROUNDS = 3
const TIMED_OUT = Object.assign(new Error('no answer in time'), { code: 'DEADLINE' })

/**
 * SEMP v2 over HTTP for one broker. A call takes at most `requestTimeoutMs`, repeats and pauses included, from the
 * moment that the limiter lets it go.
 */
export class SempClient implements SempSender {
  readonly address: SempAddress
  readonly #pool: Pool
  readonly #limiter: RequestLimiter
  readonly #session: SempSession
  readonly #timeoutMs: number
  readonly #managementPassword: Secret
  readonly #options: SempClientOptions
  #requestCount = 0
  #closed: Promise<void> | null = null

  constructor(settings: ManagementSettings, password: Secret, options: SempClientOptions = {}) {
    this.address = sempAddress(settings.url)
    this.#timeoutMs = settings.requestTimeoutMs
    this.#managementPassword = password
    this.#options = options
    this.#session = new SempSession(settings.username, password)
    this.#limiter = new RequestLimiter({
      maxConcurrent: settings.maxConcurrentRequests,
      ...(settings.maxRequestsPerSecond === undefined ? {} : { maxPerSecond: settings.maxRequestsPerSecond }),
      ...(options.isUrgent === undefined ? {} : { isUrgent: options.isUrgent }),
    })
    const secureContext = secureContextOf(settings, this.address)
    this.#pool = new Pool(this.address.origin, {
      connections: settings.maxConcurrentRequests,
      headersTimeout: settings.requestTimeoutMs,
      bodyTimeout: settings.requestTimeoutMs,
      maxResponseSize: options.maxAnswerBytes ?? 8 * 1024 * 1024,
      connect: {
        timeout: settings.requestTimeoutMs,
        ...(secureContext === undefined ? {} : { secureContext }),
      },
    })
  }

  /** HTTP requests that were started, repeats and logins included. */
  get requestCount(): number {
    return this.#requestCount
  }

  /** Throws a KeymeshError: the broker's refusal, an answer that is none, or why there was no answer. */
  async send(request: SempRequest): Promise<SempAnswer> {
    const { signal } = request
    const call = new Call(request, this.address.display, this.#managementPassword)
    try {
      return await this.#attempt(call)
    } catch (error) {
      if (signal?.aborted === true) throw abortError(signal, call)
      if (!mayRepeat(error, request.method)) throw error
      return this.#repeat(call, error)
    }
  }

  /** The same client, for work that lets others go first. */
  inBackground(): SempSender {
    return { address: this.address, send: (request) => this.send({ ...request, lane: 'background' }) }
  }

  async #repeat(call: Call, firstError: unknown): Promise<SempAnswer> {
    const { signal, method } = call.request
    const attempt = (count: number): Promise<SempAnswer> =>
      count === 1 ? Promise.reject(firstError) : this.#attempt(call)
    try {
      return await pRetry(attempt, {
        retries: this.#options.maxRepeats ?? 3,
        minTimeout: this.#options.repeatDelayMs ?? 100,
        maxTimeout: 2_000,
        randomize: true,
        signal,
        shouldRetry: ({ error }) => mayRepeat(error, method) && performance.now() < call.deadlineMs,
      })
    } catch (error) {
      if (signal?.aborted === true) throw abortError(signal, call)
      throw codeOf(error) === 'ALREADY_EXISTS' ? alreadyExistsAtRepeat(error, firstError) : error
    }
  }

  /** Waits for the requests that are under way; none is sent any more. */
  close(): Promise<void> {
    if (this.#closed === null) {
      this.#limiter.rejectWaiting(transportError(CLOSING, 'UND_ERR_CLOSED'))
      this.#closed = this.#pool.close()
    }
    return this.#closed
  }

  async #attempt(call: Call): Promise<SempAnswer> {
    const { signal, lane } = call.request
    const queuedAtMs = performance.now()
    if (!this.#limiter.tryAcquire(lane)) await this.#limiter.acquire(signal, lane)
    call.startAttempt(queuedAtMs, performance.now(), this.#timeoutMs)
    try {
      return await this.#authorised(call)
    } catch (error) {
      call.lastError = error
      throw error
    } finally {
      this.#limiter.release(lane)
    }
  }

  async #authorised(call: Call): Promise<SempAnswer> {
    for (let round = 1; ; round += 1) {
      const ticket = await this.#session.enter((wait) => untilAborted(wait, call.request.signal))
      const answer = await this.#exchange(call, ticket)
      if (answer !== 'session refused') return answer
      if (round === MAX_LOGIN_ROUNDS) throw httpError(call, 401)
    }
  }

  /** One HTTP exchange with its bookkeeping: session, counter, metrics. */
  async #exchange(call: Call, ticket: SessionTicket): Promise<SempAnswer | 'session refused'> {
    const startedMs = performance.now()
    let status: number | null = null
    let code: string | null = null
    try {
      const http = await this.#http(call, ticket, startedMs)
      status = http.status
      if (status === 401 && ticket.by === 'cookie') {
        code = 'SESSION_ENDED'
        this.#session.refused(ticket)
        return 'session refused'
      }
      if (status === 401 || status === 429 || status === 503 || status === 529) throw httpError(call, status)
      this.#session.answered(ticket, http.setCookie)
      return readAnswer(call, http)
    } catch (error) {
      code = codeOf(error)
      // Waiting for the broker or for a person is the same for all who wait for this login; the rest is this call's.
      this.#session.failed(ticket, fateOf(error) === 'retry' || isAborted(call) ? undefined : error)
      throw error
    } finally {
      const seconds = (performance.now() - startedMs) / 1000
      this.#options.onRequest?.({ method: call.request.method, kind: call.request.kind, status, code, seconds })
    }
  }

  async #http(call: Call, ticket: SessionTicket, nowMs: number): Promise<HttpAnswer> {
    const { method, path, body, signal } = call.request
    const timeoutMs = call.deadlineMs - nowMs
    if (timeoutMs <= 0) throw call.lastError ?? transportError(call, 'DEADLINE')
    this.#requestCount += 1
    const headers = body === undefined ? ticket.headers : { ...ticket.headers, ...JSON_BODY }
    try {
      return await exchange(
        this.#pool,
        { method, path: this.address.prefix + path, headers, body },
        { timeoutMs, timedOut: TIMED_OUT, signal },
      )
    } catch (error) {
      throw transportError(call, transportCodeOf(error))
    }
  }
}

const JSON_BODY = { 'content-type': 'application/json' }
const CLOSING: Attempted = { describe: () => 'send a request', brokerUrl: 'the broker', secrets: [] }

/** One `send`, over all its attempts. */
class Call implements Attempted {
  readonly request: SempRequest
  readonly brokerUrl: string
  readonly #managementPassword: Secret
  deadlineMs = Number.POSITIVE_INFINITY
  lastError: unknown
  #isStarted = false

  constructor(request: SempRequest, brokerUrl: string, managementPassword: Secret) {
    this.request = request
    this.brokerUrl = brokerUrl
    this.#managementPassword = managementPassword
  }

  get secrets(): readonly string[] {
    return [...(this.request.secrets ?? []), this.#managementPassword.reveal()]
  }

  describe(): string {
    return this.request.describe()
  }

  /** Time in our own queue is not the broker's and does not count. */
  startAttempt(queuedAtMs: number, nowMs: number, timeoutMs: number): void {
    if (this.#isStarted) this.deadlineMs += nowMs - queuedAtMs
    else this.deadlineMs = nowMs + timeoutMs
    this.#isStarted = true
  }
}

/**
 * Who answered the first try with a refusal, a gateway perhaps, may have passed it on all the same: what is there may be
 * ours. The refusal is the cause.
 */
function alreadyExistsAtRepeat(error: unknown, refusal: unknown): unknown {
  if (!(error instanceof KeymeshError)) return error
  const { code, fate, message, hint } = error
  return new KeymeshError({ code, fate, message, ...(hint !== undefined && { hint }), cause: refusal })
}

const isAborted = (call: Call): boolean => call.request.signal?.aborted === true

async function untilAborted<Result>(wait: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return wait
  signal.throwIfAborted()
  let onAbort: () => void = () => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([wait, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
