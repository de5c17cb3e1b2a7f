import { describe, expect, it, vi } from 'vitest'
import {
  createSolaceBroker,
  type SolaceBroker,
  type SolaceBrokerOptions,
} from '../../src/brokers/solace/solace-broker.ts'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { type Answer, type SempDouble, sendData, sendJson, sendRefusal, startDouble } from '../contract/semp-double.ts'

const MSG_VPN = '/SEMP/v2/config/msgVpns/test-vpn'
const USER = { kind: 'clientUsername', name: 'alice' } as const
const ACL_ATTRIBUTES = {
  clientConnectDefaultAction: 'allow',
  publishTopicDefaultAction: 'disallow',
  subscribeTopicDefaultAction: 'disallow',
}

interface Setup {
  readonly double: SempDouble
  readonly port: SolaceBroker
  readonly paths: () => readonly string[]
}

async function withPort(
  answer: Answer,
  work: (setup: Setup) => Promise<void>,
  options: SolaceBrokerOptions = {},
): Promise<void> {
  await using double = await startDouble(answer)
  const port = createSolaceBroker(double.settings(), new Secret('x'), { repeatDelayMs: 1, maxRepeats: 1, ...options })
  try {
    await work({ double, port, paths: () => double.requests.map(({ url }) => new URL(url, double.url).pathname) })
  } finally {
    await port.close()
  }
}

const isMsgVpn = (url: string): boolean => new URL(url, 'http://x').pathname === MSG_VPN

const sendMsgVpn: Answer = (_request, response) =>
  sendData(response, { enabled: true, authenticationBasicEnabled: true, authenticationBasicType: 'internal' })

const sendFacts: Answer = (request, response) =>
  isMsgVpn(request.url) ? sendMsgVpn(request, response) : sendData(response, { sempVersion: '2.49' })

/** Answers facts; the rest goes to `answer`. */
const afterFacts =
  (answer: Answer): Answer =>
  (request, response) =>
    isMsgVpn(request.url) || request.url.includes('/about/api')
      ? sendFacts(request, response)
      : answer(request, response)

async function failureOf(promise: Promise<unknown>): Promise<KeymeshError> {
  const failure = await promise.then(
    () => 'nothing',
    (error: unknown) => error,
  )
  if (!(failure instanceof KeymeshError)) throw new Error(`expected a KeymeshError, got ${String(failure)}`)
  return failure
}

async function collect(pages: AsyncIterable<readonly BrokerObject[]>): Promise<readonly string[]> {
  const names: string[] = []
  for await (const page of pages) for (const { name } of page) names.push(name)
  return names
}

describe('absent', () => {
  const absent: Answer = (_request, response) => sendRefusal(response, 6, 'NOT_FOUND', 'Could not find match for alice')

  it('is code 6 after the facts were read, without another read', async () => {
    await withPort(afterFacts(absent), async ({ port, paths }) => {
      await port.facts()
      expect(await port.get(USER)).toBeNull()
      expect(paths()).toEqual([MSG_VPN, '/SEMP/v2/config/about/api', `${MSG_VPN}/clientUsernames/alice`])
    })
  })

  it('is vouched for by a read of the message VPN when none was made, or too long ago', async () => {
    await withPort(
      afterFacts(absent),
      async ({ port, paths }) => {
        expect(await port.get(USER)).toBeNull()
        expect(paths()).toEqual([`${MSG_VPN}/clientUsernames/alice`, MSG_VPN])
        await vi.waitFor(async () => {
          const before = paths().length
          await port.get(USER)
          expect(paths().length - before).toBe(2)
        })
      },
      { msgVpnFreshMs: 1 },
    )
  })

  it('is not said of an object when the message VPN cannot be read', async () => {
    const answer: Answer = (request, response) =>
      isMsgVpn(request.url) ? sendJson(response, 503, {}) : absent(request, response)
    await withPort(answer, async ({ port }) => {
      expect((await failureOf(port.get(USER))).code).toBe('BROKER_UNAVAILABLE')
      expect((await failureOf(port.members({ kind: 'queue', name: 'q' }))).code).toBe('BROKER_UNAVAILABLE')
      expect((await failureOf(port.delete(USER))).code).toBe('BROKER_UNAVAILABLE')
    })
  })

  it('is the message VPN when that is what is missing: the error names it and the broker', async () => {
    await withPort(absent, async ({ double, port }) => {
      for (const attempt of [() => port.get(USER), () => port.delete(USER), () => collect(port.list('queue'))]) {
        const failure = await failureOf(attempt())
        expect(failure).toMatchObject({ code: 'MSG_VPN_NOT_FOUND', fate: 'stop' })
        expect(failure.message).toContain('"test-vpn"')
        expect(failure.message).toContain(double.url)
      }
    })
  })

  it('is not a collection whose message VPN is there', async () => {
    await withPort(afterFacts(absent), async ({ port }) => {
      await port.facts()
      expect((await failureOf(collect(port.list('queue')))).code).toBe('BROKER_ANSWER_UNEXPECTED')
    })
  })

  const notAbsent: readonly [string, Answer][] = [
    ['404', (_request, response) => sendJson(response, 404, {})],
    ['404 with HTML', (_request, response) => response.writeHead(404).end('<h1>Not Found</h1>')],
    ['code 11', (_request, response) => sendRefusal(response, 11, 'NOT_FOUND')],
    ['no data', (_request, response) => sendJson(response, 200, { meta: { responseCode: 200 } })],
    ['data null', (_request, response) => sendData(response, null)],
    ['an empty object', (_request, response) => sendData(response, {})],
    ['a list', (_request, response) => sendData(response, [])],
    ['another object', (_request, response) => sendData(response, { aclProfileName: 'other', ...ACL_ATTRIBUTES })],
    [
      'an attribute of another type',
      (_request, response) =>
        sendData(response, { aclProfileName: 'a', ...ACL_ATTRIBUTES, publishTopicDefaultAction: 1 }),
    ],
  ]
  it.each(notAbsent)('is not %s', async (_name, answer) => {
    await withPort(afterFacts(answer), async ({ port }) => {
      await port.facts()
      expect((await failureOf(port.get({ kind: 'aclProfile', name: 'a' }))).code).not.toMatch(/NOT_FOUND/)
    })
  })

  it('and an object without members, when the message VPN was read, are told apart by the broker alone', async () => {
    const answer = afterFacts(({ url }, response) =>
      url.includes('/queues/gone/') ? sendRefusal(response, 6, 'NOT_FOUND') : sendData(response, []),
    )
    await withPort(answer, async ({ port }) => {
      await port.facts()
      expect(await port.members({ kind: 'queue', name: 'here' })).toEqual({ subscriptions: [] })
      expect(await port.members({ kind: 'queue', name: 'gone' })).toBeNull()
    })
  })
})

