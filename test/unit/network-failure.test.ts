import { connect as connectInClearText } from 'node:net'
import { type ConnectionOptions, connect as connectWithTls } from 'node:tls'
import { describe, expect, it } from 'vitest'
import type { NotVerifiedReason } from '../../src/domain/verdict.ts'
import { networkFailure } from '../../src/login/network-failure.ts'
import { type HostileServerKind, refusedPort, startHostileServer } from '../helpers/hostile-server.ts'

const reasonOf = (error: unknown): string => {
  const verdict = networkFailure(error)
  return verdict.outcome === 'not-verified' ? verdict.reason : verdict.outcome
}

const BY_CODE: Readonly<Record<string, NotVerifiedReason>> = {
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  ETIMEDOUT: 'timeout',
  ABORT_ERR: 'timeout',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls-untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls-untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls-untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'tls-untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls-untrusted',
  CERT_HAS_EXPIRED: 'tls-expired',
  CERT_NOT_YET_VALID: 'tls-expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls-wrong-name',
  EPROTO: 'protocol',
  ERR_SSL_WRONG_VERSION_NUMBER: 'protocol',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'protocol',
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: 'tls-failed',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'tls-failed',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'tls-failed',
  ERR_TLS_INVALID_PROTOCOL_VERSION: 'tls-failed',
  HPE_INVALID_CONSTANT: 'protocol',
  ESOMETHINGNEW: 'unknown',
}

describe('what a connection that failed proves', () => {
  it.each(Object.entries(BY_CODE))('%s is %s, and the detail names the code', (code, reason) => {
    const verdict = networkFailure(Object.assign(new Error('the words of a library'), { code }))
    expect(verdict).toMatchObject({ outcome: 'not-verified', reason })
    expect(verdict).toHaveProperty('detail', expect.stringMatching(new RegExp(`^[A-Z][^\n]{0,100} \\(${code}\\)\\.$`)))
  })

  const wrapped = (...codes: string[]) =>
    new AggregateError(codes.map((code) => Object.assign(new Error(code), { code })))
  const OTHERS: readonly (readonly [string, unknown, NotVerifiedReason])[] = [
    ['an error for each address', wrapped('ECONNREFUSED', 'ECONNREFUSED'), 'refused'],
    ['an error for each address, the first unknown', wrapped('EWHATEVER', 'ETIMEDOUT'), 'timeout'],
    ['a cause', new TypeError('fetch failed', { cause: wrapped('ENOTFOUND') }), 'dns'],
    ['causes without an end', endless(), 'unknown'],
    ['an abort', AbortSignal.abort().reason, 'timeout'],
    ['a time-out', new DOMException('', 'TimeoutError'), 'timeout'],
    ['a socket that was hung up', new Error('socket hang up'), 'closed'],
    [
      'an alert behind EPROTO',
      Object.assign(new Error('SSL alert number 40: sslv3 alert handshake'), { code: 'EPROTO' }),
      'tls-failed',
    ],
    ['a code that is a number', Object.assign(new Error(), { code: 5 }), 'unknown'],
    ['a code that is a text', Object.assign(new Error(), { code: 'the password is x' }), 'unknown'],
    ['no error', undefined, 'unknown'],
    ['a text', 'ECONNREFUSED', 'unknown'],
  ]
  it.each(OTHERS)('%s', (_sentence, error, reason) => {
    expect(reasonOf(error)).toBe(reason)
  })

  it('keeps what others wrote out of the detail', () => {
    const error = Object.assign(new Error('AUTH alice hunter2'), { code: 'hunter2', cause: new Error('hunter2') })
    expect(JSON.stringify(networkFailure(error))).not.toMatch(/hunter2|AUTH/)
  })
})

function endless(): Error {
  const error = new Error('round and round')
  error.cause = error
  return error
}

describe('what this platform says', () => {
  const errorOf = (options: ConnectionOptions & { readonly port: number; readonly clearText?: boolean }) =>
    new Promise<unknown>((resolve) => {
      const { clearText, ...rest } = { host: '127.0.0.1', ...options }
      const socket = clearText ? connectInClearText(rest) : connectWithTls(rest)
      socket.on('error', resolve)
      socket.on('close', () => resolve(undefined))
    })

  it.each<readonly [HostileServerKind, NotVerifiedReason]>([
    ['close-at-once', 'closed'],
    ['reset-at-once', 'closed'],
    ['close-after-data', 'closed'],
    ['junk-banner', 'protocol'],
    ['junk-answer', 'protocol'],
    ['http', 'protocol'],
    ['flood', 'protocol'],
    ['silent-tls', 'tls-untrusted'],
  ])('of a TLS handshake with a server that is %s', async (kind, reason) => {
    await using server = await startHostileServer(kind)
    expect(reasonOf(await errorOf({ port: server.port, servername: 'localhost' }))).toBe(reason)
  })

  it('of a port where nobody listens, and of a name that nobody has', async () => {
    expect(reasonOf(await errorOf({ port: await refusedPort(), clearText: true }))).toBe('refused')
    expect(reasonOf(await errorOf({ port: 1, host: 'broker.invalid', clearText: true }))).toBe('dns')
  })

  it('of a TLS version that the server does not take', async () => {
    await using server = await startHostileServer('silent-tls')
    const options = { port: server.port, minVersion: 'TLSv1', maxVersion: 'TLSv1' } as const
    expect(reasonOf(await errorOf(options))).toBe('tls-failed')
  })
})
