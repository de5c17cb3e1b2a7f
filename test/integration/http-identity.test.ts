import { decodeJwt } from 'jose'
import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountId } from '../../src/domain/ids.ts'
import { PERMISSIONS, type Permission } from '../../src/domain/permissions.ts'
import { createApp } from '../../src/http/app.ts'
import { type Access, requireAdministrator, requireMember, requirePermissions } from '../../src/http/permissions.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { ATTEMPT_WINDOW_MS } from '../../src/store/sign-in-attempts.ts'
import { removeMember, setRoles } from '../../src/store/users-changes.ts'
import { readMember } from '../../src/store/users-view.ts'
import { type Answer, TEST_PASSWORD, type TestApi, withApi } from '../helpers/http.ts'

let api: TestApi
beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

interface Token {
  readonly token: string
}
interface Data<Value> {
  readonly data: Value
}
interface ApiToken extends Token {
  readonly id: string
  readonly name: string
}

const signIn = (username: string, password = TEST_PASSWORD, on = api) =>
  on.call<Token>('POST', '/api/v1/iam/tokens', { token: null, body: { username, password } })
const exchange = (token: string, account: string) =>
  api.call<Token>('POST', `/api/v0/iam/tokens/${account}`, { token, headers: { 'content-type': 'application/json' } })
const newApiToken = (token: string, permissions: readonly string[] = PERMISSIONS) =>
  api.call<Data<ApiToken>>('POST', '/api/v0/user/apiTokens', { token, body: { name: 'gateway', permissions } })
const whoami = (token: string, on = api) => on.call('GET', '/api/v0/user', { token })
const messageOf = (answer: Answer): string => (answer.body as { readonly message: string }).message
const BOTH = ['service-management-editor', 'event-portal-manager'] as const