describe('a list', () => {
  const acl = (name: string): object => ({
    aclProfileName: name,
    ...ACL_ATTRIBUTES,
    subscribeShareNameDefaultAction: 'x',
  })
  /** Pages by cursor; the cursor of the last one is null. */
  const pages =
    (
      content: readonly (readonly string[])[],
      uri = (cursor: number): string => `http://elsewhere.invalid/?cursor=c${cursor}`,
    ): Answer =>
    ({ url }, response) => {
      const cursor = Number(/cursor=c(\d+)/.exec(url)?.[1] ?? 0)
      const paging = cursor + 1 < content.length ? { cursorQuery: 'unused', nextPageUri: uri(cursor + 1) } : undefined
      sendData(response, (content[cursor] ?? []).map(acl), paging)
    }

  it('goes on over short and empty pages, with the cursor alone and on the same host', async () => {
    await withPort(pages([['a'], [], [], ['b', 'c'], []]), async ({ double, port }) => {
      expect(await collect(port.list('aclProfile'))).toEqual(['a', 'b', 'c'])
      const base = `${MSG_VPN}/aclProfiles?select=aclProfileName,${Object.keys(ACL_ATTRIBUTES).join(',')}&count=100`
      expect(double.requests.map(({ url }) => url)).toEqual([
        base,
        ...[1, 2, 3, 4].map((cursor) => `${base}&cursor=c${cursor}`),
      ])
    })
  })

  it('fetches one page ahead and no more', async () => {
    const content = Array.from({ length: 5 }, (_, index) => [`p${index}`])
    await withPort(pages(content), async ({ double, port }) => {
      let worked = 0
      for await (const _page of port.list('aclProfile')) {
        worked += 1
        await vi.waitFor(() => expect(double.requests.length).toBe(Math.min(worked + 1, 5)))
      }
      expect(worked).toBe(5)
    })
  })

  it.each([
    ['comes again', (): string => '/x?cursor=c1'],
    ['is longer than any URL', (cursor: number): string => `/x?cursor=c${cursor}${'0'.repeat(9_000)}`],
  ])('ends with an error when its cursor %s', async (_name, uri) => {
    await withPort(pages([['a'], ['b'], ['c']], uri), async ({ port }) => {
      expect((await failureOf(collect(port.list('aclProfile')))).code).toBe('BROKER_ANSWER_UNEXPECTED')
    })
  })

  it.each<[string, Answer]>([
    ['one object instead of a list', (_request, response) => sendData(response, acl('a'))],
    ['an object without its name', (_request, response) => sendData(response, [ACL_ATTRIBUTES])],
    ['an object without an attribute', (_request, response) => sendData(response, [{ aclProfileName: 'a' }])],
  ])('does not take %s', async (_name, answer) => {
    await withPort(answer, async ({ port }) => {
      const failure = await failureOf(collect(port.list('aclProfile')))
      expect(failure).toMatchObject({ code: 'BROKER_ANSWER_UNEXPECTED', fate: 'retry' })
      expect(failure.message).toMatch(/data/)
    })
  })

  it('fails on the page that fails, after those before it, and leaves no unhandled failure behind', async () => {
    const answer: Answer = (request, response) =>
      request.url.includes('cursor=') ? response.destroy() : pages([['a'], ['b']])(request, response)
    await withPort(answer, async ({ port }) => {
      const names: string[] = []
      const read = async (): Promise<void> => {
        for await (const page of port.list('aclProfile')) names.push(...page.map(({ name }) => name))
      }
      expect((await failureOf(read())).code).toBe('BROKER_CONNECTION_LOST')
      expect(names).toEqual(['a'])
      for await (const _page of port.list('aclProfile')) break
    })
  })
})

