import { connect } from 'node:net'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../src/http/app.ts'
import { one, oneOf } from '../../src/http/pagination.ts'
import { requireMember } from '../../src/http/permissions.ts'
import { startServer } from '../../src/http/server.ts'
import { type Answer, type TestApi, withApi } from '../helpers/http.ts'

let api: TestApi
beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

interface ErrorBody {
  readonly message: string
  readonly errorId: string
  readonly validationDetails?: Readonly<Record<string, readonly string[]>>
}

function expectError(answer: Answer, status: number): ErrorBody {
  expect(answer.status).toBe(status)
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(answer.body).toMatchObject({
    message: expect.stringMatching(/^.{4,256}$/s),
    errorId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  return answer.body as ErrorBody
}

function memoryLog() {
  const lines: Record<string, unknown>[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)) as Record<string, unknown>)
      done()
    },
  })
  return { lines, log: pino({ level: 'info' }, stream) }
}

describe('the example route', () => {
  it('says who calls, by an API token and by a user token', async () => {
    const byApiToken = await api.call('GET', '/api/v0/user')
    expect(byApiToken).toMatchObject({
      status: 200,
      body: {
        data: { kind: 'apiToken', accountName: 'default', userName: 'admin', roles: ['administrator'] },
        meta: {},
      },
    })
    const byUserToken = await api.call('GET', '/api/v0/user', { token: api.userToken })
    expect(byUserToken).toMatchObject({ status: 200, body: { data: { kind: 'user', permissions: [] } } })
  })
})

