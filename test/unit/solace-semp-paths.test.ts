import { describe, expect, it } from 'vitest'
import { encodePart, nextCursor, pagePath, SempPaths, sempAddress } from '../../src/brokers/solace/semp-paths.ts'

describe('the parts of a path', () => {
  it('are percent-encoded but for the unreserved characters', () => {
    const unreserved = 'AZaz09-._~'
    expect(encodePart(unreserved)).toBe(unreserved)
    expect(encodePart("a/b,c d>*#?%é!'()")).toBe('a%2Fb%2Cc%20d%3E%2A%23%3F%25%C3%A9%21%27%28%29')
  })

  it('join a key of two parts by a comma that is not encoded', () => {
    const paths = new SempPaths('my vpn')
    const acl = { kind: 'aclProfile', name: 'a/b' } as const
    const base = '/SEMP/v2/config/msgVpns/my%20vpn'
    expect(paths.member(acl, 'publishTopicExceptions', 'a,b/>')).toBe(
      `${base}/aclProfiles/a%2Fb/publishTopicExceptions/smf,a%2Cb%2F%3E`,
    )
    expect(paths.member(acl, 'subscribeTopicExceptionsMqtt', '+/#')).toBe(
      `${base}/aclProfiles/a%2Fb/subscribeTopicExceptions/mqtt,%2B%2F%23`,
    )
    expect(paths.member({ kind: 'queue', name: 'q' }, 'subscriptions', 'a/>')).toBe(
      `${base}/queues/q/subscriptions/a%2F%3E`,
    )
    expect(paths.monitoredQueue('#q')).toBe('/SEMP/v2/monitor/msgVpns/my%20vpn/queues/%23q')
  })

  it('ask for the largest page', () => {
    expect(pagePath('/x', ['a', 'b'], null)).toBe('/x?select=a,b&count=100')
    expect(pagePath('/x', ['a'], '%3Cy%3E')).toBe('/x?select=a&count=100&cursor=%3Cy%3E')
  })
})

describe('the cursor of the next page', () => {
  const cases: readonly [string, Parameters<typeof nextCursor>[0], string | null][] = [
    ['there is none', undefined, null],
    ['both are empty', { cursorQuery: '', nextPageUri: '' }, null],
    [
      'the URI has it encoded',
      { cursorQuery: '<a b>', nextPageUri: 'http://h/p?count=1&cursor=%3Ca%20b%3E' },
      '%3Ca%20b%3E',
    ],
    [
      'the URI names another host: only its cursor is used',
      { nextPageUri: 'https://evil.example/p?cursor=c1&x=y#z' },
      'c1',
    ],
    ['the URI is relative', { nextPageUri: '/p?cursor=c2' }, 'c2'],
    ['there is no URI and the cursor is encoded', { cursorQuery: '%3Crpc%3E' }, '%3Crpc%3E'],
    ['there is no URI and the cursor is plain', { cursorQuery: '<rpc a="1&2">' }, '%3Crpc%20a%3D%221%262%22%3E'],
    ['the URI is not encoded', { cursorQuery: '<a>', nextPageUri: 'http://h/p?cursor=<a>' }, '%3Ca%3E'],
    ['it would leave the query', { cursorQuery: 'a#b', nextPageUri: 'x' }, 'a%23b'],
  ]
  it.each(cases)('when %s', (_name, paging, expected) => {
    expect(nextCursor(paging)).toBe(expected)
  })
})

describe('the address of a broker', () => {
  it.each([
    ['https://host:943', 'https://host:943', ''],
    ['https://host:943/', 'https://host:943', ''],
    ['http://host/SEMP/v2/config/', 'http://host', ''],
    ['http://host/SEMP/v2', 'http://host', ''],
    ['http://host/proxy/one/SEMP', 'http://host', '/proxy/one'],
    ['https://admin:hunter2@host/proxy?token=hunter2', 'https://host', '/proxy'],
  ])('%s', (text, origin, prefix) => {
    const address = sempAddress(text)
    expect(address).toMatchObject({ origin, prefix, display: origin + prefix })
    expect(JSON.stringify(address)).not.toContain('hunter2')
  })

  it.each(['', 'host:943', 'ftp://host', 'https://'])('%j is refused', (text) => {
    expect(() => sempAddress(text)).toThrow(expect.objectContaining({ code: 'INVALID_BROKER_URL', fate: 'stop' }))
  })
})