describe('a write', () => {
  it('sends the attributes given, the name and the password, and nothing else', async () => {
    await withPort(
      (_request, response) => sendData(response, {}),
      async ({ double, port }) => {
        await port.create({ ...USER, attributes: { enabled: true }, members: {} }, new Secret('pass'))
        await port.update(USER, { enabled: false }, null)
        await port.addMember({ kind: 'aclProfile', name: 'a' }, 'publishTopicExceptionsMqtt', 'x/#')
        await port.addMember({ kind: 'queue', name: 'q' }, 'subscriptions', 'x/>')
        expect(double.requests.map(({ method, body }) => [method, JSON.parse(body)])).toEqual([
          ['POST', { clientUsername: 'alice', enabled: true, password: 'pass' }],
          ['PATCH', { enabled: false }],
          ['POST', { publishTopicException: 'x/#', publishTopicExceptionSyntax: 'mqtt' }],
          ['POST', { subscriptionTopic: 'x/>' }],
        ])
        expect(double.requests.every(({ headers }) => headers['content-type'] === 'application/json')).toBe(true)
      },
    )
  })

  it('does not send a password that no broker takes', async () => {
    await withPort(sendFacts, async ({ double, port }) => {
      const long = await failureOf(port.update(USER, {}, new Secret('y'.repeat(129))))
      expect(long).toMatchObject({ code: 'INVALID_PASSWORD', fate: 'stop' })
      expect(long.message).not.toContain('yyy')
      const queue = { kind: 'queue', name: 'q', attributes: {}, members: {} } as const
      expect((await failureOf(port.create(queue, new Secret('z')))).code).toBe('INVALID_PASSWORD')
      expect(double.requests).toHaveLength(0)
    })
  })

  it('that was refused, and finds its object at the repeat, may have made it', async () => {
    const exists: Answer = (_request, response) => sendRefusal(response, 10, 'ALREADY_EXISTS', 'alice exists')
    let tries = 0
    const answer: Answer = (request, response) => {
      tries += 1
      return tries === 2 ? sendJson(response, 503, {}) : exists(request, response)
    }
    await withPort(answer, async ({ port }) => {
      const create = () => port.create({ ...USER, attributes: {}, members: {} }, null)
      expect((await failureOf(create())).code).toBe('ALREADY_EXISTS')
      expect((await failureOf(create())).code).toBe('BROKER_UNAVAILABLE')
      expect(tries).toBe(3)
      await port.addMember({ kind: 'queue', name: 'q' }, 'subscriptions', 'a/b')
    })
  })

  it('whose refusal quotes the password does not pass it on', async () => {
    const answer: Answer = ({ body }, response) => sendRefusal(response, 11, 'INVALID_PARAMETER', `bad body ${body}`)
    await withPort(answer, async ({ port }) => {
      const failure = await failureOf(port.update(USER, { enabled: true }, new Secret('s3cr"et')))
      expect(`${failure.message} ${JSON.stringify(failure)} ${failure.stack}`).not.toMatch(/s3cr/)
      expect(failure.message).toContain('[secret]')
    })
  })
})