let names = 0
const aName = (): string => {
  names += 1
  return `user-${names}`
}
async function memberOfTwo() {
  const user = await api.addUser({ name: aName(), account: 'north' })
  const roles = ['administrator'] as const
  await api.db
    .insertInto('memberships')
    .values({ user_id: user.id, account_id: (await northAndSouth()).south, roles: [...roles] })
    .execute()
  return user
}
async function northAndSouth() {
  await api.db
    .insertInto('accounts')
    .values(['north', 'south'].map((name) => ({ id: name, name })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return { north: accountId('north'), south: accountId('south') }
}

const memberOf = (on: TestApi, userName: string) => ({ accountId: on.accountId, userName })

/** Whether the work waits for rows that another transaction holds, or gets by; it ends before this answers. */
async function whileHeld(on: TestApi, lock: RawBuilder<unknown>, work: () => Promise<unknown>): Promise<string> {
  let working: Promise<unknown> = Promise.resolve()
  const seen = await on.db.transaction().execute(async (trx) => {
    await lock.execute(trx)
    let ended = false
    working = work().finally(() => {
      ended = true
    })
    for (;;) {
      // Outside of the transaction, which would see the same activity for ever.
      const { rows } = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(on.db)
      if (rows.length > 0) return 'waits'
      if (ended) return 'gets by'
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
  await working
  return seen
}

describe('the three token calls', () => {
  it('lead a user of one account from password to API token, with or without the exchange', async () => {
    const { name } = await api.addUser({ name: aName(), roles: BOTH })
    const signedIn = await signIn(name)
    expect(signedIn).toMatchObject({
      status: 200,
      body: { token: expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/) },
    })
    expect(Object.keys(signedIn.body)).toEqual(['token'])
    const exchanged = await exchange(signedIn.body.token, 'default')
    expect(exchanged.status).toBe(200)
    for (const { token } of [signedIn.body, exchanged.body]) {
      const created = await newApiToken(token)
      expect(created.status).toBe(201)
      expect(created.body).toEqual({
        data: {
          id: expect.stringMatching(/^[A-Za-z0-9]{11}$/),
          name: 'gateway',
          token: expect.stringMatching(/^km_/),
          creationTimestamp: api.dependencies.now(),
          permissions: PERMISSIONS,
          orgId: 'default',
          type: 'apiToken',
        },
      })
      expect(await whoami(created.body.data.token)).toMatchObject({
        body: { data: { kind: 'apiToken', userName: name, accountId: 'default', permissions: PERMISSIONS } },
      })
    }
  })

  it('tell a user of several accounts to exchange, and hold the token to the account then', async () => {
    const { name } = await memberOfTwo()
    const { token } = (await signIn(name)).body
    const refused = await newApiToken(token)
    expect(refused.status).toBe(403)
    expect(messageOf(refused)).toContain('POST /api/v0/iam/tokens/{account_name}')
    for (const account of ['north', 'south']) {
      const exchanged = await exchange(token, account)
      const created = await newApiToken(exchanged.body.token)
      expect(created).toMatchObject({ status: 201, body: { data: { orgId: account } } })
      expect(await whoami(created.body.data.token)).toMatchObject({ body: { data: { accountId: account } } })
      expect((await exchange(exchanged.body.token, 'south')).status).toBe(403)
    }
    expect((await exchange(token, 'default')).status).toBe(404)
    expect((await exchange(token, 'nowhere')).status).toBe(404)
  })

  it('refuse an unknown user and a wrong password with the same words', async () => {
    const { name } = await api.addUser({ name: aName() })
    const wrong = await signIn(name, 'not the password')
    const unknown = await signIn(aName(), 'not the password')
    expect([wrong.status, unknown.status]).toEqual([401, 401])
    expect(messageOf(wrong)).toBe(messageOf(unknown))
    const shape = ({ headers }: Answer): readonly string[] =>
      Object.keys(headers).filter((header) => header !== 'x-request-id')
    expect(shape(wrong)).toEqual(shape(unknown))
  })

  it('refuse a user who is neither administrator nor both of the others', async () => {
    for (const roles of [[BOTH[0]], [BOTH[1]]]) {
      const { name, userToken, apiToken } = await api.addUser({ name: aName(), roles })
      expect((await signIn(name)).status).toBe(403)
      expect((await signIn(name, 'not the password')).status).toBe(401)
      expect((await newApiToken(userToken)).status).toBe(403)
      expect((await exchange(userToken, 'default')).status).toBe(403)
      expect((await whoami(apiToken)).status).toBe(403)
    }
  })

  it('give user tokens that end', async () => {
    await using own = await withApi({ env: { KEYMESH_USER_TOKEN_LIFETIME: '10m', KEYMESH_API_TOKEN_LIFETIME: '1d' } })
    const { token } = (await signIn('admin', TEST_PASSWORD, own)).body
    const { iat = 0, exp = 0 } = decodeJwt(token)
    expect(exp - iat).toBe(600)
    const body = { name: 'short', permissions: ['services:get'] }
    const created = await own.call<Data<ApiToken>>('POST', '/api/v0/user/apiTokens', { token, body })
    const startMs = own.dependencies.now()
    own.setNow(startMs + 599_000)
    expect((await whoami(token, own)).status).toBe(200)
    own.setNow(startMs + 600_000)
    expect((await whoami(token, own)).status).toBe(401)
    expect((await whoami(created.body.data.token, own)).status).toBe(200)
    own.setNow(startMs + 86_400_000)
    expect((await whoami(created.body.data.token, own)).status).toBe(401)
  })

  it.each<readonly [string, object, string]>([
    ['no name', { password: 'x' }, 'username'],
    ['a password that is no text', { username: 'admin', password: 12345678 }, 'password'],
    ['more than is asked for', { username: 'admin', password: 'x', otp: '123' }, 'otp'],
  ])('refuse a sign-in with %s', async (_sentence, body, field) => {
    const answer = await api.call('POST', '/api/v1/iam/tokens', { token: null, body })
    expect(answer).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
  })
})

describe('sign-in attempts', () => {
  it('are limited per user name and address, alike for names that are nobody’s', async () => {
    await using own = await withApi()
    for (const name of ['admin', 'nobody']) {
      for (let attempt = 0; attempt < 5; attempt += 1) expect((await signIn(name, 'wrong', own)).status).toBe(401)
      const refused = await signIn(name, name === 'admin' ? TEST_PASSWORD : 'wrong', own)
      expect(refused.status).toBe(429)
      expect(Number(refused.headers['retry-after'])).toBe(ATTEMPT_WINDOW_MS / 1000)
    }
    own.setNow(own.dependencies.now() + ATTEMPT_WINDOW_MS)
    expect((await signIn('admin', TEST_PASSWORD, own)).status).toBe(200)
  })

  it('are forgiven by one that succeeds', async () => {
    await using own = await withApi()
    for (let round = 0; round < 4; round += 1) {
      for (let attempt = 0; attempt < 4; attempt += 1) expect((await signIn('ADMIN', 'wrong', own)).status).toBe(401)
      expect((await signIn('admin', TEST_PASSWORD, own)).status).toBe(200)
    }
  })

  it('from many addresses are limited per user, and of many users per address', async () => {
    await using own = await withApi({ env: { KEYMESH_TRUST_PROXY: 'loopback' } })
    const from = (address: number, username: string) =>
      own.call('POST', '/api/v1/iam/tokens', {
        token: null,
        body: { username, password: 'wrong' },
        headers: { 'x-forwarded-for': `203.0.113.${address}` },
      })
    const perUser: number[] = []
    for (let sent = 0; sent < 26; sent += 1) perUser.push((await from(sent, 'admin')).status)
    expect(perUser).toEqual([...Array(25).fill(401), 429])
    const perAddress: number[] = []
    for (let sent = 0; sent < 51; sent += 1) perAddress.push((await from(200, `guess-${sent}`)).status)
    expect(perAddress).toEqual([...Array(50).fill(401), 429])
  })

  it('at once count each', async () => {
    await using own = await withApi()
    const answers = await Promise.all(Array.from({ length: 12 }, () => signIn('admin', 'wrong', own)))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(5).fill(401), ...Array(7).fill(429)])
  })
})

describe('an API token', () => {
  it.each<readonly [string, object, string]>([
    ['an unknown permission', { name: 'x', permissions: ['services:get', 'root'] }, 'permissions[1]'],
    ['no permission', { name: 'x', permissions: [] }, 'permissions'],
    ['permissions left out', { name: 'x' }, 'permissions'],
    ['no name', { permissions: ['services:get'] }, 'name'],
    ['an empty name', { name: '', permissions: ['services:get'] }, 'name'],
    ['what is not known', { name: 'x', permissions: ['services:get'], orgId: 'north' }, 'orgId'],
  ])('with %s is refused', async (_sentence, body, field) => {
    const { userToken } = await api.addUser({ name: aName() })
    const answer = await api.call('POST', '/api/v0/user/apiTokens', { token: userToken, body })
    expect(answer).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
    expect(await api.call('GET', '/api/v0/user/apiTokens', { token: userToken })).toMatchObject({
      body: { data: [{ name: 'test' }] },
    })
  })

  it('is shown once, kept as a hash, and listed without it', async () => {
    const { userToken } = await api.addUser({ name: aName() })
    const { token, id } = (await newApiToken(userToken, ['services:get', 'services:get'])).body.data
    const secret = token.slice(-43)
    const rows = await api.db.selectFrom('api_tokens').selectAll().where('id', '=', id).execute()
    expect(rows).toMatchObject([{ secret_hash: expect.stringMatching(/^[0-9a-f]{64}$/) }])
    const { body } = await api.call<{ data: readonly ApiToken[] }>('GET', '/api/v0/user/apiTokens', {
      token: userToken,
    })
    expect(body.data.find((one) => one.id === id)).toEqual({
      id,
      name: 'gateway',
      creationTimestamp: api.dependencies.now(),
      permissions: ['services:get'],
      orgId: 'default',
      type: 'apiToken',
      expirationTimestamp: null,
    })
    const audit = await api.db.selectFrom('audit').selectAll().execute()
    expect(JSON.stringify([rows, body, audit])).not.toContain(secret)
  })

  it('is deleted and regenerated by its id', async () => {
    const { userToken } = await api.addUser({ name: aName() })
    const first = (await newApiToken(userToken)).body.data
    const path = `/api/v0/user/apiTokens/${first.id}`
    const again = await api.call<Data<ApiToken>>('POST', `${path}/regenerate`, { token: userToken })
    expect(again.status).toBe(200)
    expect(again.body.data).toEqual({ ...first, token: expect.stringMatching(/^km_/) })
    expect(again.body.data.token).not.toBe(first.token)
    expect((await whoami(first.token)).status).toBe(401)
    expect((await whoami(again.body.data.token)).status).toBe(200)
    expect((await api.call('GET', path, { token: userToken })).status).toBe(200)
    expect((await api.call('DELETE', path, { token: userToken })).status).toBe(204)
    expect((await whoami(again.body.data.token)).status).toBe(401)
    for (const [method, gone] of [
      ['GET', path],
      ['DELETE', path],
      ['POST', `${path}/regenerate`],
    ] as const) {
      expect((await api.call(method, gone, { token: userToken })).status).toBe(404)
    }
  })

  it('of another user, or of the same user in another account, is not there', async () => {
    const [one, other, inTwo] = [
      await api.addUser({ name: aName() }),
      await api.addUser({ name: aName() }),
      await memberOfTwo(),
    ]
    const north = (await exchange(inTwo.userToken, 'north')).body.token
    const south = (await exchange(inTwo.userToken, 'south')).body.token
    const cases = [
      { owner: one.userToken, stranger: other.userToken },
      { owner: north, stranger: south },
    ]
    for (const { owner, stranger } of cases) {
      const made = (await newApiToken(owner)).body.data
      const path = `/api/v0/user/apiTokens/${made.id}`
      expect((await api.call('GET', path, { token: stranger })).status).toBe(404)
      expect((await api.call('POST', `${path}/regenerate`, { token: stranger })).status).toBe(404)
      expect((await api.call('DELETE', path, { token: stranger })).status).toBe(404)
      expect((await whoami(made.token)).status).toBe(200)
    }
  })

  it('makes no tokens, users or accounts, whatever its permissions', async () => {
    const calls = [
      ['GET', '/api/v0/user/apiTokens', undefined],
      ['POST', '/api/v0/user/apiTokens', { name: 'x', permissions: ['services:get'] }],
      ['PUT', '/api/v0/user/password', { currentPassword: TEST_PASSWORD, newPassword: 'another password' }],
      ['GET', '/api/v0/users', undefined],
      ['POST', '/api/v0/users', { name: aName(), roles: ['administrator'] }],
      ['POST', '/api/v0/accounts', { name: 'mine' }],
      ['POST', '/api/v0/iam/tokens/default', undefined],
    ] as const
    for (const [method, path, body] of calls) {
      const answer = await api.call(method, path, { body })
      expect([path, answer.status]).toEqual([path, 403])
      expect(messageOf(answer)).toContain('needs a user token')
    }
  })

  it('may be one of fifty, however many are made at once', async () => {
    const { userToken, id } = await api.addUser({ name: aName() })
    for (let made = 1; made < 49; made += 1) await api.apiToken(id, api.accountId)
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => api.apiToken(id, api.accountId)))
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await newApiToken(userToken)).status).toBe(409)
  })

  it('is counted in turn', async () => {
    const { id } = await api.addUser({ name: aName() })
    const turn = sql`select 1 from memberships where user_id = ${id} for no key update`
    expect(await whileHeld(api, turn, () => api.apiToken(id, api.accountId))).toBe('waits')
  })
})

