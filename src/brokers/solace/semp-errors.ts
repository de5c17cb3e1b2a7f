import { type Fate, KeymeshError } from '../../domain/errors.ts'

/** When the request may be sent again inside the same call. `refused`: the broker said that it did not process it. */
type Repeat = 'never' | 'reads' | 'refused'

interface ErrorRow {
  /** Code in `meta.error.code` of an answer. */
  readonly semp?: number
  /** HTTP status of an answer without a SEMP error. */
  readonly http?: number
  /** Codes of undici and Node errors. */
  readonly transport?: readonly string[]
  /** The row applies only when the broker's status or description matches. */
  readonly text?: RegExp
  readonly code: string
  readonly fate: Fate
  readonly repeat: Repeat
  readonly says: string
  readonly hint?: string
  readonly source: string
}

const SEMP_DOCUMENTATION = 'docs.solace.com/Admin/SEMP/SEMP-Error-Handling.htm'
const BROKER_MCP = 'SolaceLabs/solace-broker-mcp internal/tools/errors.go'
const SOLCONFIG = 'flyisland/solconfig SEMPError.java and issue transcripts'
const UNDICI = 'undici docs/api/Errors.md'
const NODE_ERRORS = 'nodejs.org/api/errors.html, getaddrinfo(3), connect(2)'
const OPENSSL = 'nodejs.org/api/tls.html X509 certificate error codes'

