import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ControlApi } from './control-api.ts'
import type { Fault, FaultPlan } from './faults.ts'
import type { RequestCounters } from './request-counters.ts'
import type { Answer } from './semp-answer.ts'
import { hasBody, type SempApi } from './semp-api.ts'
import type { Sessions } from './sessions.ts'

/** Larger than any object of the tables; a larger request is cut off. */
const MAXIMUM_BODY_BYTES = 1_000_000
const SESSION_COOKIE = 'session'
const CONTROL_PREFIX = '/sandbox/'
const JUNK = '<html><body>{"meta":</body>'

export interface SempServerParts {
  readonly api: SempApi
  readonly control: ControlApi
  readonly sessions: Sessions
  readonly faults: FaultPlan
  readonly counters: RequestCounters
  readonly username: string
  readonly password: string
  readonly tls: { readonly key: string; readonly cert: string } | null
}

/** The HTTP side of one broker: authentication, sessions, misbehaviour, counting. */
export class SempServer {
  readonly #parts: SempServerParts
  readonly #authorization: Buffer
  readonly #unanswered = new Set<ServerResponse>()
  #server: Server | null = null
  #origin = ''
  latencyMs = 0

  constructor(parts: SempServerParts) {
    this.#parts = parts
    this.#authorization = Buffer.from(
      `Basic ${Buffer.from(`${parts.username}:${parts.password}`, 'utf8').toString('base64')}`,
    )
  }

  /** Scheme, host and port; empty before the first start. */
  get origin(): string {
    return this.#origin
  }

  /** Listens; resolves to the port that was bound. */
  async start(host: string, port: number): Promise<number> {
    const { tls } = this.#parts
    const listener = (request: IncomingMessage, response: ServerResponse) => this.#receive(request, response)
    const server = tls === null ? createServer(listener) : createTlsServer(tls, listener)
    server.keepAliveTimeout = 60_000
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, () => {
        server.off('error', reject)
        resolve()
      })
    })
    this.#server = server
    const bound = (server.address() as AddressInfo).port
    this.#origin = `${tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${bound}`
    return bound
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (server === null) return
    this.#server = null
    this.#unanswered.clear()
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAXIMUM_BODY_BYTES) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => {
      const body = chunks.length === 0 ? '' : Buffer.concat(chunks).toString('utf8')
      const isControl = request.url?.startsWith(CONTROL_PREFIX) === true
      const answer = () =>
        isControl ? this.#answerControl(request, response, body) : this.#answer(request, response, body)
      if (this.latencyMs > 0 && !isControl) setTimeout(answer, this.latencyMs)
      else answer()
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: string): void {
    const method = request.method ?? 'GET'
    const target = request.url ?? '/'
    const fault = this.#parts.faults.next(method, target)
    if (fault !== null && !fault.applied) {
      this.#misbehave(fault, method, target, response, null)
      return
    }
    const refusal = this.#admit(request, response)
    const answer = refusal ?? this.#serve(request, method, target, body)
    if (fault !== null) this.#misbehave(fault, method, target, response, answer)
    else this.#write(method, target, response, answer)
  }

  #serve(request: IncomingMessage, method: string, target: string, body: string): Answer {
    const isJson = request.headers['content-type']?.includes('json') ?? true
    const readableBody = hasBody(method) && !isJson ? '' : body
    try {
      return this.#parts.api.handle({ method, target, origin: this.#origin, body: readableBody })
    } catch (error) {
      // A defect of the sandbox itself: one request fails, the mesh stays up.
      return plain(500, `The sandbox failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  /** Null when the request may go on: a live session, or right credentials and a free slot. */
  #admit(request: IncomingMessage, response: ServerResponse): Answer | null {
    const { authorization, cookie } = request.headers
    if (authorization !== undefined && !this.#isAuthorized(authorization)) return plain(401, 'Unauthorized')
    const sessionId = cookie === undefined ? undefined : readCookie(cookie)
    if (sessionId !== undefined && this.#parts.sessions.touch(sessionId)) return null
    if (authorization === undefined) return plain(401, 'Unauthorized')
    const opened = this.#parts.sessions.open()
    if (opened === null) return plain(529, 'No SEMP Session Available')
    response.setHeader('Set-Cookie', `${SESSION_COOKIE}=${opened}; Path=/SEMP; HttpOnly`)
    return null
  }

  #isAuthorized(authorization: string): boolean {
    const given = Buffer.from(authorization)
    return given.length === this.#authorization.length && timingSafeEqual(given, this.#authorization)
  }

  #answerControl(request: IncomingMessage, response: ServerResponse, body: string): void {
    const isAllowed = this.#isAuthorized(request.headers.authorization ?? '')
    const answer = isAllowed
      ? this.#parts.control.handle(request.method ?? 'GET', request.url ?? '', body)
      : plain(401, 'Unauthorized')
    send(response, answer)
  }

  #write(method: string, target: string, response: ServerResponse, answer: Answer): void {
    this.#parts.counters.record(method, target, answer.httpStatus)
    send(response, answer)
  }

  #misbehave(fault: Fault, method: string, target: string, response: ServerResponse, answer: Answer | null): void {
    switch (fault.kind) {
      case 'http-401':
        this.#write(method, target, response, plain(401, 'Unauthorized'))
        return
      case 'http-503':
        this.#write(method, target, response, plain(503, 'Service Unavailable'))
        return
      case 'http-529':
        this.#write(method, target, response, plain(529, 'No SEMP Session Available'))
        return
      case 'junk-json':
        this.#write(method, target, response, { httpStatus: 200, body: JUNK })
        return
      case 'reset':
        this.#parts.counters.record(method, target, 0)
        response.socket?.resetAndDestroy()
        return
      case 'timeout':
        this.#parts.counters.record(method, target, 0)
        this.#unanswered.add(response)
        response.once('close', () => this.#unanswered.delete(response))
        return
      case 'half-body': {
        const body = answer?.body ?? '{"data":{},"meta":{}}'
        this.#parts.counters.record(method, target, 0)
        response.writeHead(answer?.httpStatus ?? 200, { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(body) })
        response.write(body.slice(0, Math.floor(body.length / 2)), () => response.socket?.destroy())
        return
      }
      default:
        fault.kind satisfies never
    }
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

const plain = (httpStatus: number, body: string): Answer => ({ httpStatus, body })

function send(response: ServerResponse, answer: Answer): void {
  const isJson = answer.httpStatus === 200 || answer.httpStatus === 400
  if (answer.httpStatus === 401) response.setHeader('WWW-Authenticate', 'Basic realm="SolOS"')
  if (answer.httpStatus === 529) response.statusMessage = answer.body
  response.writeHead(answer.httpStatus, {
    'Content-Type': isJson ? 'application/json' : 'text/plain',
    'Content-Length': Buffer.byteLength(answer.body),
  })
  response.end(answer.body)
}

function readCookie(header: string): string | undefined {
  for (const part of header.split(';')) {
    const trimmed = part.trim()
    if (trimmed.startsWith(`${SESSION_COOKIE}=`)) return trimmed.slice(SESSION_COOKIE.length + 1)
  }
  return undefined
}