describe('a permission', () => {
  const needs = ['apim_event_api_product:*:*', 'event_designer:access'] as const

  async function answersTo(access: Access, tokens: readonly string[]): Promise<readonly (readonly [number, string])[]> {
    const app = await createApp(api.dependencies)
    app.get('/guarded', { config: { access } }, async () => 'in')
    const answers = []
    for (const token of tokens) {
      const answer = await app.inject({ url: '/guarded', headers: { authorization: `Bearer ${token}` } })
      answers.push([answer.statusCode, answer.body] as const)
    }
    await app.close()
    return answers
  }

  it('that an API token lacks is named', async () => {
    const { id } = await api.addUser({ name: aName(), roles: BOTH })
    const token = (permissions: readonly Permission[]) => api.apiToken(id, api.accountId, permissions)
    const answers = await answersTo(requirePermissions(...needs), [
      await token(PERMISSIONS),
      await token(needs),
      await token([needs[0]]),
      await token(['services:get']),
    ])
    expect(answers.map(([status]) => status)).toEqual([200, 200, 403, 403])
    expect(answers[2]?.[1]).toContain('The API token lacks the permission event_designer:access.')
    expect(answers[3]?.[1]).toContain('lacks the permissions apim_event_api_product:*:*, event_designer:access.')
  })

  it('is nothing that a user token has: calls that need it need an API token', async () => {
    const [[status, body] = [0, '']] = await answersTo(requirePermissions(...needs), [api.userToken])
    expect(status).toBe(403)
    expect(body).toContain('This call needs an API token, and a user token was given.')
  })

  it('is asked of API tokens where both kinds may call; some calls are for administrators', async () => {
    const editor = await api.addUser({ name: aName(), roles: BOTH, permissions: needs })
    const admin = await api.addUser({ name: aName(), permissions: needs })
    const poor = await api.apiToken(admin.id, api.accountId, ['services:get'])
    const tokens = [editor.userToken, editor.apiToken, admin.userToken, admin.apiToken, poor]
    const statuses = async (access: Access) => (await answersTo(access, tokens)).map(([status]) => status)
    expect(await statuses(requireMember(...needs))).toEqual([200, 200, 200, 200, 403])
    expect(await statuses(requireAdministrator(...needs))).toEqual([403, 403, 200, 200, 403])
  })
})

