import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { codeOf, errorLine } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { ApimClient, type ApimClientOptions } from '../../src/sources/apim-client.ts'
import { type ApimTokens, fixedToken } from '../../src/sources/apim-tokens.ts'
import { BoundedHttp } from '../../src/sources/bounded-http.ts'
import { type Answer, type DoubleRequest, type SempDouble, sendJson, startDouble } from '../contract/semp-double.ts'

const TOKEN = 'the-token-of-the-test'
const SECRET = 'a-consumer-secret-of-somebody'

interface World extends AsyncDisposable {
  readonly client: ApimClient
  readonly double: SempDouble
}

interface WorldOptions extends Partial<ApimClientOptions> {
  readonly timeoutMs?: number
  /** Of the service, behind its address. */
  readonly path?: string
}

async function withClient(answer: Answer, options: WorldOptions = {}): Promise<World> {
  const double = await startDouble(answer)
  const http = new BoundedHttp({ timeoutMs: options.timeoutMs ?? 5_000, maxConnections: 2 })
  const tokens = fixedToken(new Secret(TOKEN))
  const url = `${double.url}${options.path ?? ''}`
  const client = new ApimClient({ http, tokens, repeatDelayMs: 1, ...options, url })
  return {
    client,
    double,
    async [Symbol.asyncDispose]() {
      await http.close()
      await double[Symbol.asyncDispose]()
    },
  }
}

const page = (data: readonly unknown[], pageNumber: number, nextPage: number | null) => ({
  data,
  meta: { pagination: { pageNumber, nextPage, count: 3, pageSize: 100, totalPages: 2 } },
})
const pageOf = ({ url }: DoubleRequest): number => Number(new URL(url, 'http://double').searchParams.get('pageNumber'))
const same = (item: unknown): unknown => item
const walk = ({ client }: World): Promise<readonly unknown[]> => client.list('things', same)

/** The first requests get these answers, every later one an empty page. */
const inTurn =
  (...answers: readonly ((response: ServerResponse, request: DoubleRequest) => void)[]): Answer =>
  (request, response) => {
    const answer = answers[request.number - 1]
    if (answer === undefined) sendJson(response, 200, page([], pageOf(request), null))
    else answer(response, request)
  }
const status =
  (code: number, headers: Readonly<Record<string, string>> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ message: `no: ${SECRET}`, errorId: 'abc' }))
  }
const text =
  (body: string, code = 200) =>
  (response: ServerResponse): void => {
    response.writeHead(code, { 'content-type': 'application/json' }).end(body)
  }

async function failureOf(work: Promise<unknown>): Promise<{ readonly code: string; readonly line: string }> {
  try {
    await work
  } catch (error) {
    const line = `${errorLine(error)} ${JSON.stringify(error)}`
    expect(line).not.toContain(SECRET)
    expect(line).not.toContain(TOKEN)
    return { code: codeOf(error), line }
  }
  throw new Error('it did not fail')
}

