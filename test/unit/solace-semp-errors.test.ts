import { describe, expect, it } from 'vitest'
import {
  type Attempted,
  cleanText,
  httpError,
  mayRepeat,
  sempError,
  transportCodeOf,
  transportError,
} from '../../src/brokers/solace/semp-errors.ts'

const ATTEMPTED: Attempted = { describe: () => 'read x', brokerUrl: 'https://b', secrets: [] }

describe('the fate of a refusal', () => {
  it.each([
    [2, 'FAIL', 'SEMP_FAILED retry'],
    [6, 'NOT_FOUND', 'NOT_FOUND retry'],
    [10, 'ALREADY_EXISTS', 'ALREADY_EXISTS retry'],
    [11, 'INVALID_PARAMETER', 'SEMP_INVALID_PARAMETER stop'],
    [14, 'NOT_SUPPORTED', 'SEMP_NOT_SUPPORTED stop'],
    [27, 'PARSE_ERROR', 'SEMP_PARSE_ERROR stop'],
    [72, 'UNAUTHORIZED', 'UNAUTHORIZED_SCOPE stop'],
    [89, 'NOT_ALLOWED', 'SEMP_NOT_ALLOWED stop'],
    [89, 'NOT_ALLOWED Replication Is Standby', 'REPLICATION_STANDBY wait'],
    [135, 'x', 'LIMIT_REACHED stop'],
    [228, 'x', 'SEMP_MISSING_PARAMETER stop'],
    [229, 'TIME_OUT', 'SEMP_TIME_OUT retry'],
    [256, 'x', 'SEMP_OBJECT_IN_USE stop'],
    [490, 'CONFIGDB_OBJECT_DEPENDENCY', 'SEMP_OBJECT_IN_USE stop'],
    [535, 'INVALID_PATH', 'SEMP_INVALID_PATH stop'],
    [424242, 'NOT_FOUND', 'SEMP_ERROR retry'],
  ])('SEMP code %i %s', (code, status, expected) => {
    const error = sempError(ATTEMPTED, { code, status, description: '' })
    expect(`${error.code} ${error.fate}`).toBe(expected)
    expect(error.message).toContain('Could not read x at https://b: ')
    if (error.fate === 'stop') expect(error.hint).toBeTruthy()
  })

  it.each([
    [401, 'SEMP_LOGIN_REFUSED stop'],
    [429, 'BROKER_TOO_MANY_REQUESTS wait'],
    [503, 'BROKER_UNAVAILABLE wait'],
    [529, 'SEMP_SESSIONS_EXHAUSTED wait'],
    [500, 'BROKER_INTERNAL_ERROR retry'],
    [404, 'BROKER_ANSWER_UNEXPECTED retry'],
    [418, 'BROKER_ANSWER_UNEXPECTED retry'],
  ])('HTTP status %i', (status, expected) => {
    const { code, fate } = httpError(ATTEMPTED, status)
    expect(`${code} ${fate}`).toBe(expected)
  })

  it.each([
    ['ENOTFOUND', 'BROKER_NAME_UNRESOLVED retry'],
    ['ECONNREFUSED', 'BROKER_UNREACHABLE retry'],
    ['UND_ERR_SOCKET', 'BROKER_CONNECTION_LOST retry'],
    ['UND_ERR_HEADERS_TIMEOUT', 'BROKER_TIMEOUT retry'],
    ['CERT_HAS_EXPIRED', 'BROKER_TLS_UNTRUSTED stop'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'BROKER_CONNECTION_FAILED retry'],
  ])('%s', (transportCode, expected) => {
    const { code, fate } = transportError(ATTEMPTED, transportCode)
    expect(`${code} ${fate}`).toBe(expected)
  })
})

describe('a write', () => {
  it('is sent again only when the broker did not process it', () => {
    const repeated = [429, 500, 502, 503, 504, 529].filter((status) => mayRepeat(httpError(ATTEMPTED, status), 'POST'))
    expect(repeated).toEqual([429, 503, 529])
    for (const code of ['ECONNRESET', 'DEADLINE', 'ENOTFOUND', 'ECONNREFUSED', 'SOMETHING']) {
      expect(mayRepeat(transportError(ATTEMPTED, code), 'PATCH')).toBe(false)
    }
  })
})

describe('the text of a broker', () => {
  it('loses secrets in every form it may quote them in', () => {
    const secret = 'a"b c/ü'
    const said = `raw ${secret} json ${JSON.stringify(secret)} url ${encodeURIComponent(secret)}`
    expect(cleanText(said, [secret, ''])).toBe('raw [secret] json "[secret]" url [secret]')
  })

  it('is one well-formed line', () => {
    expect(cleanText('a\u0000\r\n\u2028\u009bb \ud800', [])).toBe('a b \ufffd')
    expect(cleanText('x'.repeat(5_000), [])).toHaveLength(501)
  })
})

describe('the code of a connection error', () => {
  it('is found where several addresses were tried', () => {
    const refused = Object.assign(new Error('a'), { code: 'ECONNREFUSED' })
    expect(transportCodeOf(new AggregateError([refused]))).toBe('ECONNREFUSED')
    expect(transportCodeOf(new Error('x', { cause: refused }))).toBe('ECONNREFUSED')
    expect(transportCodeOf('odd')).toBe('UNKNOWN')
  })
})