describe('what was given', () => {
  it('ends when roles, membership or password do', async () => {
    const { name, userToken, apiToken } = await api.addUser({ name: aName(), roles: BOTH })
    const path = `/api/v0/users/${name}`
    const admin = { token: api.userToken }
    await api.call('PATCH', path, { ...admin, body: { roles: [BOTH[0]] } })
    expect((await whoami(apiToken)).status).toBe(403)
    expect((await whoami(userToken)).status).toBe(403)
    await api.call('PATCH', path, { ...admin, body: { roles: BOTH } })
    expect((await whoami(apiToken)).status).toBe(200)
    const password = 'a new password'
    expect((await api.call('PUT', `${path}/password`, { ...admin, body: { password } })).status).toBe(204)
    expect((await whoami(userToken)).status).toBe(401)
    expect((await whoami(apiToken)).status).toBe(200)
    expect((await signIn(name)).status).toBe(401)
    expect((await signIn(name, password)).status).toBe(200)
    expect((await api.call('DELETE', path, admin)).status).toBe(204)
    expect((await whoami(apiToken)).status).toBe(401)
    expect((await signIn(name, password)).status).toBe(401)
  })

  it('is changed by its owner with the present password only', async () => {
    const { name, userToken } = await api.addUser({ name: aName() })
    const change = (currentPassword: string, newPassword: string) =>
      api.call('PUT', '/api/v0/user/password', { token: userToken, body: { currentPassword, newPassword } })
    expect((await change('not the password', 'a new password')).status).toBe(403)
    expect((await change(TEST_PASSWORD, 'short')).status).toBe(400)
    expect((await change(TEST_PASSWORD, 'a new password')).status).toBe(204)
    expect((await whoami(userToken)).status).toBe(401)
    expect((await signIn(name, 'a new password')).status).toBe(200)
  })
})

