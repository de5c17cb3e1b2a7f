import { describe, expect, it } from 'vitest'
import type { PortalAccessRequest } from '../../src/domain/portal-file.ts'
import type { AccessRequestState } from '../../src/domain/registration.ts'
import { requestState } from '../../src/store/import-access-request.ts'
import { canonicalJson, hasUnstorableText, managementAddress } from '../../src/store/import-content.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'

type Given = PortalAccessRequest['state']
type Stored = readonly [state: AccessRequestState, approvedAtMs: number | null]

describe('the state of an access request after an import', () => {
  const cases: readonly [string, Given, Stored | null, 'automatic' | 'manual', AccessRequestState][] = [
    ['is approved when new, automatically', null, null, 'automatic', 'APPROVED'],
    ['waits when new and approval is manual', null, null, 'manual', 'PENDING_APPROVAL'],
    ['is what the file says when new', 'APPROVED', null, 'manual', 'APPROVED'],
    ['waits when new and the file says so', 'PENDING_APPROVAL', null, 'automatic', 'PENDING_APPROVAL'],
    ['stays when the file says nothing', null, ['LIVE', 1], 'manual', 'LIVE'],
    ['does not fall back from LIVE', 'APPROVED', ['LIVE', 1], 'manual', 'LIVE'],
    ['does not hide an error after approval', 'APPROVED', ['ERROR', 1], 'manual', 'ERROR'],
    ['is approved after an error before approval', 'APPROVED', ['ERROR', null], 'manual', 'APPROVED'],
    ['is approved when it was rejected', 'APPROVED', ['REJECTED', null], 'manual', 'APPROVED'],
    ['does not lose an approval that came later', 'PENDING_APPROVAL', ['APPROVED', 1], 'manual', 'APPROVED'],
    ['is asked for again after a rejection', 'PENDING_APPROVAL', ['REJECTED', null], 'manual', 'PENDING_APPROVAL'],
    ['is revoked', 'REVOKED', ['LIVE', 1], 'manual', 'REVOKED'],
    ['is rejected', 'REJECTED', ['PENDING_APPROVAL', null], 'manual', 'REJECTED'],
  ]
  it.each(cases)('%s', (_name, given, stored, approvalType, expected) => {
    const before = stored === null ? undefined : { state: stored[0], approvedAtMs: stored[1] }
    expect(requestState(given, before, approvalType)).toBe(expected)
  })
})

describe('canonical JSON', () => {
  it('is the same for the same content, whatever the order of keys and absent values', () => {
    const one = canonicalJson({ b: [1, { d: null, c: 'x' }], a: undefined })
    expect(one).toBe(canonicalJson({ b: [1, { c: 'x', d: null }] }))
    expect(one).toBe('{"b":[1,{"c":"x","d":null}]}')
  })

  it('differs when the order of a list differs', () => {
    expect(canonicalJson(['a', 'b'])).not.toBe(canonicalJson(['b', 'a']))
  })
})

describe('a management address', () => {
  const address = (url: string): string | null =>
    managementAddress({ url, msgVpnName: 'Vpn', username: 'u', maxConcurrentRequests: 1, requestTimeoutMs: 1 })

  const cases: readonly [string, string, string][] = [
    ['without a port has that of its scheme', 'https://broker.example', 'broker.example:443/Vpn'],
    ['without TLS too', 'http://broker.example', 'broker.example:80/Vpn'],
    ['has no path', 'https://broker.example:943/SEMP/v2/', 'broker.example:943/Vpn'],
    ['is in lower case, but for the message VPN', 'https://BROKER.example:943', 'broker.example:943/Vpn'],
    ['has no dot at the end of its host', 'https://broker.example.:943', 'broker.example:943/Vpn'],
    ['may be of version 6', 'https://[2001:DB8::1]:943', '[2001:db8::1]:943/Vpn'],
  ]
  it.each(cases)('%s', (_name, url, expected) => expect(address(url)).toBe(expected))

  it('is none without settings', () => expect(managementAddress(null)).toBeNull())
})

describe('text that the database cannot hold', () => {
  const cases: readonly [string, unknown, boolean][] = [
    ['a NUL inside a list', { a: ['x\u0000'] }, true],
    ['a NUL in a key', { 'a\u0000': 1 }, true],
    ['half of a surrogate pair', 'x\ud83d', true],
    ['an emoji and a written escape', { a: '😀 \\u0000' }, false],
  ]
  it.each(cases)('is found: %s', (_name, value, expected) => expect(hasUnstorableText(value)).toBe(expected))
})

describe('random tokens', () => {
  it('have the length that was asked for, of letters and digits, all of them', () => {
    const text = cryptoRandom.token(10_000)
    expect(text).toMatch(/^[A-Za-z0-9]{10000}$/)
    expect(new Set(text).size).toBe(62)
  })
})
