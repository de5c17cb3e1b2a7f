import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { codeOf } from '../../src/domain/errors.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { Secret } from '../../src/domain/secret.ts'
import { SignInTokens } from '../../src/sources/apim-tokens.ts'
import { BoundedHttp } from '../../src/sources/bounded-http.ts'
import { type DoubleRequest, type SempDouble, sendJson, startDouble } from '../contract/semp-double.ts'

const PASSWORD = 'the "password" of the user'
const MINUTE_MS = 60_000

interface IdentityOptions {
  readonly account?: string | null
  /** Merged into the answer that makes an API token. */
  readonly made?: (count: number, nowMs: number) => Readonly<Record<string, unknown>>
  /** Answers instead; null: as usual. */
  readonly fault?: (request: DoubleRequest) => { readonly status: number; readonly body?: unknown } | null
}

class Identity implements AsyncDisposable {
  readonly tokens: SignInTokens
  readonly double: SempDouble
  readonly #http: BoundedHttp
  readonly #clock: { nowMs: number }

  constructor(double: SempDouble, http: BoundedHttp, account: string | null, clock: { nowMs: number }) {
    this.double = double
    this.#http = http
    this.#clock = clock
    const access = {
      kind: 'sign-in',
      url: double.url,
      username: 'keymesh',
      password: new Secret(PASSWORD),
      account,
    } as const
    this.tokens = new SignInTokens({ http, access, now: () => clock.nowMs, tokenName: 'keymesh node-1' })
  }

  wait(ms: number): void {
    this.#clock.nowMs += ms
  }

  /** `METHOD path with`: what was asked, with which token. */
  get asked(): readonly string[] {
    return this.double.requests.map(({ method, url, headers }) =>
      [method, url, headers.authorization?.replace('Bearer ', '')].filter((part) => part !== undefined).join(' '),
    )
  }

  async current(): Promise<string> {
    return (await this.tokens.current()).reveal()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http.close()
    await this.double[Symbol.asyncDispose]()
  }
}

async function withIdentity({ account = null, made, fault }: IdentityOptions = {}): Promise<Identity> {
  const clock = { nowMs: Date.UTC(2030, 0, 1) }
  let count = 0
  const double = await startDouble((request, response) => {
    const failure = fault?.(request) ?? null
    if (failure !== null) return sendJson(response, failure.status, failure.body ?? { message: 'no', errorId: 'x' })
    const { method, url } = request
    if (method === 'DELETE') return void response.writeHead(204).end()
    if (method === 'GET') return sendJson(response, 404, { message: 'no such call', errorId: 'x' })
    if (url === '/api/v1/iam/tokens') return sendJson(response, 200, { token: 'user-token' })
    if (url.startsWith('/api/v0/iam/tokens/')) return sendJson(response, 200, { token: 'account-token' })
    count += 1
    sendJson(response, 201, { data: { id: `id-${count}`, token: `api-token-${count}`, ...made?.(count, clock.nowMs) } })
  })
  return new Identity(double, new BoundedHttp({ timeoutMs: 5_000, maxConnections: 4 }), account, clock)
}

const SIGN_IN = 'POST /api/v1/iam/tokens'
const MAKE = 'POST /api/v0/user/apiTokens'