describe('users', () => {
  const call: TestApi['call'] = (method, path, options) => api.call(method, path, { token: api.userToken, ...options })

  it('are made with a password that is given, or made and shown once', async () => {
    const [given, made] = [aName(), aName()]
    const withOwn = await call('POST', '/api/v0/users', { body: { name: given, roles: BOTH, password: TEST_PASSWORD } })
    expect(withOwn).toMatchObject({ status: 201, body: { data: { name: given, roles: BOTH }, meta: {} } })
    expect(JSON.stringify(withOwn.body)).not.toContain(TEST_PASSWORD)
    const { status, body } = await call<Data<{ password: string }>>('POST', '/api/v0/users', {
      body: { name: made, roles: ['administrator'] },
    })
    expect(status).toBe(201)
    expect(body.data.password).toMatch(/^[A-Za-z0-9]{24}$/)
    expect((await signIn(given)).status).toBe(200)
    expect((await signIn(made, body.data.password)).status).toBe(200)
    expect((await call('POST', '/api/v0/users', { body: { name: made.toUpperCase(), roles: BOTH } })).status).toBe(409)
  })

  it.each<readonly [string, object, string]>([
    ['a name with a space', { name: 'a b', roles: BOTH }, 'name'],
    ['no roles', { name: 'ok', roles: [] }, 'roles'],
    ['an unknown role', { name: 'ok', roles: ['root'] }, 'roles[0]'],
    ['a short password', { name: 'ok', roles: BOTH, password: 'short' }, 'password'],
    ['another account', { name: 'ok', roles: BOTH, accountId: 'north' }, 'accountId'],
  ])('with %s are refused', async (_sentence, body, field) => {
    const answer = await call('POST', '/api/v0/users', { body })
    expect(answer).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
    expect((await call('GET', '/api/v0/users/ok')).status).toBe(404)
  })

  it('are listed by page, sorted', async () => {
    await using own = await withApi()
    for (const name of ['bea', 'cleo', 'dora']) await own.addUser({ name })
    await own.addUser({ name: 'elsewhere', account: 'north' })
    const list = (query: string) => own.call('GET', `/api/v0/users?${query}`, { token: own.userToken })
    expect(await list('pageSize=3')).toMatchObject({
      body: {
        data: [{ name: 'admin' }, { name: 'bea' }, { name: 'cleo' }],
        meta: { pagination: { pageNumber: 1, count: 4, pageSize: 3, nextPage: 2, totalPages: 2 } },
      },
    })
    expect(await list('pageSize=3&pageNumber=2')).toMatchObject({
      body: { data: [{ name: 'dora' }], meta: { pagination: { nextPage: null } } },
    })
    expect(await list('sortFieldName=name&sortDirection=desc&pageSize=1')).toMatchObject({
      body: { data: [{ name: 'dora' }] },
    })
  })

  it('change by ETag, so that no change is lost', async () => {
    const { name } = await api.addUser({ name: aName(), roles: BOTH })
    const path = `/api/v0/users/${name}`
    const etag = String((await call('GET', path)).headers.etag)
    const patch = (tag: string, roles: readonly string[]) =>
      call('PATCH', path, { body: { roles }, headers: { 'if-match': tag } })
    const first = await patch(etag, ['administrator'])
    expect(first).toMatchObject({ status: 200, body: { data: { roles: ['administrator'] } } })
    expect((await patch(etag, BOTH)).status).toBe(412)
    expect((await patch(String(first.headers.etag), BOTH)).status).toBe(200)
    const stale = { headers: { 'if-match': String(first.headers.etag) } }
    expect((await call('DELETE', path, stale)).status).toBe(412)
    expect((await call('GET', path)).status).toBe(200)
  })

  it('never leave the account without an administrator, however many change at once', async () => {
    await using own = await withApi()
    const others = ['bea', 'cleo', 'dora', 'emma', 'fay', 'gwen']
    for (const name of others) await own.addUser({ name })
    const changes = await Promise.allSettled(
      ['admin', ...others].map((name, index) =>
        index % 2 === 0
          ? setRoles(own.db, memberOf(own, name), BOTH, () => undefined)
          : removeMember(own.db, memberOf(own, name), () => undefined),
      ),
    )
    const refused = changes.flatMap((change) => (change.status === 'rejected' ? [change.reason as unknown] : []))
    expect(refused).toMatchObject([{ code: 'CONFLICT' }])
    const left = await own.db.selectFrom('memberships').select('roles').execute()
    expect(left.filter(({ roles }) => roles.includes('administrator'))).toHaveLength(1)
  })

  it('take turns in their account, so that no two leave together', async () => {
    await using own = await withApi()
    await own.addUser({ name: 'bea' })
    const turn = sql`select 1 from accounts where id = 'default' for no key update`
    expect(await whileHeld(own, turn, () => removeMember(own.db, memberOf(own, 'bea'), () => undefined))).toBe('waits')
    expect(await readMember(own.db, own.accountId, 'bea')).toBeNull()
  })

  it('keep the last administrator, by the API too', async () => {
    await using own = await withApi()
    const admin = { token: own.userToken }
    expect((await own.call('PATCH', '/api/v0/users/admin', { ...admin, body: { roles: BOTH } })).status).toBe(409)
    expect((await own.call('DELETE', '/api/v0/users/admin', admin)).status).toBe(409)
    expect((await whoami(own.userToken, own)).status).toBe(200)
  })

  it('are managed by administrators only', async () => {
    const editor = await api.addUser({ name: aName(), roles: BOTH })
    for (const [method, path] of [
      ['GET', '/api/v0/users'],
      ['GET', `/api/v0/users/${editor.name}`],
      ['DELETE', '/api/v0/users/admin'],
      ['GET', '/api/v0/audit'],
    ] as const) {
      expect([path, (await api.call(method, path, { token: editor.userToken })).status]).toEqual([path, 403])
    }
  })
})

