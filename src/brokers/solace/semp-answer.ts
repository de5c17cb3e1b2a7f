import type { Buffer } from 'node:buffer'
import { z } from 'zod'
import type { HttpAnswer } from './http-exchange.ts'
import { type Attempted, httpError, sempError, unexpectedAnswer } from './semp-errors.ts'
import { nextCursor } from './semp-paths.ts'

export interface SempAnswer {
  readonly data: unknown
  readonly collections: unknown
  /** Encoded, ready for a query; null at the end. */
  readonly nextCursor: string | null
}

const ENVELOPE = z.object({
  meta: z.object({
    responseCode: z.int(),
    error: z.object({ code: z.int(), status: z.string(), description: z.string() }).optional(),
    paging: z.object({ cursorQuery: z.string().optional(), nextPageUri: z.string().optional() }).optional(),
  }),
  data: z.unknown().optional(),
  collections: z.unknown().optional(),
})

/** The content of a successful answer; throws what a refusal or an answer that is none means. */
export function readAnswer(attempted: Attempted, http: HttpAnswer): SempAnswer {
  const parsed = ENVELOPE.safeParse(jsonOrUndefined(http.body))
  const isRefusal = http.status >= 400 && http.status < 500
  if (parsed.success && parsed.data.meta.error !== undefined && isRefusal) {
    throw sempError(attempted, parsed.data.meta.error)
  }
  if (http.status !== 200) throw httpError(attempted, http.status)
  if (!parsed.success) throw unexpectedAnswer(attempted, 'its body is not a SEMP answer')
  const { meta, data, collections } = parsed.data
  if (meta.error !== undefined || meta.responseCode !== 200) {
    throw unexpectedAnswer(attempted, 'HTTP status 200 around an error')
  }
  return { data, collections, nextCursor: nextCursor(meta.paging) }
}

function jsonOrUndefined(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