describe('a list of a remote catalogue', () => {
  it('is walked to its end, 100 to a page, with the token in a header', async () => {
    await using world = await withClient(
      inTurn(
        (response) => sendJson(response, 200, page([1, 2], 1, 2)),
        (response) => sendJson(response, 200, page([3], 2, null)),
      ),
      { path: '/base/' },
    )
    expect(await walk(world)).toEqual([1, 2, 3])
    expect(world.double.requests.map(({ url, method, headers }) => [method, url, headers.authorization])).toEqual([
      ['GET', '/base/api/v2/apim/things?pageSize=100&pageNumber=1', `Bearer ${TOKEN}`],
      ['GET', '/base/api/v2/apim/things?pageSize=100&pageNumber=2', `Bearer ${TOKEN}`],
    ])
  })

  it.each<[sentence: string, body: unknown, items: readonly unknown[]]>([
    ['without a next page in its pagination', { data: [1], meta: { pagination: {} } }, [1]],
    ['without pagination, when it is short', { data: [1], meta: {} }, [1]],
    ['without meta, when it is short', { data: [1] }, [1]],
    ['with what nobody knows', { ...page([1], 1, null), more: { of: 'it' } }, [1]],
  ])('is read %s', async (_sentence, body, items) => {
    await using world = await withClient(inTurn((response) => sendJson(response, 200, body)))
    expect(await walk(world)).toEqual(items)
  })

  const hundred = Array.from({ length: 100 }, (_, index) => index)
  it.each<[sentence: string, answer: Answer, problem: string, requests: number]>([
    [
      'that comes back to the same page',
      (request, response) => sendJson(response, 200, page([1], pageOf(request), pageOf(request))),
      'after page 1 comes page 1',
      1,
    ],
    [
      'that gives one page for all',
      (_request, response) => sendJson(response, 200, page([1], 1, 2)),
      'page 2 was asked for, and it is page 1',
      2,
    ],
    [
      'that does not say whether it goes on',
      (_request, response) => sendJson(response, 200, { data: hundred }),
      'does not say whether there are more pages',
      1,
    ],
    ['that is an object', (_request, response) => sendJson(response, 200, { data: { a: 1 } }), 'it is no list', 1],
    ['that is bare', (_request, response) => sendJson(response, 200, [1]), 'it is no list', 1],
    ['that is null', (_request, response) => sendJson(response, 200, null), 'it is no list', 1],
  ])('is refused when it is one %s', async (_sentence, answer, problem, requests) => {
    await using world = await withClient(answer)
    const { code, line } = await failureOf(walk(world))
    expect(code).toBe('REMOTE_ANSWER')
    expect(line).toContain(problem)
    expect(world.double.requests).toHaveLength(requests)
  })
})

describe('a call of a remote catalogue', () => {
  it.each<[sentence: string, first: (response: ServerResponse) => void]>([
    ['is told to come later', status(429, { 'retry-after': '0' })],
    ['is told to come a moment later', status(503, { 'retry-after': '0.05' })],
    ['meets an error of the server', status(500)],
    ['meets a gateway without a server', status(502)],
    ['gets half of an answer', text('{"data": [{"id": "a-consu')],
    ['gets an empty answer', text('')],
    ['gets a page for people', text('<html>Maintenance</html>')],
    ['loses the connection', (response) => response.destroy()],
    [
      'loses the connection in the middle',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
        response.write('{"data"')
        response.socket?.destroySoon()
      },
    ],
  ])('is repeated when it %s', async (_sentence, first) => {
    await using world = await withClient(inTurn(first))
    expect(await walk(world)).toEqual([])
    expect(world.double.requests).toHaveLength(2)
  })

  it.each<[sentence: string, answer: (response: ServerResponse) => void, code: string]>([
    ['the server stays busy', status(503), 'REMOTE_BUSY'],
    ['answers stay cut off', text('{"data": [{"secret": "a-consu'), 'REMOTE_ANSWER'],
    ['connections stay lost', (response) => response.destroy(), 'REMOTE_UNREACHABLE'],
  ])('gives up when %s', async (_sentence, answer, expected) => {
    await using world = await withClient((_request, response) => answer(response), { maxRepeats: 2 })
    expect((await failureOf(walk(world))).code).toBe(expected)
    expect(world.double.requests).toHaveLength(3)
  })

  it.each<[sentence: string, code: number, expected: string]>([
    ['a bad request', 400, 'REMOTE_REFUSED'],
    ['a token that it does not know', 401, 'REMOTE_NOT_AUTHENTICATED'],
    ['a permission that is missing', 403, 'REMOTE_FORBIDDEN'],
    ['an address that is wrong', 404, 'REMOTE_NOT_FOUND'],
    ['a success without content', 204, 'REMOTE_REFUSED'],
  ])('is not repeated for %s', async (_sentence, code, expected) => {
    await using world = await withClient((_request, response) => status(code)(response))
    expect((await failureOf(walk(world))).code).toBe(expected)
    expect(world.double.requests).toHaveLength(1)
  })

  it('does not wait for a server that says to come in an hour', async () => {
    await using world = await withClient((_request, response) => status(503, { 'retry-after': '3600' })(response))
    expect((await failureOf(walk(world))).code).toBe('REMOTE_BUSY')
    expect(world.double.requests).toHaveLength(1)
  })

  it.each([301, 302, 307, 308])('does not follow a redirect (%i) with its token', async (code) => {
    await using elsewhere = await startDouble((_request, response) => sendJson(response, 200, page([1], 1, null)))
    const location = `${elsewhere.url}/api/v2/apim/things`
    await using world = await withClient((_request, response) => status(code, { location })(response))
    expect((await failureOf(walk(world))).code).toBe('REMOTE_REDIRECTS')
    expect(elsewhere.requests).toEqual([])
    expect(world.double.requests).toHaveLength(1)
  })

  it('does not read an answer that is too large', async () => {
    const chunk = Buffer.alloc(64 * 1024, 32)
    let written = 0
    const endless: Answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) written += chunk.length
        response.once('drain', more)
      }
      more()
    }
    await using world = await withClient(endless, { maxAnswerBytes: 1024 * 1024 })
    const { code, line } = await failureOf(walk(world))
    expect(code).toBe('REMOTE_ANSWER_TOO_LARGE')
    expect(line).toContain('more than 1048576 bytes')
    expect(written).toBeLessThan(64 * 1024 * 1024)
    expect(world.double.requests).toHaveLength(1)
  })

  it('does not wait for ever', async () => {
    await using world = await withClient(() => undefined, { timeoutMs: 50, maxRepeats: 1 })
    const { code, line } = await failureOf(walk(world))
    expect(code).toBe('REMOTE_TIMEOUT')
    expect(line).toContain('did not answer in time')
  })

  it('ends when it is told to, and with that reason', async () => {
    const controller = new AbortController()
    await using world = await withClient(() => controller.abort(new Error('asked to stop')))
    await expect(world.client.list('things', same, controller.signal)).rejects.toThrow('asked to stop')
    expect(world.double.requests).toHaveLength(1)
  })
})