describe('accounts are walls', () => {
  it('an administrator reaches no user, token or trail of another account', async () => {
    const theirs = await api.addUser({ name: aName() })
    const north = await api.addUser({ name: aName(), account: 'north' })
    const token = north.userToken
    const path = `/api/v0/users/${theirs.name}`
    const calls = [
      ['GET', path, undefined],
      ['PATCH', path, { roles: BOTH }],
      ['DELETE', path, undefined],
      ['PUT', `${path}/password`, { password: 'a stolen account' }],
    ] as const
    for (const [method, address, body] of calls) {
      expect([method, (await api.call(method, address, { token, body })).status]).toEqual([method, 404])
    }
    // Joining would change how the user signs in to the other account.
    expect((await api.call('PUT', path, { token, body: { roles: BOTH } })).status).toBe(409)
    expect((await signIn(theirs.name)).status).toBe(200)
    expect((await whoami(theirs.apiToken)).status).toBe(200)
    expect((await whoami(theirs.userToken)).status).toBe(200)
    const list = await api.call('GET', '/api/v0/users?pageSize=100', { token })
    expect(JSON.stringify(list.body)).not.toContain(theirs.name)
    await api.call('GET', '/api/v0/user', { token: theirs.userToken })
    const trail = await api.call('GET', '/api/v0/audit?pageSize=100', { token })
    expect(trail.status).toBe(200)
    expect(JSON.stringify(trail.body)).not.toContain(`"actorName":"${theirs.name}"`)
  })

  it('a password opens all accounts of its user, so no administrator of one of them sets it', async () => {
    const { name } = await memberOfTwo()
    const north = await api.addUser({ name: aName(), account: 'north' })
    const set = (token: string) =>
      api.call('PUT', `/api/v0/users/${name}/password`, { token, body: { password: 'a stolen account' } })
    expect((await set(north.userToken)).status).toBe(403)
    expect((await signIn(name)).status).toBe(200)
    const both = await memberOfTwo()
    expect((await set((await exchange(both.userToken, 'north')).body.token)).status).toBe(204)
  })

  it('removing a user from one account leaves the other', async () => {
    const { name, userToken } = await memberOfTwo()
    const north = await api.addUser({ name: aName(), account: 'north' })
    const inNorth = (await newApiToken((await exchange(userToken, 'north')).body.token)).body.data.token
    const inSouth = (await newApiToken((await exchange(userToken, 'south')).body.token)).body.data.token
    expect((await api.call('DELETE', `/api/v0/users/${name}`, { token: north.userToken })).status).toBe(204)
    expect((await whoami(inNorth)).status).toBe(401)
    expect((await whoami(inSouth)).status).toBe(200)
    expect(await whoami(userToken)).toMatchObject({ status: 200, body: { data: { accountName: 'south' } } })
  })
})

