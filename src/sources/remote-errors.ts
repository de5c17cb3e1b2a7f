import { type Fate, KeymeshError } from '../domain/errors.ts'

/** What was asked, for messages: method, path and host, never a query, a header or a body. */
export interface Asked {
  readonly method: string
  readonly url: URL
}

const named = ({ method, url }: Asked): string => `${method} ${url.pathname} of ${url.host}`

/** What a refusal means, and what a person does about it. */
interface StatusRow {
  readonly statuses: (status: number) => boolean
  readonly code: string
  readonly fate: Fate
  readonly says: string
  readonly hint: string
}

/** The first row that fits decides. Nothing of an answer's body is repeated: it may hold secrets. */
const STATUS_TABLE: readonly StatusRow[] = [
  {
    statuses: (status) => status >= 300 && status < 400,
    code: 'REMOTE_REDIRECTS',
    fate: 'stop',
    says: 'sends elsewhere, and is not followed there, as the token would go with it',
    hint: 'Set KEYMESH_APIM_URL or KEYMESH_AUTH_URL to the address that answers.',
  },
  {
    statuses: (status) => status === 401,
    code: 'REMOTE_NOT_AUTHENTICATED',
    fate: 'stop',
    says: 'does not accept the token',
    hint: 'Check KEYMESH_APIM_TOKEN, or that the user of KEYMESH_AUTH_USERNAME may hold API tokens.',
  },
  {
    statuses: (status) => status === 403,
    code: 'REMOTE_FORBIDDEN',
    fate: 'stop',
    says: 'does not allow this',
    hint: 'The API token needs the permissions of the specification, and for credentials those of registrations.',
  },
  {
    statuses: (status) => status === 404,
    code: 'REMOTE_NOT_FOUND',
    fate: 'stop',
    says: 'has nothing there',
    hint: 'Check KEYMESH_APIM_URL: it is the part of the address before /api/v2/apim.',
  },
  {
    statuses: (status) => status === 408 || status === 425 || status === 429 || status >= 500,
    code: 'REMOTE_BUSY',
    fate: 'retry',
    says: 'cannot answer now',
    hint: 'It is asked again at the next poll.',
  },
]

export function statusError(asked: Asked, status: number): KeymeshError {
  const row = STATUS_TABLE.find(({ statuses }) => statuses(status))
  return new KeymeshError({
    code: row?.code ?? 'REMOTE_REFUSED',
    fate: row?.fate ?? 'stop',
    message: `${named(asked)} ${row?.says ?? 'refuses the request'} (status ${status}).`,
    hint: row?.hint ?? 'Check that the address is one of an APIM v2 API.',
  })
}

const TIMED_OUT: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'DEADLINE',
])
const TLS = /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_/

/** No whole answer: `code` is of undici or Node. */
export function transportError(asked: Asked, code: string): KeymeshError {
  const what = TIMED_OUT.has(code)
    ? 'did not answer in time'
    : TLS.test(code)
      ? 'has a certificate that is not trusted'
      : 'cannot be reached'
  return new KeymeshError({
    code: TIMED_OUT.has(code) ? 'REMOTE_TIMEOUT' : 'REMOTE_UNREACHABLE',
    fate: 'retry',
    message: `${named(asked)} ${what} (${code}).`,
    hint: 'Nothing was changed. It is asked again at the next poll.',
  })
}

/** An answer that is none: what is wrong with it, never what is in it. */
export function answerError(asked: Asked, problem: string): KeymeshError {
  return new KeymeshError({
    code: 'REMOTE_ANSWER',
    fate: 'retry',
    message: `${named(asked)} answered what cannot be used: ${problem}.`,
    hint: 'Nothing was changed. Check that nothing between here and there alters answers.',
  })
}

export function tooLarge(asked: Asked, maxBytes: number): KeymeshError {
  return new KeymeshError({
    code: 'REMOTE_ANSWER_TOO_LARGE',
    fate: 'stop',
    message: `${named(asked)} answered with more than ${maxBytes} bytes.`,
    hint: 'Nothing was changed.',
  })
}