describe('every answer', () => {
  it('carries a request id, the headers that browsers look at, and no leave to be kept', async () => {
    for (const path of ['/api/v0/user', '/nowhere', '/healthz']) {
      const { headers } = await api.call('GET', path)
      expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cache-control': 'no-store',
      })
    }
  })

  it("takes over a caller's request id when it is harmless", async () => {
    const given = async (id: string) => (await api.call('GET', '/healthz', { headers: { 'x-request-id': id } })).headers
    expect((await given('trace-42'))['x-request-id']).toBe('trace-42')
    expect((await given('a b"c'))['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('a request', () => {
  it.each<readonly [string, string | null]>([
    ['no token', null],
    ['an API token that never was', `km_${'a'.repeat(11)}_${'b'.repeat(43)}`],
    ['half a JWT', 'eyJhbGciOiJIUzI1NiJ9.e30'],
    ['an empty token', ''],
    ['a very long one', 'x'.repeat(5000)],
  ])('with %s is not known', async (_sentence, token) => {
    const answer = await api.call('GET', '/api/v0/user', { token })
    expectError(answer, 401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
  })

  it('with the right id and a wrong secret is not known', async () => {
    const wrong = `${api.token.slice(0, -1)}${api.token.endsWith('a') ? 'b' : 'a'}`
    expectError(await api.call('GET', '/api/v0/user', { token: wrong }), 401)
  })

  it.each<readonly [string, { body?: unknown; type?: string; status: number }]>([
    ['that is no JSON', { body: '{"name":', status: 400 }],
    ['that would change prototypes', { body: '{"__proto__":{"x":1}}', status: 400 }],
    ['that is absent', { body: '', status: 400 }],
    ['of another type', { body: '<a/>', type: 'application/xml', status: 415 }],
    ['of plain text', { body: 'hello', type: 'text/plain', status: 415 }],
    ['that is too large', { body: JSON.stringify({ name: 'x'.repeat(1024 * 1024) }), status: 413 }],
    ['that is no object', { body: '[]', status: 400 }],
    ['with NUL', { body: JSON.stringify({ name: 'a\u0000b', permissions: ['services:get'] }), status: 400 }],
    ['with half a character', { body: '{"name":"\\ud800","permissions":["services:get"]}', status: 400 }],
    ['without a bottom', { body: `${'['.repeat(100_000)}${']'.repeat(100_000)}`, status: 400 }],
  ])('with a body %s is refused', async (_sentence, { body, type = 'application/json', status }) => {
    const answer = await api.call('POST', '/api/v0/user/apiTokens', {
      token: api.userToken,
      body,
      headers: { 'content-type': type },
    })
    expectError(answer, status)
  })

  it('with unknown fields and parameters is told each of them', async () => {
    const body = { name: 'gateway', permissions: ['services:get', 'services:fly'], colour: 'red', size: 1 }
    const posted = await api.call('POST', '/api/v0/user/apiTokens', { token: api.userToken, body })
    expect(Object.keys(expectError(posted, 400).validationDetails ?? {})).toEqual(['permissions[1]', 'colour', 'size'])
    const listed = await api.call('GET', '/api/v0/user/apiTokens?page=2&pageSize=500', { token: api.userToken })
    expect(Object.keys(expectError(listed, 400).validationDetails ?? {})).toEqual(['pageSize', 'page'])
  })

  it.each(['/nowhere', '/api/v2/apim', '/api/v0/user/', `/${'x'.repeat(5000)}`, '/api/v0/users/a/b/c'])(
    'for %.30s finds nothing',
    async (path) => {
      expectError(await api.call('GET', path), 404)
    },
  )

  it('with a broken address is refused', async () => {
    expectError(await api.call('GET', '/%00'), 400)
    expectError(await api.call('GET', '/api/v0/users/%E0%A4%A'), 400)
  })

  it('with a method that is not served finds nothing', async () => {
    expectError(await api.call('DELETE', '/api/v0/user'), 404)
  })

  it('without a body may say that it is JSON', async () => {
    const headers = { 'content-type': 'application/json' }
    const token = api.userToken
    const exchanged = await api.call('POST', '/api/v0/iam/tokens/default', { token, headers, body: '' })
    expect(exchanged.status).toBe(200)
    expectError(await api.call('DELETE', '/api/v0/user/apiTokens/none', { token, headers }), 404)
  })
})

describe('an error of the service', () => {
  it('shows nothing of itself, and is in the log under its id', async () => {
    const { lines, log } = memoryLog()
    const userTokens = {
      issue: () => Promise.reject(new Error('no')),
      verify: () => Promise.reject(new Error('connection to 10.9.8.7 was lost')),
    }
    await using broken = await withApi({ log, dependencies: { userTokens: { ...userTokens, issue: async () => 'x' } } })
    const answer = await broken.call('GET', '/api/v0/user', { token: 'x', headers: { 'x-request-id': 'find-me' } })
    const { errorId } = expectError(answer, 500)
    expect(JSON.stringify(answer)).not.toContain('10.9.8.7')
    expect(lines.find((line) => line.event === 'http.failed')).toMatchObject({
      errorId,
      requestId: 'find-me',
      err: { message: 'connection to 10.9.8.7 was lost' },
    })
    expect(lines.find((line) => line.event === 'http.answered')).toMatchObject({
      method: 'GET',
      route: '/api/v0/user',
      status: 500,
      requestId: 'find-me',
    })
  })

  it('is an answer that its own contract does not allow', async () => {
    const { lines, log } = memoryLog()
    const app = await createApp({ ...api.dependencies, log })
    const schema = { response: { 200: oneOf(z.strictObject({ name: z.string() })) } }
    app.get('/wrong', { config: { access: 'public' }, schema }, () => one({ name: 'x', secret: 'hunter2' }))
    const answer = await app.inject('/wrong')
    expect(answer.statusCode).toBe(500)
    expect(answer.body).not.toContain('hunter2')
    expect(lines.find((line) => line.event === 'http.failed')).toMatchObject({ code: 'FST_ERR_RESPONSE_SERIALIZATION' })
    await app.close()
  })

  it('leaves no token, password or address of a caller in the log', async () => {
    const { lines, log } = memoryLog()
    await using logged = await withApi({ log })
    await logged.call('GET', '/api/v0/user?token=hunter2-in-query')
    const body = { username: 'hunter2-as-name', password: 'hunter2-as-password' }
    await logged.call('POST', '/api/v1/iam/tokens', { token: null, body })
    await logged.call('POST', '/api/v1/iam/tokens', { token: null, body: { ...body, extra: 'hunter2-extra' } })
    expect(lines.length).toBeGreaterThanOrEqual(5)
    expect(JSON.stringify(lines)).not.toContain('hunter2')
    expect(JSON.stringify(lines)).not.toContain(logged.token)
  })
})

describe('a route', () => {
  it('that does not say who may call stops the start', async () => {
    const app = await createApp(api.dependencies)
    expect(() => app.get('/open', async () => 'x')).toThrow('the route GET /open does not say who may call')
    await app.close()
  })

  it('that shows a secret shows none when the audit trail cannot hold it', async () => {
    await using lost = await withApi()
    const app = await createApp(lost.dependencies)
    const schema = { response: { 200: z.strictObject({ secret: z.string() }) } }
    const config = { access: requireMember(), audit: 'secret.read' }
    app.get('/secret', { config, schema }, async () => ({ secret: 'hunter2' }))
    const call = () => app.inject({ url: '/secret', headers: { authorization: `Bearer ${lost.token}` } })
    expect((await call()).json()).toEqual({ secret: 'hunter2' })
    const { rows } = await lost.db.executeQuery<{ action: string; subject: string; outcome: string }>(
      lost.db.selectFrom('audit').select(['action', 'subject', 'outcome']).compile(),
    )
    expect(rows).toEqual([{ action: 'secret.read', subject: '/secret', outcome: 'done' }])
    await lost.db.schema.dropTable('audit').execute()
    const refused = await call()
    expect(refused.statusCode).toBe(500)
    expect(refused.body).not.toContain('hunter2')
    await app.close()
  })
})

describe('the description', () => {
  interface Described {
    readonly openapi: string
    readonly paths: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>
    readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
  }

  it('is OpenAPI 3 with every route, who may call it, and the one error', async () => {
    const { status, headers, body } = await api.call<Described>('GET', '/api/v2/apim/openapi.json', { token: null })
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json; charset=utf-8')
    expect(body.openapi).toBe('3.0.3')
    expect(body.paths['/api/v0/user']?.get).toMatchObject({ summary: 'Who calls', security: [{ BearerAuth: [] }] })
    expect(body.paths['/api/v1/iam/tokens']?.post).toMatchObject({ security: [] })
    expect(body.components.schemas.ErrorResponse).toMatchObject({ required: ['message', 'errorId'] })
    for (const [path, operations] of Object.entries(body.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        expect(operation, `${method} ${path}`).toMatchObject({ responses: { default: expect.anything() } })
        expect(operation.tags, `${method} ${path}`).toHaveLength(1)
      }
    }
  })

  it('has a page for people that loads nothing from elsewhere', async () => {
    const page = await api.call<string>('GET', '/api/v2/apim/docs/', { token: null })
    expect(page.status).toBe(200)
    expect(page.headers['content-security-policy']).toContain("script-src 'self'")
    expect(page.body).toContain('swagger-ui')
    expect(page.body).not.toMatch(/(?:src|href)="https?:/)
    const script = await api.call('GET', '/api/v2/apim/docs/static/swagger-initializer.js', { token: null })
    expect(script.status).toBe(200)
    expect(script.body).toContain('/api/v2/apim/openapi.json')
  })
})

describe('health', () => {
  it('is good while the database answers', async () => {
    expect(await api.call('GET', '/healthz', { token: null })).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await api.call('GET', '/readyz', { token: null })).toMatchObject({ status: 200, body: { status: 'ok' } })
  })

  it('tells a process that is up from one that can work', async () => {
    const away = await withApi()
    const app = await createApp(away.dependencies)
    await away[Symbol.asyncDispose]()
    expect((await app.inject('/healthz')).statusCode).toBe(200)
    const ready = await app.inject('/readyz')
    expect(ready.statusCode).toBe(503)
    expect(ready.json()).toEqual({ status: 'not-ready', reason: 'the database does not answer' })
    await app.close()
  })
})

describe('rates', () => {
  it('are limited per address, health excepted', async () => {
    await using limited = await withApi({ env: { KEYMESH_RATE_LIMIT: '3' } })
    for (let sent = 0; sent < 3; sent += 1) expect((await limited.call('GET', '/api/v0/user')).status).toBe(200)
    const refused = await limited.call('GET', '/api/v0/user')
    expect(expectError(refused, 429).message).toContain('try again in')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await limited.call('GET', '/healthz')).status).toBe(200)
  })

  it('are lower for the sign-in, and for addresses that are not there', async () => {
    await using limited = await withApi({ env: { KEYMESH_RATE_LIMIT: '1000' } })
    const statuses = async (count: number, send: () => Promise<Answer>): Promise<readonly number[]> => {
      const answers: number[] = []
      for (let sent = 0; sent < count; sent += 1) answers.push((await send()).status)
      return answers
    }
    const signIns = await statuses(31, () =>
      limited.call('POST', '/api/v1/iam/tokens', { token: null, body: { username: 'x' } }),
    )
    expect(signIns).toEqual([...Array(30).fill(400), 429])
    const lost = await statuses(121, () => limited.call('GET', '/admin.php', { token: null }))
    expect(lost).toEqual([...Array(120).fill(404), 429])
    expect((await limited.call('GET', '/api/v0/user')).status).toBe(200)
  })

  it('count the client that a trusted proxy names, and believe nobody else', async () => {
    const forwarded = { headers: { 'x-forwarded-for': '203.0.113.7' } }
    const addresses = async (proxies: string): Promise<readonly unknown[]> => {
      await using behind = await withApi({ env: { KEYMESH_TRUST_PROXY: proxies } })
      await behind.call('POST', '/api/v0/iam/tokens/default', { token: behind.userToken, ...forwarded })
      return await behind.db.selectFrom('audit').select('address').execute()
    }
    expect(await addresses('loopback')).toEqual([{ address: '203.0.113.7' }])
    expect(await addresses('')).toEqual([{ address: '127.0.0.1' }])
  })
})

describe('the server', () => {
  const options = { host: '127.0.0.1', port: 0 }

  it('answers over the network, and ends what is under way before it stops', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let reached: () => void = () => undefined
    const verifying = new Promise<void>((resolve) => {
      reached = resolve
    })
    const userTokens = {
      ...api.dependencies.userTokens,
      verify: async (token: string) => {
        reached()
        await held
        return await api.dependencies.userTokens.verify(token)
      },
    }
    const server = await startServer({ ...api.dependencies, userTokens }, options)
    const slow = fetch(`${server.url}/api/v0/user`, { headers: { authorization: `Bearer ${api.userToken}` } })
    await verifying
    const closed = server.close()
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow()
    release()
    expect((await slow).status).toBe(200)
    await closed
  })

  it('does not wait for ever for those who do not end', async () => {
    let reached: () => void = () => undefined
    const verifying = new Promise<void>((resolve) => {
      reached = resolve
    })
    const verify = (): Promise<null> => {
      reached()
      return new Promise(() => undefined)
    }
    const userTokens = { ...api.dependencies.userTokens, verify }
    const server = await startServer({ ...api.dependencies, userTokens }, { ...options, patienceMs: 50 })
    const stuck = fetch(`${server.url}/api/v0/user`, { headers: { authorization: 'Bearer x' } })
    const refused = expect(stuck).rejects.toThrow()
    await verifying
    await server.close()
    await refused
  })

  it('answers what is no HTTP in the one shape', async () => {
    const server = await startServer(api.dependencies, options)
    const answer = await new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write('HELLO?\r\n\r\n'))
      socket.on('data', (chunk) => {
        text += String(chunk)
      })
      socket.on('error', reject)
      socket.on('close', () => resolve(text))
    })
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toEqual({
      message: expect.any(String),
      errorId: expect.any(String),
    })
    await server.close()
  })

  it('says when its port is taken', async () => {
    const first = await startServer(api.dependencies, options)
    const port = Number(new URL(first.url).port)
    await expect(startServer(api.dependencies, { ...options, port })).rejects.toMatchObject({
      code: 'CANNOT_LISTEN',
      message: `The API cannot listen on 127.0.0.1 port ${port}: another program does.`,
    })
    await first.close()
  })
})