describe('accounts', () => {
  it('are made by an administrator, listed to their users, joined by those one may speak for, and deleted empty', async () => {
    await using own = await withApi()
    const editor = await own.addUser({ name: 'editor', roles: BOTH })
    const post = (name: string, token = own.userToken) =>
      own.call('POST', '/api/v0/accounts', { token, body: { name } })
    expect((await post('west', editor.userToken)).status).toBe(403)
    expect((await post('w/est')).status).toBe(400)
    expect((await post('default')).status).toBe(409)
    expect(await post('west')).toMatchObject({ status: 201, body: { data: { id: 'west', name: 'west' } } })
    // Of two accounts now.
    expect((await post('east')).status).toBe(403)
    expect(await own.call('GET', '/api/v0/accounts', { token: own.userToken })).toMatchObject({
      body: { data: [{ name: 'default' }, { name: 'west' }], meta: { pagination: { count: 2 } } },
    })
    const into = async (account: string) =>
      (await own.call<Token>('POST', `/api/v0/iam/tokens/${account}`, { token: own.userToken })).body.token
    const west = await into('west')
    const joined = await own.call('PUT', '/api/v0/users/editor', { token: west, body: { roles: BOTH } })
    expect(joined).toMatchObject({ status: 200, body: { data: { name: 'editor' } } })
    expect((await own.call('PUT', '/api/v0/users/nobody', { token: west, body: { roles: BOTH } })).status).toBe(404)
    expect((await own.call('DELETE', '/api/v0/accounts/default', { token: west })).status).toBe(404)
    await own.db.insertInto('environments').values({ account_id: 'west', id: 'prod', name: 'prod' }).execute()
    expect((await own.call('DELETE', '/api/v0/accounts/west', { token: west })).status).toBe(409)
    expect((await whoami(west, own)).status).toBe(200)
    await own.db.deleteFrom('environments').execute()
    expect((await own.call('DELETE', '/api/v0/accounts/west', { token: west })).status).toBe(204)
    expect((await whoami(west, own)).status).toBe(403)
    expect((await whoami(editor.userToken, own)).status).toBe(200)
  })
})

