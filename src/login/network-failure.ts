import { type NotVerifiedReason, notVerified, type Verdict } from '../domain/verdict.ts'

interface Cause {
  readonly reason: NotVerifiedReason
  readonly says: string
}

const DNS: Cause = { reason: 'dns', says: 'The host name does not resolve' }
const REFUSED: Cause = { reason: 'refused', says: 'Nothing accepts connections at this host and port' }
const TIMEOUT: Cause = { reason: 'timeout', says: 'No answer came in time' }
const CLOSED: Cause = { reason: 'closed', says: 'The connection was closed before the login was answered' }
const UNTRUSTED: Cause = { reason: 'tls-untrusted', says: 'No trusted authority signed the certificate' }
const EXPIRED: Cause = { reason: 'tls-expired', says: 'The certificate is not valid at this time' }
const WRONG_NAME: Cause = { reason: 'tls-wrong-name', says: 'The certificate is for another host' }
const TLS_FAILED: Cause = { reason: 'tls-failed', says: 'The TLS handshake failed' }
const CLEAR_TEXT: Cause = { reason: 'protocol', says: 'The port does not speak TLS' }
const NOT_HTTP: Cause = { reason: 'protocol', says: 'The port does not speak HTTP' }
const UNKNOWN: Cause = { reason: 'unknown', says: 'The connection failed' }

/** The codes of Node's sockets, name look-ups, TLS and HTTP parser, and of undici. */
const CAUSES: Readonly<Record<string, Cause>> = {
  ENOTFOUND: DNS,
  EAI_AGAIN: DNS,
  EAI_NODATA: DNS,
  EAI_NONAME: DNS,
  ENODATA: DNS,
  ECONNREFUSED: REFUSED,
  EHOSTUNREACH: REFUSED,
  EHOSTDOWN: REFUSED,
  ENETUNREACH: REFUSED,
  ENETDOWN: REFUSED,
  EADDRNOTAVAIL: REFUSED,
  ETIMEDOUT: TIMEOUT,
  ESOCKETTIMEDOUT: TIMEOUT,
  ERR_SOCKET_CONNECTION_TIMEOUT: TIMEOUT,
  ERR_TLS_HANDSHAKE_TIMEOUT: TIMEOUT,
  ABORT_ERR: TIMEOUT,
  UND_ERR_CONNECT_TIMEOUT: TIMEOUT,
  UND_ERR_HEADERS_TIMEOUT: TIMEOUT,
  UND_ERR_BODY_TIMEOUT: TIMEOUT,
  UND_ERR_ABORTED: TIMEOUT,
  ECONNRESET: CLOSED,
  ECONNABORTED: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  CERT_UNTRUSTED: UNTRUSTED,
  CERT_REJECTED: UNTRUSTED,
  CERT_REVOKED: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  CERT_CHAIN_TOO_LONG: UNTRUSTED,
  INVALID_CA: UNTRUSTED,
  INVALID_PURPOSE: UNTRUSTED,
  PATH_LENGTH_EXCEEDED: UNTRUSTED,
  CERT_HAS_EXPIRED: EXPIRED,
  CERT_NOT_YET_VALID: EXPIRED,
  ERR_TLS_CERT_ALTNAME_INVALID: WRONG_NAME,
  HOSTNAME_MISMATCH: WRONG_NAME,
}

/** How deep errors are unwrapped: a wrapper around the errors of a host's several addresses. */
const MAX_DEPTH = 3

/**
 * The verdict of a connection that failed below the messaging protocol: never about the credential. The detail is one
 * line of ours with the error's code; the text of the error, which may hold what was sent, stays out.
 */
export function networkFailure(error: unknown): Verdict {
  const { cause, code } = find(error, MAX_DEPTH) ?? { cause: UNKNOWN, code: codeOf(error) }
  return notVerified(cause.reason, code === null ? `${cause.says}.` : `${cause.says} (${code}).`)
}

interface Finding {
  readonly cause: Cause
  readonly code: string | null
}

function find(error: unknown, depth: number): Finding | null {
  if (typeof error !== 'object' || error === null || depth < 0) return null
  const code = codeOf(error)
  const cause = code === null ? null : causeOf(code, error)
  if (cause !== null) return { cause, code }
  const inner = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  for (const one of inner.concat('cause' in error ? [error.cause] : [])) {
    const found = find(one, depth - 1)
    if (found !== null) return found
  }
  if (textOf(error, 'name') === 'TimeoutError' || textOf(error, 'name') === 'AbortError') {
    return { cause: TIMEOUT, code: null }
  }
  return textOf(error, 'message') === 'socket hang up' ? { cause: CLOSED, code: null } : null
}

function causeOf(code: string, error: object): Cause | null {
  const known = CAUSES[code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return NOT_HTTP
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    // What speaks TLS and refuses says so by an alert; the other failures of the parser come from clear text.
    return REFUSED_HANDSHAKE.test(code) || / alert /i.test(textOf(error, 'message')) ? TLS_FAILED : CLEAR_TEXT
  }
  return code.startsWith('ERR_TLS_') ? TLS_FAILED : null
}

const REFUSED_HANDSHAKE = /_ALERT_|UNSUPPORTED_PROTOCOL|UNSUPPORTED_SSL_VERSION|NO_SHARED|NO_SUITABLE|_TOO_SMALL$/

/** A word in capitals, as all codes of Node are; a library may put anything else there. */
function codeOf(error: unknown): string | null {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,59}$/.test(code) ? code : null
}

function textOf(error: object, property: 'name' | 'message'): string {
  const text = property in error ? (error as Readonly<Record<string, unknown>>)[property] : ''
  return typeof text === 'string' ? text : ''
}