describe('one object of a remote catalogue', () => {
  it.each<[sentence: string, answer: (response: ServerResponse) => void, found: unknown]>([
    ['is found', text('{"data":{"id":"one"},"meta":{}}'), { id: 'one' }],
    ['is not there when the service says so', status(404), null],
  ])('%s', async (_sentence, answer, found) => {
    await using world = await withClient((_request, response) => answer(response))
    expect(await world.client.find('things/one')).toEqual(found)
  })

  it.each<[sentence: string, answer: (response: ServerResponse) => void]>([
    ['something on the way that says 404', text('<html>Not found</html>', 404)],
    ['a 404 that says nothing', text('{}', 404)],
    ['an answer without an object', text('{"meta":{}}')],
    ['an answer with a null', text('{"data":null}')],
  ])('does not count as absent for %s', async (_sentence, answer) => {
    await using world = await withClient((_request, response) => answer(response), { maxRepeats: 0 })
    expect((await failureOf(world.client.find('things/one'))).code).toBe('REMOTE_ANSWER')
  })
})

describe('a token that is refused', () => {
  /** Gives `first`, then what it is renewed to. */
  function renewable(next: string | null): ApimTokens & { renewals: number } {
    return {
      renewals: 0,
      current: async () => new Secret(TOKEN),
      async renewed() {
        this.renewals += 1
        return next === null ? null : new Secret(next)
      },
      close: async () => undefined,
    }
  }
  const accepting =
    (token: string): Answer =>
    (request, response) => {
      if (request.headers.authorization === `Bearer ${token}`) sendJson(response, 200, page([1], 1, null))
      else status(401)(response)
    }

  it('is renewed once, and the call goes on', async () => {
    const tokens = renewable('the-next-token')
    await using world = await withClient(accepting('the-next-token'), { tokens })
    expect(await walk(world)).toEqual([1])
    expect(tokens.renewals).toBe(1)
    expect(world.double.requests).toHaveLength(2)
  })

  it.each([
    ['no other is to be had', null, 1],
    ['the next one is refused as well', 'another-wrong-token', 2],
  ])('ends the call when %s', async (_sentence, next, requests) => {
    const tokens = renewable(next)
    await using world = await withClient(accepting('the-right-token'), { tokens })
    expect((await failureOf(walk(world))).code).toBe('REMOTE_NOT_AUTHENTICATED')
    expect(tokens.renewals).toBe(1)
    expect(world.double.requests).toHaveLength(requests)
  })
})