describe('an account that is renamed', () => {
  const rename = (on: TestApi, from: string, name: unknown, token = on.userToken) =>
    on.call('PATCH', `/api/v0/accounts/${from}`, { token, body: { name } })

  it('keeps its id and its tokens, and is found by both names where a setting has the first', async () => {
    await using own = await withApi()
    expect(await rename(own, 'default', 'head-office')).toMatchObject({
      status: 200,
      body: { data: { id: 'default', name: 'head-office', roles: ['administrator'] } },
    })
    expect(await own.call('GET', '/api/v0/user')).toMatchObject({
      status: 200,
      body: { data: { accountId: 'default', accountName: 'head-office' } },
    })
    expect((await own.call('POST', '/api/v0/iam/tokens/head-office', { token: own.userToken })).status).toBe(200)
    expect((await own.call('POST', '/api/v0/iam/tokens/default', { token: own.userToken })).status).not.toBe(200)
    expect(await ensureAccount(own.db, 'default')).toBe('default')
    expect(await ensureAccount(own.db, 'head-office')).toBe('default')
    expect(await rename(own, 'head-office', 'default')).toMatchObject({ status: 200 })
    const { body } = await own.call<{ data: { action: string }[] }>('GET', '/api/v0/audit', { token: own.userToken })
    expect(body.data.filter(({ action }) => action === 'account.rename')).toMatchObject([
      { outcome: 'done' },
      { subject: '/api/v0/accounts/default', outcome: 'done' },
    ])
  })

  it("takes no name that another has, or had first, and is nobody else's to rename", async () => {
    await using own = await withApi()
    const other = await own.addUser({ name: 'other', account: 'west' })
    expect((await rename(own, 'default', 'west')).status).toBe(409)
    expect((await rename(own, 'west', 'east', other.userToken)).status).toBe(200)
    // A setting may still say `west` for it.
    expect((await rename(own, 'default', 'west')).status).toBe(409)
    expect((await own.call('POST', '/api/v0/accounts', { token: own.userToken, body: { name: 'west' } })).status).toBe(
      409,
    )
    expect((await rename(own, 'default', 'w/est')).status).toBe(400)
    expect((await rename(own, 'east', 'south')).status).toBe(404)
    const editor = await own.addUser({ name: 'editor', roles: BOTH })
    expect((await rename(own, 'default', 'south', editor.userToken)).status).toBe(403)
    expect((await rename(own, 'default', undefined)).body).toMatchObject({ data: { name: 'default' } })
  })
})

describe('the audit trail', () => {
  it('says who did what, how it ended, and never a secret', async () => {
    await using own = await withApi()
    const admin = { token: own.userToken }
    await signIn('admin', 'a-wrong-password', own)
    await signIn('admin', TEST_PASSWORD, own)
    await signIn('a-password-in-the-wrong-field', 'x', own)
    const body = { name: 'ada', roles: BOTH, password: 'the-password-of-ada' }
    await own.call('POST', '/api/v0/users', { ...admin, body, headers: { 'x-request-id': 'trace-1' } })
    await own.call('POST', '/api/v0/users', { ...admin, body })
    await own.call('DELETE', '/api/v0/users/nobody', admin)
    await own.call('GET', '/api/v0/users', admin)
    const { body: trail } = await own.call<{ data: readonly object[] }>('GET', '/api/v0/audit', admin)
    const shown = trail.data.map((entry) => {
      const { action, subject, outcome, actorName, actorKind } = entry as Record<string, unknown>
      return [actorKind, actorName, action, subject, outcome].join(' ')
    })
    expect(shown).toEqual([
      'user admin user.remove /api/v0/users/nobody refused',
      'user admin user.create ada refused',
      'user admin user.create ada done',
      'user admin signIn password done',
      'user admin signIn password refused',
    ])
    expect(trail.data[2]).toMatchObject({ requestId: 'trace-1', address: '127.0.0.1', time: own.dependencies.now() })
    const all = await own.db.selectFrom('audit').selectAll().execute()
    expect(all.filter((row) => row.account_id === null)).toMatchObject([{ actor_name: '(unknown user)' }])
    expect(JSON.stringify(all)).not.toMatch(/password-of-ada|a-wrong-password|wrong-field|correct horse/)
  })
})
