import { setTimeout as sleep } from 'node:timers/promises'
import pRetry from 'p-retry'
import { z } from 'zod'
import { codeOf } from '../domain/errors.ts'
import type { ApimTokens } from './apim-tokens.ts'
import type { BoundedAnswer, BoundedHttp } from './bounded-http.ts'
import { type Asked, answerError, statusError } from './remote-errors.ts'
import { parseJson, urlBelow } from './remote-json.ts'

export interface ApimClientOptions {
  readonly http: BoundedHttp
  readonly tokens: ApimTokens
  /** The address before `/api/v2/apim`. */
  readonly url: string
  /** Repeats of one call that met something transient; default 3. */
  readonly maxRepeats?: number
  /** Pause before the first repeat, doubled for each further one and jittered; default 500. */
  readonly repeatDelayMs?: number
  /** Of one answer; default 64 MiB. */
  readonly maxAnswerBytes?: number
}

const BASE = '/api/v2/apim'
/** The largest that the API's description allows. */
const PAGE_SIZE = 100
/** The highest page number of the API's description. */
const MAX_PAGES = 16_384
const DEFAULT_MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Longer than this nobody waits inside a call; the next poll is soon. */
const MAX_PAUSE_MS = 10_000

type Query = Readonly<Record<string, string | number>>

/** What only the list itself must have; the items are read one by one. */
const listAnswer = z.object({
  data: z.array(z.unknown()),
  meta: z
    .object({
      pagination: z.object({ pageNumber: z.number().int().nullish(), nextPage: z.number().int().nullish() }).nullish(),
    })
    .nullish(),
})
const objectAnswer = z.object({ data: z.unknown() })
const refusal = z.object({ message: z.string() })

/** Reads of an APIM v2 API. Throws KeymeshErrors that say what was asked and never what was answered. */
export class ApimClient {
  readonly #options: ApimClientOptions

  constructor(options: ApimClientOptions) {
    this.#options = options
  }

  /** Every item of a list, page by page, each as `read` makes it. */
  async list<Item>(path: string, read: (item: unknown) => Item, signal?: AbortSignal): Promise<readonly Item[]> {
    const items: Item[] = []
    for (let pageNumber = 1, pages = 1; ; pages += 1) {
      const asked = this.#asked(path, { pageSize: PAGE_SIZE, pageNumber })
      const { status, value } = await this.#get(asked, signal)
      if (status !== 200) throw statusError(asked, status)
      const page = listAnswer.safeParse(value)
      if (!page.success) throw answerError(asked, 'it is no list')
      for (const item of page.data.data) items.push(read(item))
      const next = nextPage(asked, pageNumber, page.data)
      if (next === null) return items
      if (pages >= MAX_PAGES) throw answerError(asked, `it has more than ${MAX_PAGES} pages`)
      pageNumber = next
    }
  }

  /** One object, or null when the service itself says that there is none. */
  async find(path: string, signal?: AbortSignal): Promise<unknown> {
    const asked = this.#asked(path)
    const { status, value } = await this.#get(asked, signal)
    if (status === 404) {
      // Something else on the way may say 404 too, and that is not the service.
      if (refusal.safeParse(value).success) return null
      throw answerError(asked, 'a status 404 that does not say what is missing')
    }
    if (status !== 200) throw statusError(asked, status)
    const found = objectAnswer.safeParse(value)
    if (!found.success || found.data.data === undefined || found.data.data === null) {
      throw answerError(asked, 'it holds no object')
    }
    return found.data.data
  }

  /** A bare JSON document, or null when there is none. */
  async document(path: string, signal?: AbortSignal): Promise<unknown> {
    const asked = this.#asked(path, { apiFormat: 'application/json' })
    const { status, value } = await this.#get(asked, signal)
    if (status === 404) return null
    if (status !== 200) throw statusError(asked, status)
    return value
  }

  #asked(path: string, query: Query = {}): Asked {
    return { method: 'GET', url: urlBelow(this.#options.url, `${BASE}/${path}`, query) }
  }

  /** Repeated while what went wrong may pass; the last answer or error when it does not. */
  async #get(asked: Asked, signal: AbortSignal | undefined): Promise<ParsedAnswer> {
    const { maxRepeats = 3, repeatDelayMs = 500 } = this.#options
    let pauseMs = 0
    return await pRetry(
      async () => {
        pauseMs = 0
        const answer = await this.#authorised(asked, signal)
        if (!isTransient(answer.status)) return parsed(asked, answer)
        pauseMs = answer.retryAfterMs ?? 0
        throw statusError(asked, answer.status)
      },
      {
        retries: maxRepeats,
        minTimeout: repeatDelayMs,
        maxTimeout: MAX_PAUSE_MS,
        randomize: true,
        signal,
        shouldRetry: async ({ error }) => {
          if (!REPEATED.has(codeOf(error)) || pauseMs > MAX_PAUSE_MS) return false
          if (pauseMs > 0) await sleep(pauseMs, undefined, { signal })
          return true
        },
      },
    )
  }

  /** A token that is refused is replaced once. */
  async #authorised(asked: Asked, signal: AbortSignal | undefined): Promise<BoundedAnswer> {
    const { tokens } = this.#options
    const token = await tokens.current()
    const answer = await this.#send(asked, token.reveal(), signal)
    if (answer.status !== 401) return answer
    const other = await tokens.renewed(token)
    return other === null ? answer : await this.#send(asked, other.reveal(), signal)
  }

  #send({ url }: Asked, token: string, signal: AbortSignal | undefined): Promise<BoundedAnswer> {
    const { http, maxAnswerBytes = DEFAULT_MAX_ANSWER_BYTES } = this.#options
    return http.send({
      method: 'GET',
      url,
      headers: { authorization: `Bearer ${token}` },
      maxBytes: maxAnswerBytes,
      signal,
    })
  }
}

const REPEATED: ReadonlySet<string> = new Set(['REMOTE_BUSY', 'REMOTE_TIMEOUT', 'REMOTE_UNREACHABLE', 'REMOTE_ANSWER'])

interface ParsedAnswer {
  readonly status: number
  /** Undefined for a refusal that is no JSON. */
  readonly value: unknown
}

/** Throws for a success that is no JSON, as one is that was cut off on its way. */
function parsed(asked: Asked, { status, text }: BoundedAnswer): ParsedAnswer {
  try {
    return { status, value: parseJson(asked, text) }
  } catch (error) {
    if (status === 200) throw error
    return { status, value: undefined }
  }
}

const isTransient = (status: number): boolean => status === 408 || status === 425 || status === 429 || status >= 500

/** Null at the end. A list that does not go forward would be walked for ever, or end too early. */
function nextPage(asked: Asked, pageNumber: number, { data, meta }: z.output<typeof listAnswer>): number | null {
  const pagination = meta?.pagination
  if (pagination == null) {
    if (data.length < PAGE_SIZE) return null
    throw answerError(asked, 'it does not say whether there are more pages')
  }
  if (pagination.pageNumber != null && pagination.pageNumber !== pageNumber) {
    throw answerError(asked, `page ${pageNumber} was asked for, and it is page ${pagination.pageNumber}`)
  }
  const next = pagination.nextPage ?? null
  if (next !== null && next <= pageNumber) throw answerError(asked, `after page ${pageNumber} comes page ${next}`)
  return next
}