describe('an API token by sign-in', () => {
  it('is made by the three calls, each with the token of the one before', async () => {
    await using identity = await withIdentity({ account: 'north / east' })
    expect(await identity.current()).toBe('api-token-1')
    expect(identity.asked.slice(0, 3)).toEqual([
      SIGN_IN,
      'POST /api/v0/iam/tokens/north%20%2F%20east user-token',
      `${MAKE} account-token`,
    ])
    const bodies = identity.double.requests.slice(0, 3).map(({ body }) => (body === '' ? null : JSON.parse(body)))
    expect(bodies).toEqual([
      { username: 'keymesh', password: PASSWORD },
      null,
      { name: 'keymesh node-1', permissions: [...PERMISSIONS] },
    ])
  })

  it('is made without the exchange for a user of one account', async () => {
    await using identity = await withIdentity()
    await identity.current()
    expect(identity.asked.slice(0, 2)).toEqual([SIGN_IN, `${MAKE} user-token`])
  })

  it('is made once for all that ask at the same time, and kept', async () => {
    await using identity = await withIdentity()
    expect(new Set(await Promise.all(Array.from({ length: 5 }, () => identity.current())))).toEqual(
      new Set(['api-token-1']),
    )
    identity.wait(365 * 24 * 60 * MINUTE_MS)
    expect(await identity.current()).toBe('api-token-1')
    expect(identity.asked.filter((each) => each === SIGN_IN)).toHaveLength(1)
  })

  const jwt = (expiresAtMs: number): string =>
    `head.${Buffer.from(JSON.stringify({ exp: expiresAtMs / 1000 })).toString('base64url')}.signature`
  it.each<[sentence: string, made: NonNullable<IdentityOptions['made']>]>([
    ['the answer says when', (_count, nowMs) => ({ expirationTimestamp: nowMs + 10 * MINUTE_MS })],
    ['it is a JWT that says when', (_count, nowMs) => ({ token: jwt(nowMs + 10 * MINUTE_MS) })],
  ])('is renewed before it ends when %s, and the one before is deleted', async (_sentence, made) => {
    await using identity = await withIdentity({ made })
    await identity.current()
    identity.wait(9 * MINUTE_MS - 1)
    await identity.current()
    expect(identity.asked.filter((each) => each === SIGN_IN)).toHaveLength(1)
    identity.wait(1)
    await identity.current()
    expect(identity.asked.filter((each) => each === SIGN_IN)).toHaveLength(2)
    expect(identity.asked.at(-1)).toBe('DELETE /api/v0/user/apiTokens/id-1 user-token')
  })

  it('is renewed when it is refused, once for all that were, and not for a refusal of the one before', async () => {
    await using identity = await withIdentity()
    const refused = await identity.tokens.current()
    identity.wait(MINUTE_MS)
    const [one, other] = await Promise.all([identity.tokens.renewed(refused), identity.tokens.renewed(refused)])
    expect([one?.reveal(), other?.reveal()]).toEqual(['api-token-2', 'api-token-2'])
    expect((await identity.tokens.renewed(refused))?.reveal()).toBe('api-token-2')
    expect(identity.asked.filter((each) => each.startsWith(MAKE))).toHaveLength(2)
  })

  it('is not made over and over for a service that refuses each', async () => {
    await using identity = await withIdentity()
    expect(await identity.tokens.renewed(await identity.tokens.current())).toBeNull()
    expect(identity.asked.filter((each) => each.startsWith(MAKE))).toHaveLength(1)
  })

  it.each([
    ['a wrong password', (url: string) => url.endsWith('/iam/tokens'), 401, 'REMOTE_SIGN_IN_REFUSED'],
    ["an account that is not the user's", (url: string) => url.endsWith('/iam/tokens/north'), 404, 'REMOTE_NOT_FOUND'],
  ])('is not asked for again within ten minutes after %s', async (_sentence, at, status, code) => {
    await using identity = await withIdentity({ account: 'north', fault: ({ url }) => (at(url) ? { status } : null) })
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const error: unknown = await identity.current().catch((failure: unknown) => failure)
      expect(codeOf(error)).toBe(code)
      expect(`${String(error)} ${inspect(error)}`).not.toContain(PASSWORD)
    }
    expect(identity.asked.filter((each) => each === SIGN_IN)).toHaveLength(1)
    identity.wait(10 * MINUTE_MS)
    await identity.current().catch(() => undefined)
    expect(identity.asked.filter((each) => each === SIGN_IN)).toHaveLength(2)
  })

  it.each([
    ['no token', { data: { id: 'id-1' } }],
    ['a token of two lines', { data: { id: 'id-1', token: 'one\r\nx-header: two' } }],
    ['something else', ['token']],
  ])('is refused when the answer holds %s', async (_sentence, body) => {
    const fault: IdentityOptions['fault'] = ({ url, method }) =>
      url === '/api/v0/user/apiTokens' && method === 'POST' ? { status: 201, body } : null
    await using identity = await withIdentity({ fault })
    await expect(identity.current()).rejects.toMatchObject({ code: 'REMOTE_ANSWER' })
  })

  it('is deleted at the end, by a new sign-in when the user token has ended', async () => {
    let isOver = false
    await using identity = await withIdentity({
      fault: ({ method, number }) => {
        if (method !== 'DELETE' || isOver || number === 0) return null
        isOver = true
        return { status: 401 }
      },
    })
    await identity.current()
    await identity.tokens.close()
    expect(identity.asked.slice(-3)).toEqual([
      'DELETE /api/v0/user/apiTokens/id-1 user-token',
      SIGN_IN,
      'DELETE /api/v0/user/apiTokens/id-1 user-token',
    ])
    await identity.tokens.close()
    expect(identity.asked.filter((each) => each.startsWith('DELETE'))).toHaveLength(2)
  })

  it('leaves nothing to delete when it was never made', async () => {
    await using identity = await withIdentity()
    await identity.tokens.close()
    expect(identity.asked).toEqual([])
  })
})
