import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Agent, request } from 'undici'
import { type DeliveryAttempt, receiverProblem } from '../domain/notifications.ts'
import { isRefusedAddress, type Network, parseNetworks } from '../domain/refused-addresses.ts'
import type { Secret } from '../domain/secret.ts'
import { signatureHeaders } from './signature.ts'

export interface SenderOptions {
  /** Whether http is good enough; https always is. */
  readonly allowHttp: boolean
  /** Networks that are sent to although they are private. */
  readonly allowedNetworks: readonly string[]
  readonly timeoutMs?: number
  /** Instead of the system's resolver. */
  readonly resolve?: typeof lookup
}

export interface Message {
  readonly id: string
  readonly url: Secret
  readonly secrets: readonly Secret[]
  readonly body: string
  readonly nowMs: number
}

const TIMEOUT_MS = 10_000
/** Read so that the connection can be used again; more is cut off. */
const MAX_ANSWER_BYTES = 16_384
const REFUSED_ADDRESS = 'ADDRESS_REFUSED'

/**
 * Posts deliveries to receivers that somebody named: to public addresses only, each checked when its connection is made,
 * so that a name cannot lead elsewhere between the check and the use. No redirect is followed and no proxy is used.
 */
export class NotificationSender {
  readonly #agent: Agent
  readonly #allowHttp: boolean
  readonly #allowed: readonly Network[]
  readonly #timeoutMs: number

  constructor({ allowHttp, allowedNetworks, timeoutMs = TIMEOUT_MS, resolve = lookup }: SenderOptions) {
    this.#allowHttp = allowHttp
    this.#allowed = parseNetworks(allowedNetworks)
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({
      connections: 2,
      pipelining: 1,
      keepAliveTimeout: 10_000,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: MAX_ANSWER_BYTES,
      connect: { timeout: timeoutMs, lookup: guardedLookup(resolve, this.#allowed) },
    })
  }

  /** What came of it, in words that name no credential of the URL. Throws only the signal's reason. */
  async send({ id, url, secrets, body, nowMs }: Message, signal?: AbortSignal): Promise<DeliveryAttempt> {
    signal?.throwIfAborted()
    const target = new URL(url.reveal())
    const refusal = receiverProblem(target, { allowHttp: this.#allowHttp, allowed: this.#allowed })
    if (refusal !== null) return failed(null, `The URL ${refusal}.`)
    const deadline = AbortSignal.timeout(this.#timeoutMs)
    try {
      const answer = await request(withoutUser(target), {
        dispatcher: this.#agent,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'keymesh',
          ...authorization(target),
          ...signatureHeaders(secrets, { id, timestampSeconds: Math.floor(nowMs / 1000), body }),
        },
        body,
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      })
      // What the receiver says has no meaning; a long answer costs the connection, not the memory.
      await answer.body.dump({ limit: MAX_ANSWER_BYTES }).catch(() => undefined)
      return attemptOf(answer.statusCode, answer.headers['retry-after'])
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason
      if (deadline.aborted) return failed(null, `No answer within ${this.#timeoutMs / 1000} seconds.`)
      return failed(null, troubleOf(error))
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

const ADDRESS_REFUSED =
  'The receiver has a private or reserved address, which KEYMESH_NOTIFICATION_NETWORKS does not allow.'

/** Gives a connection only addresses that may be sent to. */
function guardedLookup(resolve: typeof lookup, allowed: readonly Network[]): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => {
      if (error !== null) return callback(error, '', 0)
      const good = found.filter(({ address }) => !isRefusedAddress(address, allowed))
      const [first] = good
      if (first === undefined) {
        return callback(Object.assign(new Error(ADDRESS_REFUSED), { code: REFUSED_ADDRESS }), '', 0)
      }
      return options.all === true ? callback(null, good) : callback(null, first.address, first.family)
    })
  }
}

function withoutUser(url: URL): URL {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain
}

function authorization({ username, password }: URL): { readonly authorization?: string } {
  if (username === '' && password === '') return {}
  const plain = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(plain).toString('base64')}` }
}

function attemptOf(status: number, retryAfter: string | string[] | undefined): DeliveryAttempt {
  if (status >= 200 && status < 300) return { outcome: 'delivered', status }
  const message = `The receiver answered HTTP ${status}.`
  if (status === 410) return { outcome: 'gone', status, message }
  const busy = status === 408 || status === 425 || status === 429 || status >= 500
  if (busy) return { outcome: 'failed', status, message, retryAfterMs: retryAfterMs(retryAfter) }
  if (status < 400) return { outcome: 'refused', status, message: `${message} Redirects are not followed.` }
  return { outcome: 'refused', status, message }
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  return typeof header === 'string' && /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : null
}

const failed = (status: number | null, message: string): DeliveryAttempt => ({
  outcome: 'failed',
  status,
  message,
  retryAfterMs: null,
})

/** Codes only: messages of libraries may hold the address with its query. */
function troubleOf(error: unknown): string {
  const code = codeOf(error)
  if (code === REFUSED_ADDRESS) return ADDRESS_REFUSED
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `The receiver's name is not resolved (${code}).`
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === 'HPE_HEADER_OVERFLOW') return 'The answer has too long headers.'
  return `The receiver was not reached (${code}).`
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^[A-Z][A-Z0-9_]{2,63}$/.test(code) ? code : 'unknown trouble'
}
