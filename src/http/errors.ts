import { randomUUID } from 'node:crypto'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { codeOf, fateOf, InvalidInputError, KeymeshError, type Problem } from '../domain/errors.ts'
import { databaseTrouble } from '../store/database-trouble.ts'

/** Every error answer, whatever went wrong. */
export const errorAnswer = z
  .strictObject({
    message: z.string().min(4).max(256).meta({ example: 'There is no registration "app-1".' }),
    errorId: z.string().min(2).max(64).meta({ example: '123e4567-e89b-12d3-a456-426655440000' }),
    meta: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
    validationDetails: z
      .record(z.string(), z.array(z.string()))
      .optional()
      .meta({ example: { name: ['Not unique'] } }),
  })
  .meta({ id: 'ErrorResponse', description: 'What went wrong; the errorId is in the log line too.' })
export type ErrorAnswer = z.infer<typeof errorAnswer>

/**
 * The one table from what was thrown to what is answered. Codes of `KeymeshError`, of Fastify (FST_…) and of PostgreSQL
 * (five characters). A code that is not here is answered by its fate: `stop` of ours 500, `retry` and `wait` 503.
 */
const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  INVALID_INPUT: 400,
  FST_ERR_VALIDATION: 400,
  FST_ERR_BAD_URL: 400,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 400,
  FST_ERR_CTP_INVALID_JSON_BODY: 400,
  FST_ERR_CTP_EMPTY_JSON_BODY: 400,
  NOT_AUTHENTICATED: 401,
  SIGN_IN_REFUSED: 401,
  FORBIDDEN: 403,
  PERMISSION_MISSING: 403,
  ACCOUNT_NOT_CHOSEN: 403,
  NOT_FOUND: 404,
  FST_ERR_MAX_PARAM_LENGTH: 404,
  FST_ERR_ASYNC_CONSTRAINT: 404,
  NOT_ACCEPTABLE: 406,
  REQUEST_TIMED_OUT: 408,
  CONFLICT: 409,
  MANAGEMENT_ADDRESS_TAKEN: 409,
  DELETION_NOT_ALLOWED: 409,
  PRECONDITION_FAILED: 412,
  FST_ERR_CTP_BODY_TOO_LARGE: 413,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 415,
  FST_ERR_CTP_INVALID_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  BUSY: 503,
  FST_ERR_HANDLER_TIMEOUT: 503,
  // A concurrent request made or removed what this one rests on.
  '23503': 409,
  '23505': 409,
  // Serialisation failure, deadlock: the same request may work in a moment.
  '40001': 503,
  '40P01': 503,
}

/** Said when the error's own words are for the log only. */
const PUBLIC_MESSAGE: Readonly<Record<number, string>> = {
  400: 'The request cannot be understood.',
  404: 'There is nothing at this address.',
  408: 'The request took too long to arrive.',
  409: 'Another request changed the same at the same time. Read it again and retry.',
  413: 'The body of the request is too large.',
  415: 'The body of the request must be JSON, sent with the content type application/json.',
  429: 'Too many requests.',
  500: 'The service met an error. It is in the log under this errorId.',
  503: 'The service cannot answer now. Try again in a moment.',
}

const clip = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length - 1)}…` : text)

export interface Failure {
  readonly status: number
  readonly answer: ErrorAnswer
}

/** Pure but for the id. What is not a refusal of ours never shows its words. */
export function failureOf(error: unknown, errorId: string = randomUUID()): Failure {
  const status = statusOf(error)
  if (hasZodFastifySchemaValidationErrors(error)) {
    const place = 'validationContext' in error ? String(error.validationContext) : 'request'
    const problems = error.validation.flatMap(problemsOfIssue)
    return { status: 400, answer: { ...invalid(`The ${PLACE[place] ?? place}`, problems), errorId } }
  }
  if (error instanceof InvalidInputError && status === 400) {
    return { status, answer: { ...invalid('The request', error.problems), errorId } }
  }
  if (error instanceof KeymeshError && status < 500) {
    const text = error.hint === undefined ? error.message : `${error.message} ${error.hint}`
    return { status, answer: { message: clip(text, 256), errorId } }
  }
  return { status, answer: { message: PUBLIC_MESSAGE[status] ?? PUBLIC_MESSAGE[500] ?? 'Error', errorId } }
}

const PLACE: Readonly<Record<string, string>> = {
  querystring: 'query',
  params: 'path',
  body: 'body',
  headers: 'header',
}

function statusOf(error: unknown): number {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const known = STATUS_OF_CODE[code]
  if (known !== undefined) return known
  if (error instanceof KeymeshError) return fateOf(error) === 'stop' ? 500 : 503
  if (databaseTrouble(error) !== null) return 503
  const own = (error as Partial<FastifyError> | null)?.statusCode
  // Of Fastify and its plugins: theirs count while they blame the request.
  return typeof own === 'number' && own >= 400 && own < 500 ? own : 500
}

const MAX_DETAILS = 1024

function invalid(what: string, problems: readonly Problem[]): Pick<ErrorAnswer, 'message' | 'validationDetails'> {
  const details = new Map<string, string[]>()
  for (const { path = 'request', message } of problems.slice(0, MAX_DETAILS)) {
    const field = clip(path === '' ? 'request' : path, 256)
    details.set(field, [...(details.get(field) ?? []), clip(message.padEnd(4, '.'), 1024)])
  }
  const [first, ...more] = details.keys()
  const rest = more.length === 0 ? '' : ` and ${more.length} more`
  return {
    message: clip(`${what} is not valid: ${first ?? 'it'}${rest}.`, 256),
    validationDetails: Object.fromEntries(details),
  }
}

interface Issue {
  readonly keyword?: string
  readonly instancePath?: string
  readonly message?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** `/filters/0/name` as `filters[0].name`; an unknown field under its own name. */
function problemsOfIssue({ keyword, instancePath = '', message = 'is not valid', params = {} }: Issue): Problem[] {
  const path = instancePath
    .split('/')
    .filter((part) => part !== '')
    .reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`), '')
  if (keyword !== 'unrecognized_keys' || !Array.isArray(params.keys)) return [{ path, message }]
  return params.keys.map((key) => ({
    path: path === '' ? String(key) : `${path}.${String(key)}`,
    message: 'is not known here',
  }))
}

/** Answers every thrown error, and logs it with the id that the answer names. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, answer } = failureOf(error)
  logFailure(error, { status, answer }, request)
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (status === 503) reply.header('retry-after', '1')
  // A route's own serialiser is for its own answers.
  reply
    .code(status)
    .type('application/json; charset=utf-8')
    .serializer((value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .send(answer)
}

/** With the id that the answer names. */
export function logFailure(error: unknown, { status, answer }: Failure, request: FastifyRequest): void {
  const fields = { errorId: answer.errorId, status, code: codeOfAny(error) }
  if (status >= 500) request.log.error({ event: 'http.failed', ...fields, err: error }, 'A request failed')
  else request.log.info({ event: 'http.refused', ...fields, message: answer.message }, 'A request was refused')
}

function codeOfAny(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : codeOf(error)
}
