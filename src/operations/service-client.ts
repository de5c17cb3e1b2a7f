import { createInterface } from 'node:readline'
import { Agent, type Dispatcher, request } from 'undici'
import { z } from 'zod'
import { InvalidInputError, KeymeshError, type Problem } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'

export interface ServiceClientOptions {
  /** The address before `/api`. */
  readonly url: string
  readonly token: Secret
}

export interface Call {
  readonly method: 'GET' | 'POST'
  /** Below `/api/v2/operations`, each part escaped. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly signal?: AbortSignal
}

const BASE = '/api/v2/operations'
const PAGE_SIZE = 100
const CONNECT_TIMEOUT_MS = 10_000
/** A stream says every few seconds that it is alive. */
const ANSWER_TIMEOUT_MS = 75_000

const objectAnswer = z.object({ data: z.unknown() })
const listAnswer = z.object({
  data: z.array(z.unknown()),
  meta: z.object({ pagination: z.object({ nextPage: z.int().nullable() }) }),
})
const refusal = z.object({
  message: z.string(),
  errorId: z.string().optional(),
  validationDetails: z.record(z.string(), z.array(z.string())).optional(),
})
/** The last line of a stream that failed on its way. */
const failure = z.object({
  type: z.literal('error'),
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
})
const end = z.object({ type: z.literal('end') })
const event = z.object({ type: z.literal('event'), event: z.unknown() })
const streamLine = z.union([event, end, failure])

/** Calls of the operations API. Its errors say what happened to whom, and never show the token. */
export class ServiceClient {
  readonly #url: string
  readonly #token: Secret
  readonly #agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
  })

  constructor({ url, token }: ServiceClientOptions) {
    this.#url = url
    this.#token = token
  }

  /** `data` of the answer; null when the service says that there is nothing of this name. */
  async object(call: Call): Promise<unknown> {
    const answer = await this.#send(call)
    if (answer.statusCode === 404) {
      const { message } = this.#parsed(refusal, await this.#text(answer), call)
      // A path that the service does not have is no missing object.
      if (message.startsWith('There is no resource')) throw this.#notKeymesh()
      return null
    }
    if (answer.statusCode === 204) return undefined
    return this.#parsed(objectAnswer, await this.#good(answer, call), call).data
  }

  /** At most `limit` items of a list, page by page. */
  async list(call: Call, limit = Number.POSITIVE_INFINITY): Promise<readonly unknown[]> {
    const items: unknown[] = []
    for (let pageNumber = 1; ; pageNumber += 1) {
      const query = { ...call.query, pageSize: PAGE_SIZE, pageNumber }
      const answer = await this.#send({ ...call, query })
      const { data, meta } = this.#parsed(listAnswer, await this.#good(answer, call), call)
      items.push(...data)
      if (meta.pagination.nextPage === null || items.length >= limit) return items.slice(0, limit)
    }
  }

  /** The events of a stream, as they come. Throws what the service says that stopped it. */
  async *stream(call: Call): AsyncGenerator<unknown, void, undefined> {
    const answer = await this.#send(call)
    if (answer.statusCode !== 200) await this.#good(answer, call)
    try {
      for await (const text of createInterface({ input: answer.body, crlfDelay: Number.POSITIVE_INFINITY })) {
        // An empty line says that the work goes on.
        if (text === '') continue
        const line = this.#parsed(streamLine, text, call)
        switch (line.type) {
          case 'event':
            yield line.event
            break
          case 'end':
            return
          case 'error':
            throw new KeymeshError({
              code: line.code,
              fate: 'stop',
              message: line.message,
              ...(line.hint === undefined ? {} : { hint: line.hint }),
            })
          default:
            return line satisfies never
        }
      }
    } catch (error) {
      throw this.#inWords(error, call)
    } finally {
      answer.body.destroy()
    }
    throw this.#unreachable('the answer ended before the work did')
  }

  /** Ends what is under way. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }

  async #send(call: Call): Promise<Dispatcher.ResponseData> {
    const { method, path, query = {}, body, signal } = call
    const url = new URL(`${this.#url}${[BASE, ...path.map(encodeURIComponent)].join('/')}`)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    try {
      return await request(url, {
        method,
        dispatcher: this.#agent,
        headers: {
          authorization: `Bearer ${this.#token.reveal()}`,
          accept: 'application/json, application/x-ndjson',
          'user-agent': 'keymesh',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (error) {
      throw this.#inWords(error, call)
    }
  }

  async #text(answer: Dispatcher.ResponseData): Promise<string> {
    try {
      return await answer.body.text()
    } catch (error) {
      throw this.#inWords(error, {})
    }
  }

  /** The text of a good answer; throws what another one says. */
  async #good(answer: Dispatcher.ResponseData, call: Call): Promise<string> {
    const text = await this.#text(answer)
    const status = answer.statusCode
    if (status >= 200 && status < 300) return text
    if (status === 401) {
      throw new KeymeshError({
        code: 'TOKEN_REFUSED',
        fate: 'stop',
        message: `The service at ${this.#url} refuses the token in KEYMESH_TOKEN.`,
        hint: 'Give an API token, or the user token of an account; both end when they expire or are deleted.',
      })
    }
    const { message, validationDetails, errorId } = this.#parsed(refusal, text, call)
    if (status === 400 && validationDetails !== undefined) {
      throw new InvalidInputError('The request', problemsOf(validationDetails))
    }
    const where = errorId === undefined || status < 500 ? '' : ` Its log has more under ${errorId}.`
    throw new KeymeshError({
      code: `SERVICE_ANSWERED_${status}`,
      fate: 'stop',
      message: `The service at ${this.#url} refuses: ${message}${where}`,
    })
  }

  #parsed<Schema extends z.ZodType>(schema: Schema, text: string, _call: Call): z.output<Schema> {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      throw this.#notKeymesh()
    }
    const result = schema.safeParse(value)
    if (!result.success) throw this.#notKeymesh()
    return result.data
  }

  #notKeymesh(): KeymeshError {
    return new KeymeshError({
      code: 'NO_KEYMESH_THERE',
      fate: 'stop',
      message: `What answers at ${this.#url} is not the operations API of this version of Keymesh.`,
      hint: 'Give the address before /api of a running service, of the version of this program.',
    })
  }

  #unreachable(why: string): KeymeshError {
    return new KeymeshError({
      code: 'SERVICE_UNREACHABLE',
      fate: 'stop',
      message: `The service at ${this.#url} does not answer: ${why}.`,
      hint: 'See that it runs and that the address is right; a private authority is trusted by NODE_EXTRA_CA_CERTS.',
    })
  }

  /** What the transport throws may hold the request; only its code is told. */
  #inWords(error: unknown, { signal }: Pick<Call, 'signal'>): unknown {
    if (error instanceof KeymeshError) return error
    if (signal?.aborted === true) return signal.reason
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'the connection failed'
    return this.#unreachable(code)
  }
}

function problemsOf(details: Readonly<Record<string, readonly string[]>>): readonly Problem[] {
  return Object.entries(details).flatMap(([path, messages]) =>
    messages.map((message) => (path === 'request' ? { message } : { path, message })),
  )
}
