import { Agent, request } from 'undici'
import { type Asked, tooLarge, transportError } from './remote-errors.ts'

export interface BoundedRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly maxBytes: number
  readonly signal?: AbortSignal | undefined
}

export interface BoundedAnswer {
  readonly status: number
  readonly text: string
  /** As `Retry-After` asks; null when it does not. */
  readonly retryAfterMs: number | null
}

export interface BoundedHttpOptions {
  /** For one request with its whole answer. */
  readonly timeoutMs: number
  readonly maxConnections: number
}

/**
 * HTTP to another service: every answer is read whole within a time and a size, redirects are answers like any other.
 * Throws KeymeshErrors of `remote-errors.ts`, or the reason of the signal.
 */
export class BoundedHttp {
  readonly #agent: Agent
  readonly #timeoutMs: number

  constructor({ timeoutMs, maxConnections }: BoundedHttpOptions) {
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({
      connections: maxConnections,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connect: { timeout: timeoutMs },
    })
  }

  async send({ method, url, headers, body, maxBytes, signal }: BoundedRequest): Promise<BoundedAnswer> {
    signal?.throwIfAborted()
    const asked: Asked = { method, url }
    const deadline = AbortSignal.timeout(this.#timeoutMs)
    try {
      const answer = await request(url, {
        dispatcher: this.#agent,
        method,
        headers: { accept: 'application/json', 'user-agent': 'keymesh', ...headers },
        body: body ?? null,
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      })
      const text = await readText(answer.body, maxBytes)
      if (text === null) throw tooLarge(asked, maxBytes)
      return { status: answer.statusCode, text, retryAfterMs: retryAfterMs(answer.headers['retry-after']) }
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason
      if (deadline.aborted) throw transportError(asked, 'DEADLINE')
      const code = transportCode(error)
      throw code === null ? error : transportError(asked, code)
    }
  }

  /** Ends what is under way. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

type Body = Awaited<ReturnType<typeof request>>['body']

/** Null when there is more of it than allowed; the rest is not read. */
async function readText(body: Body, maxBytes: number): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    // Leaving the loop destroys the stream, and its connection with it.
    if (bytes > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of undici or Node; null for what is no failure of the connection. */
function transportCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const code = 'code' in error ? String(error.code) : ''
  // Several addresses were tried: the first one tells.
  if (error instanceof AggregateError) return transportCode(error.errors[0]) ?? 'UNREACHABLE'
  if (error.name === 'KeymeshError') return null
  return /^[A-Z][A-Z0-9_]{2,63}$/.test(code) ? code : null
}

const MAX_RETRY_AFTER_MS = 3_600_000

function retryAfterMs(header: string | string[] | undefined): number | null {
  const seconds = Number(typeof header === 'string' && header.trim() !== '' ? header : Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : null
}