/** The first row that matches decides. Every row of this table is the whole policy for its error. */
// biome-ignore format: one row, one line or two
const TABLE: readonly ErrorRow[] = [
  { semp: 2, code: 'SEMP_FAILED', fate: 'retry', repeat: 'never', says: 'the broker failed', source: SEMP_DOCUMENTATION },
  { semp: 6, code: 'NOT_FOUND', fate: 'retry', repeat: 'never', says: 'the broker has no such object', source: SEMP_DOCUMENTATION },
  { semp: 10, code: 'ALREADY_EXISTS', fate: 'retry', repeat: 'never', says: 'it exists already', source: SOLCONFIG },
  { semp: 11, code: 'SEMP_INVALID_PARAMETER', fate: 'stop', repeat: 'never', says: 'the broker refused a value',
    hint: 'Correct the value in the catalogue or the settings of the broker.', source: SEMP_DOCUMENTATION },
  { semp: 14, code: 'SEMP_NOT_SUPPORTED', fate: 'stop', repeat: 'never', says: 'the broker does not support this',
    hint: 'Check the version and the edition of the broker.', source: SEMP_DOCUMENTATION },
  { semp: 27, code: 'SEMP_PARSE_ERROR', fate: 'stop', repeat: 'never', says: 'the broker could not read the request',
    hint: 'Check the version of the broker.', source: SEMP_DOCUMENTATION },
  { semp: 72, code: 'UNAUTHORIZED_SCOPE', fate: 'stop', repeat: 'never', says: 'the SEMP user may not do this',
    hint: 'Give the SEMP user vpn/read-write on the message VPN, and global/mesh-manager (global/read-write on older brokers) to write client profiles, or create the client profile by hand.', source: SOLCONFIG },
  { semp: 89, text: /replication is standby/i, code: 'REPLICATION_STANDBY', fate: 'wait', repeat: 'never', says: 'the message VPN is a replication standby',
    hint: 'Work goes on when it becomes active.', source: 'SolaceLabs/solace-broker-mcp test/integration/action_replay_test.go' },
  { semp: 89, code: 'SEMP_NOT_ALLOWED', fate: 'stop', repeat: 'never', says: 'the broker does not allow this in the present state',
    hint: 'Something else uses the object, or it must be disabled first.', source: SOLCONFIG },
  { semp: 135, code: 'LIMIT_REACHED', fate: 'stop', repeat: 'never', says: 'the broker has reached a configured maximum',
    hint: 'Raise the limit on the broker or remove objects that nobody needs.', source: BROKER_MCP },
  { semp: 228, code: 'SEMP_MISSING_PARAMETER', fate: 'stop', repeat: 'never', says: 'the broker misses a required value',
    hint: 'Check the version of the broker.', source: BROKER_MCP },
  { semp: 229, code: 'SEMP_TIME_OUT', fate: 'retry', repeat: 'reads', says: 'the broker timed out inside', source: BROKER_MCP },
  { semp: 256, code: 'SEMP_OBJECT_IN_USE', fate: 'stop', repeat: 'never', says: 'the object contains others',
    hint: 'Drain or remove what it contains.', source: BROKER_MCP },
  { semp: 490, code: 'SEMP_OBJECT_IN_USE', fate: 'stop', repeat: 'never', says: 'other objects depend on it',
    hint: 'Disable or remove what uses it.', source: SOLCONFIG },
  { semp: 535, code: 'SEMP_INVALID_PATH', fate: 'stop', repeat: 'never', says: 'the broker does not know the path',
    hint: 'Check the management URL and the version of the broker.', source: SOLCONFIG },
  { http: 401, code: 'SEMP_LOGIN_REFUSED', fate: 'stop', repeat: 'never', says: 'the broker refused the SEMP login',
    hint: 'Correct the management username and password of the broker.', source: 'RFC 9110 15.5.2' },
  { http: 429, code: 'BROKER_TOO_MANY_REQUESTS', fate: 'wait', repeat: 'refused', says: 'a proxy before the broker limits the rate',
    hint: 'Lower the request rate of the broker.', source: 'RFC 6585 4; the broker itself sends none (solace-broker-mcp docs/user-guide.md)' },
  { http: 503, code: 'BROKER_UNAVAILABLE', fate: 'wait', repeat: 'refused', says: 'the broker is overloaded or not ready', source: 'solace-broker-mcp docs/user-guide.md' },
  { http: 529, code: 'SEMP_SESSIONS_EXHAUSTED', fate: 'wait', repeat: 'refused', says: 'the broker has no free SEMP session',
    hint: 'Close other SEMP clients or raise the session limit of the broker.', source: SEMP_DOCUMENTATION },
  { http: 502, code: 'BROKER_GATEWAY_ERROR', fate: 'retry', repeat: 'reads', says: 'a proxy before the broker got no answer', source: 'RFC 9110 15.6.3' },
  { http: 504, code: 'BROKER_GATEWAY_ERROR', fate: 'retry', repeat: 'reads', says: 'a proxy before the broker got no answer in time', source: 'RFC 9110 15.6.5' },
  { http: 500, code: 'BROKER_INTERNAL_ERROR', fate: 'retry', repeat: 'never', says: 'the broker failed', source: 'RFC 9110 15.6.1' },
  { transport: ['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME', 'EAI_FAIL'], code: 'BROKER_NAME_UNRESOLVED', fate: 'retry', repeat: 'reads', says: 'its host name has no address',
    hint: 'Check the management URL of the broker and the DNS.', source: NODE_ERRORS },
  { transport: ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EADDRNOTAVAIL'], code: 'BROKER_UNREACHABLE', fate: 'retry', repeat: 'reads', says: 'nothing can be reached there',
    hint: 'Check the management URL of the broker and the network.', source: NODE_ERRORS },
  { transport: ['DEADLINE', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'], code: 'BROKER_TIMEOUT', fate: 'retry', repeat: 'reads', says: 'no answer in time', source: UNDICI },
  { transport: ['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET'], code: 'BROKER_CONNECTION_LOST', fate: 'retry', repeat: 'reads', says: 'the connection broke', source: UNDICI },
  { transport: ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW'], code: 'BROKER_ANSWER_TOO_LARGE', fate: 'retry', repeat: 'never', says: 'the answer is larger than any SEMP answer',
    hint: 'Check that the management URL is a broker\'s.', source: UNDICI },
  { transport: ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'], code: 'BROKER_CLOSED', fate: 'retry', repeat: 'never', says: 'the client of the broker is closed', source: UNDICI },
  { transport: ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CERT_UNTRUSTED', 'CERT_REJECTED', 'CERT_REVOKED', 'CERT_SIGNATURE_FAILURE', 'CERT_CHAIN_TOO_LONG', 'INVALID_CA', 'INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED', 'HOSTNAME_MISMATCH', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    code: 'BROKER_TLS_UNTRUSTED', fate: 'stop', repeat: 'never', says: 'its TLS certificate is not trusted',
    hint: 'Give the broker the CA certificate that signed it, or correct the host name in the management URL.', source: OPENSSL },
]

const OTHER_SEMP = { code: 'SEMP_ERROR', fate: 'retry', says: 'the broker refused' } as const
const OTHER_HTTP = { code: 'BROKER_ANSWER_UNEXPECTED', fate: 'retry', says: 'the answer is not a SEMP answer' } as const
const OTHER_TRANSPORT = { code: 'BROKER_CONNECTION_FAILED', fate: 'retry', says: 'the connection failed' } as const

const REPEAT_BY_CODE: ReadonlyMap<string, Repeat> = new Map(TABLE.map((row) => [row.code, row.repeat]))

/** Whether the same request may go out again at once: a write only when the broker said that it did not process it. */
export function mayRepeat(error: unknown, method: string): boolean {
  if (!(error instanceof KeymeshError)) return false
  const repeat = REPEAT_BY_CODE.get(error.code) ?? (error.code === OTHER_TRANSPORT.code ? 'reads' : 'never')
  return repeat === 'refused' || (repeat === 'reads' && method === 'GET')
}

/** What was tried and where, for the first half of a message; `secrets` are cut out of what the broker said. */
export interface Attempted {
  /** Such as `read client username "alice"`. */
  readonly describe: () => string
  readonly brokerUrl: string
  readonly secrets: readonly string[]
}

export interface SempRefusal {
  readonly code: number
  readonly status: string
  readonly description: string
}

/** The broker's explicit refusal, in a well-formed SEMP answer. */
export function sempError(attempted: Attempted, refusal: SempRefusal): KeymeshError {
  const row =
    TABLE.find(
      ({ semp, text }) =>
        semp === refusal.code && (text === undefined || text.test(`${refusal.status} ${refusal.description}`)),
    ) ?? OTHER_SEMP
  const said = cleanText(`${refusal.status} ${refusal.code}: ${refusal.description}`, attempted.secrets)
  return makeError(attempted, row, said)
}

/** An answer that says nothing but its HTTP status. */
export function httpError(attempted: Attempted, status: number): KeymeshError {
  return makeError(attempted, TABLE.find(({ http }) => http === status) ?? OTHER_HTTP, `HTTP status ${status}`)
}

/** No whole answer. `DEADLINE` is the code for a request that ran out of its time. */
export function transportError(attempted: Attempted, transportCode: string): KeymeshError {
  const row = TABLE.find(({ transport }) => transport?.includes(transportCode) === true) ?? OTHER_TRANSPORT
  return makeError(attempted, row, transportCode === 'DEADLINE' ? null : cleanText(transportCode, []))
}

/** An answer of HTTP status 200 that is not what SEMP promises; `what` must not quote the answer's values. */
export function unexpectedAnswer(attempted: Attempted, what: string): KeymeshError {
  return makeError(attempted, OTHER_HTTP, cleanText(what, attempted.secrets))
}

/** The caller gave up; its own KeymeshError, if that is the reason, goes through. */
export function abortError(signal: AbortSignal, attempted: Attempted): KeymeshError {
  if (signal.reason instanceof KeymeshError) return signal.reason
  return makeError(attempted, { code: 'ABORTED', fate: 'retry', says: 'the request was aborted' }, null)
}

/** The code of a Node, TLS or undici error; connections to several addresses at once nest theirs. */
export function transportCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return transportCodeOf(error.errors[0])
  return error.cause === undefined ? error.name : transportCodeOf(error.cause)
}

const MAX_SAID_LENGTH = 500

function makeError(
  attempted: Attempted,
  row: { readonly code: string; readonly fate: Fate; readonly says: string; readonly hint?: string },
  said: string | null,
): KeymeshError {
  const details = said === null ? '' : ` (${said})`
  return new KeymeshError({
    code: row.code,
    fate: row.fate,
    message: `Could not ${attempted.describe()} at ${attempted.brokerUrl}: ${row.says}${details}.`,
    ...(row.hint === undefined ? {} : { hint: row.hint }),
  })
}

/** A broker may quote what it was sent: secrets go, control characters go, length is bounded. */
export function cleanText(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) {
    if (secret === '') continue
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]) {
      clean = clean.replaceAll(form, '[secret]')
    }
  }
  clean = clean
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  return clean.length > MAX_SAID_LENGTH ? `${clean.slice(0, MAX_SAID_LENGTH).toWellFormed()}…` : clean
}