describe('the messages of a queue', () => {
  const monitor =
    (content: object): Answer =>
    (_request, response) =>
      sendJson(response, 200, { meta: { responseCode: 200 }, ...content })
  const cases: readonly [string, Answer, number | null][] = [
    ['are counted', monitor({ data: { msgSpoolUsage: 5 }, collections: { msgs: { count: 4 } } }), 4],
    ['are none', monitor({ data: { msgSpoolUsage: 0 }, collections: { msgs: { count: 0 } } }), 0],
    [
      'are unknown when bytes are spooled without a message',
      monitor({ data: { msgSpoolUsage: 9 }, collections: { msgs: { count: 0 } } }),
      null,
    ],
    ['are unknown without the count', monitor({ data: { msgSpoolUsage: 0 } }), null],
    [
      'are unknown when the SEMP user may not see them',
      (_request, response) => sendRefusal(response, 72, 'UNAUTHORIZED'),
      null,
    ],
    [
      'are unknown when the broker does not know the path',
      (_request, response) => sendRefusal(response, 535, 'INVALID_PATH'),
      null,
    ],
  ]
  it.each(cases)('%s', async (_name, answer, expected) => {
    await withPort(answer, async ({ port, paths }) => {
      expect(await port.queuedMessages('a/b')).toBe(expected)
      expect(paths()).toEqual(['/SEMP/v2/monitor/msgVpns/test-vpn/queues/a%2Fb'])
    })
  })

  it('are an error when the broker is unreachable', async () => {
    await withPort(
      (_request, response) => response.destroy(),
      async ({ port }) => expect((await failureOf(port.queuedMessages('q'))).fate).toBe('retry'),
    )
  })
})

describe('connections', () => {
  const profile = (limit: number) => ({
    clientProfileName: 'small',
    maxConnectionCountPerClientUsername: limit,
    serviceSmfMaxConnectionCountPerClientUsername: 200_000,
    serviceWebMaxConnectionCountPerClientUsername: 200_000,
  })
  const alice = {
    clientUsername: 'alice',
    enabled: true,
    aclProfileName: 'acl',
    clientProfileName: 'small',
    guaranteedEndpointPermissionOverrideEnabled: false,
    subscriptionManagerEnabled: false,
  }
  /** A broker that answers all that is asked on the way, unless a part of the path is told to answer otherwise. */
  const answering = (instead: Readonly<Record<string, Answer>>): Answer =>
    afterFacts((request, response) => {
      const told = Object.entries(instead).find(([part]) => request.url.includes(part))?.[1]
      if (told !== undefined) told(request, response)
      else if (request.url.includes('/clientProfiles')) sendData(response, [profile(5)])
      else if (request.url.includes('/clientUsernames/')) sendData(response, alice)
      else sendData(response, [{ clientUsername: 'alice' }, { clientUsername: 'alice' }])
    })
  const refuse =
    (code: number, status: string): Answer =>
    (_request, response) =>
      sendRefusal(response, code, status)

  it.each<[string, Readonly<Record<string, Answer>>]>([
    ['that has no monitoring API', { '/monitor/': refuse(535, 'INVALID_PATH') }],
    ['whose monitoring API knows no such collection', { '/monitor/': refuse(6, 'NOT_FOUND') }],
    ['that does not list by client username', { '/monitor/': refuse(11, 'INVALID_PARAMETER') }],
    ['that does not let the SEMP user monitor', { '/monitor/': refuse(72, 'UNAUTHORIZED') }],
    ['that does not let the SEMP user read client profiles', { '/clientProfiles': refuse(72, 'UNAUTHORIZED') }],
    ['whose client profiles have no such limit', { '/clientProfiles': refuse(11, 'INVALID_PARAMETER') }],
    [
      'that limits to more than a probe can fill',
      { '/clientProfiles': (_, response) => sendData(response, [profile(1001)]) },
    ],
  ])('are null on a broker %s', async (_name, instead) => {
    await withPort(answering(instead), async ({ port }) => {
      await port.facts()
      expect(await port.connections('alice')).toBeNull()
    })
  })

  it('are of the client username alone, whatever the broker makes of the condition', async () => {
    const mixed: Answer = (_request, response) =>
      sendData(response, [{ clientUsername: 'alice2' }, { clientUsername: 'alice' }])
    await withPort(answering({ '/monitor/': mixed }), async ({ port, double }) => {
      await port.facts()
      expect(await port.connections('alice')).toEqual({ open: 1, limit: 5 })
      const { searchParams, pathname } = new URL(double.requests.at(-1)?.url ?? '', double.url)
      expect(pathname).toBe('/SEMP/v2/monitor/msgVpns/test-vpn/clients')
      expect(searchParams.get('where')).toBe('clientUsername==alice')
    })
  })

  it.each(['/clientProfiles', '/clientUsernames/', '/monitor/'])(
    'are an error when the broker does not answer for %s, and are asked for anew',
    async (part) => {
      let broken = true
      const answer: Answer = (request, response) =>
        broken && request.url.includes(part) ? response.destroy() : answering({})(request, response)
      await withPort(answer, async ({ port }) => {
        await port.facts()
        expect((await failureOf(port.connections('alice'))).fate).toBe('retry')
        broken = false
        expect(await port.connections('alice')).toEqual({ open: 2, limit: 5 })
      })
    },
  )
})
