import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/domain/secret.ts'
import { createApp } from '../../src/http/app.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { type ConsoleWorld, withConsole } from '../helpers/console.ts'
import { TEST_PASSWORD, withApi } from '../helpers/http.ts'
import { storedSecrets } from '../helpers/mesh.ts'

let world: ConsoleWorld
let paths: readonly string[]
beforeAll(async () => {
  world = await withConsole()
  const { db } = world.mesh.context
  const [run] = await db.selectFrom('runs').select('id').execute()
  const [drift] = await db.selectFrom('drift').select('id').execute()
  const registrations = await db.selectFrom('registrations').select('id').execute()
  paths = [
    '/console',
    '/console/brokers/north',
    '/console/registrations',
    '/console/registrations?search=crew&state=waiting',
    ...registrations.map(({ id }) => `/console/registrations/${id}`),
    '/console/drift',
    `/console/drift/${drift?.id}`,
    '/console/runs',
    `/console/runs/${run?.id}`,
    '/console/plan?broker=north',
    '/console/catalogue',
    '/console/catalogue/products/liveTrainData',
    '/console/catalogue/event-apis',
    '/console/catalogue/event-apis/trainPositions',
  ]
}, 60_000)
afterAll(() => world[Symbol.asyncDispose]())

const PENDING = { registration: 'crew-app-junction' } as const

describe('a session', () => {
  it('begins with a password, in a cookie that no script reads and no other site sends', async () => {
    const answer = await world.post('/console/sign-in', { username: 'admin', password: TEST_PASSWORD }, null)
    expect(answer).toMatchObject({ status: 303, headers: { location: '/console' } })
    const cookie = String(answer.headers['set-cookie'])
    expect(cookie).toMatch(/^keymesh_session=[^;]+; Path=\/console; HttpOnly; SameSite=Strict$/)
    const session = /keymesh_session=([^;]+)/.exec(cookie)?.[1] ?? ''
    expect((await world.page('/console', session)).html).toContain('<h1>Mesh')
  })

  it('is sent over TLS only where the console is', async () => {
    const { config } = world.mesh.context
    const app = await createApp({ ...world.dependencies, config: { ...config, trustedProxies: ['127.0.0.1'] } })
    const { headers } = await app.inject({
      method: 'POST',
      url: '/console/sign-in',
      headers: {
        host: 'a',
        origin: 'https://a',
        'x-forwarded-proto': 'https',
        'content-type': 'application/x-www-form-urlencoded',
      },
      payload: String(new URLSearchParams({ username: 'admin', password: TEST_PASSWORD })),
    })
    await app.close()
    expect(String(headers['set-cookie'])).toContain('; Secure')
  })

  it('does not begin with a wrong password, and the form says so', async () => {
    const answer = await world.post('/console/sign-in', { username: 'admin', password: 'wrong' }, null)
    expect(answer.status).toBe(401)
    expect(answer.html).toContain('The user name or the password is wrong.')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  it('leads back to the page that was asked for, and to no other site', async () => {
    const asked = await world.page('/console/registrations?search=crew', null)
    const signIn = '/console/sign-in?next=%2Fconsole%2Fregistrations%3Fsearch%3Dcrew'
    expect(asked).toMatchObject({ status: 303, headers: { location: signIn } })
    expect((await world.page(signIn, null)).html).toContain('value="/console/registrations?search=crew"')
    const known = { username: 'admin', password: TEST_PASSWORD }
    for (const next of ['https://evil.example', '//evil.example', '/console\\evil', '/consoles', '/api/v0/user']) {
      const answer = await world.post('/console/sign-in', { ...known, next }, null)
      expect(answer.headers.location).toBe('/console')
    }
  })

  it('ends with a sign-out, and with the tokens of the user', async () => {
    const { headers } = await world.post('/console/sign-out')
    expect(String(headers['set-cookie'])).toMatch(
      /^keymesh_session=; Max-Age=0; Path=\/console; Expires=Thu, 01 Jan 1970/,
    )
    const user = await world.addUser({ name: 'leaver', account: String(world.mesh.context.accountId) })
    expect((await world.page('/console', user.userToken)).status).toBe(200)
    await world.mesh.context.db.updateTable('users').set({ token_generation: 2 }).where('id', '=', user.id).execute()
    expect((await world.page('/console', user.userToken)).status).toBe(303)
  })

  it('is for user tokens alone, and opens nothing of the API', async () => {
    const user = await world.addUser({ name: 'machine', account: String(world.mesh.context.accountId) })
    expect((await world.page('/console', user.apiToken)).status).toBe(403)
    expect((await world.page('/api/v0/user')).status).toBe(401)
  })

  it('asks a user of several accounts which one', async () => {
    const { db } = world.mesh.context
    const user = await world.addUser({ name: 'both', account: String(world.mesh.context.accountId) })
    const other = await ensureAccount(db, 'other-account')
    await db
      .insertInto('memberships')
      .values({ user_id: user.id, account_id: other, roles: ['administrator'] })
      .execute()
    expect(await world.page('/console', user.userToken)).toMatchObject({
      status: 303,
      headers: { location: '/console/account' },
    })
    expect((await world.page('/console/account', user.userToken)).html).toContain('other-account')
    const chosen = await world.post('/console/account', { account: 'other-account' }, user.userToken)
    const session = /keymesh_session=([^;]+)/.exec(String(chosen.headers['set-cookie']))?.[1] ?? ''
    expect((await world.page('/console', session)).html).toContain('There is no broker yet.')
    expect((await world.post('/console/account', { account: 'nobodys' }, user.userToken)).status).toBe(404)
  })
})

describe('many attempts to sign in', () => {
  it('are stopped, with the right password too', async () => {
    await using api = await withApi({
      dependencies: { passwords: { hash: async () => '', verify: async () => false } },
    })
    const statuses = new Set<number>()
    for (let attempt = 0; attempt < 40; attempt += 1) {
      const { statusCode } = await api.app.inject({
        method: 'POST',
        url: '/console/sign-in',
        headers: { host: 'a', origin: 'http://a', 'content-type': 'application/x-www-form-urlencoded' },
        payload: 'username=admin&password=guess',
      })
      statuses.add(statusCode)
      if (statusCode === 429) break
    }
    expect([...statuses]).toEqual([401, 429])
  })
})

describe('the list of registrations', () => {
  it.each<readonly [what: string, query: string, found: readonly string[]]>([
    ['a name', 'search=harbour+depot', ['crew-app-harbour']],
    ['a client username', 'search=CREW-app-harbour-2', ['crew-app-harbour']],
    ['an owner', 'search=wayfinder', ['journey-planner']],
    ['no pattern', 'search=%25', []],
    ['no pattern of one character', 'search=crew_app', []],
    ['not being in sync', 'state=astray', ['dispatch-console']],
    ['a request in error', 'state=failing', ['dispatch-console']],
    ['a broker where it is not in sync', 'state=astray&broker=south', []],
    ['a broker and a text', 'broker=central&search=crew-app', ['crew-app-harbour']],
  ])('is searched by %s', async (_what, query, found) => {
    const { html } = await world.page(`/console/registrations?${query}`)
    expect([...html.matchAll(/<tr id="registration-([^"]+)"/g)].map(([, id]) => id)).toEqual(found)
  })
})

describe('a form', () => {
  const registration = `/console/registrations/${PENDING.registration}`

  it.each([
    ['of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['of another site that browsers call the same', { 'sec-fetch-site': 'same-site', origin: 'http://x.console.test' }],
    ['of another origin, from an old browser', { origin: 'https://evil.example' }],
    ['that hides where it comes from', { origin: 'null' }],
    ['that says nothing', {}],
  ])('%s is refused, and nothing is done', async (_sentence, headers) => {
    const before = world.enqueued.length
    const answer = await world.app.inject({
      method: 'POST',
      url: `${registration}/pause`,
      headers: {
        host: 'console.test',
        cookie: `keymesh_session=${world.adminSession}`,
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
    })
    expect(answer.statusCode).toBe(403)
    expect(answer.body).toContain('The form was not sent from a page of this console.')
    expect(world.enqueued.length).toBe(before)
    const paused = await world.mesh.context.db.selectFrom('pauses').select('id').execute()
    expect(paused).toEqual([])
  })

  it('is no JSON', async () => {
    const answer = await world.app.inject({
      method: 'POST',
      url: `${registration}/pause`,
      headers: { host: 'a', origin: 'http://a', cookie: `keymesh_session=${world.adminSession}` },
      payload: {},
    })
    expect(answer.statusCode).toBe(415)
  })

  it('of a user who is no administrator is refused, and none is shown', async () => {
    const actions = [
      '/console/pause',
      '/console/brokers/north/pause',
      `${registration}/pause`,
      '/console/plan/reconcile',
    ]
    for (const path of actions) expect((await world.post(path, {}, world.readerSession)).status).toBe(403)
    for (const path of ['/console', '/console/brokers/north', registration]) {
      const { html } = await world.page(path, world.readerSession)
      expect(html).not.toMatch(/action="\/console\/(?!sign-out|registrations"|plan")/)
      expect(html).toContain('Only an administrator')
    }
  })

  it('pauses and resumes, says so once, and is in the audit trail', async () => {
    const answer = await world.post(`${registration}/pause`)
    expect(answer).toMatchObject({ status: 303, headers: { location: registration } })
    const notice = String(answer.headers['set-cookie']).split(';')[0] ?? ''
    const shown = await world.app.inject({
      url: registration,
      headers: { cookie: `keymesh_session=${world.adminSession}; ${notice}` },
    })
    expect(shown.body).toContain('The registration is paused.')
    expect(String(shown.headers['set-cookie'])).toContain('keymesh_notice=;')
    expect((await world.page('/console/registrations?state=paused')).html).toContain('Crew app, junction depot')
    await world.post(`${registration}/resume`)
    await world.post('/console/brokers/north/pause')
    expect((await world.page('/console/brokers/north')).html).toContain('resume it first')
    await world.post('/console/brokers/north/resume')
    await world.post('/console/pause')
    expect((await world.page('/console')).html).toContain('everything is paused')
    await world.post('/console/resume')
    const rows = await world.mesh.context.db.selectFrom('audit').select(['action', 'outcome', 'actor_name']).execute()
    for (const action of ['registration.pause', 'broker.resume', 'pause', 'resume']) {
      expect(rows).toContainEqual({ action, outcome: 'done', actor_name: 'admin' })
    }
  })

  it('approves an access request, and has it brought to its brokers', async () => {
    const { html } = await world.page(registration)
    const path = /action="([^"]+\/approve)"/.exec(html)?.[1] ?? ''
    expect(await world.post(path)).toMatchObject({ status: 303, headers: { location: registration } })
    expect(world.enqueued).toContainEqual({
      kind: 'registration',
      what: { accountId: 'default', registrationId: PENDING.registration },
    })
    const after = await world.page(registration)
    expect(after.html).toContain('chip busy">approved')
    expect(after.html).toContain('accessRequest.approve')
    expect((await world.page(registration, world.readerSession)).html).not.toContain('accessRequest.approve')
  })
})

describe('every page', () => {
  it('holds no secret, and runs and loads nothing but its own script and style', async () => {
    const secrets = [...(await storedSecrets(world.mesh.context)).values()]
    expect(secrets.length).toBeGreaterThan(5)
    for (const path of paths) {
      const { status, headers, html } = await world.page(path)
      expect({ path, status }).toEqual({ path, status: 200 })
      expect(secrets.filter((secret) => html.includes(secret))).toEqual([])
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      )
      expect(headers['cache-control']).toBe('no-store')
      expect(html).not.toMatch(/\sstyle=|\son[a-z]+=|<style|<script(?! src="\/console\/assets)/)
      expect(html.match(/(?:src|href)="(?!\/console|#)[^"]*"/g)).toBeNull()
    }
  })

  it('is of one account: others find nothing there', async () => {
    const stranger = await world.addUser({ name: 'stranger', account: 'elsewhere' })
    for (const path of paths) {
      const { status, html } = await world.page(path, stranger.userToken)
      const isList = /^\/console(?:\/(?:registrations|drift|runs|catalogue|catalogue\/event-apis))?(?:\?.*)?$/.test(
        path,
      )
      expect({ path, status }).toEqual({ path, status: isList ? 200 : 404 })
      expect(html).not.toMatch(/Crew app|Northern region|Live train/)
    }
    const posts = ['/console/brokers/north/pause', `/console/registrations/${PENDING.registration}/resume`]
    for (const path of posts) expect((await world.post(path, {}, stranger.userToken)).status).toBe(404)
  })

  it('answers junk with a page that is no error of the service', async () => {
    const junk = ["'", '%', '%25', '%27;--', '..%2f..', '%f0%9f%98%80', 'a'.repeat(300), '%00', '%5C', '_', '-1', '1e9']
    const places = [
      'brokers/',
      'registrations/',
      'registrations?search=',
      'registrations?page=',
      'registrations?state=',
    ]
    const more = ['registrations?broker=', 'sign-in?next=', 'nothing/', 'drift/', 'runs/', 'catalogue/products/']
    for (const place of [...places, ...more]) {
      for (const each of junk) {
        const { status } = await world.page(`/console/${place}${each}`)
        expect({ place, each, isServiceError: status >= 500 }).toEqual({ place, each, isServiceError: false })
      }
    }
    const forms = ['brokers/north/pause', 'plan/reconcile', 'plan/confirm-withdrawals', 'account', 'sign-in']
    for (const form of [...forms, 'registrations/%27/access-requests/%00/approve', 'drift/1e9/adopt']) {
      for (const each of junk) {
        const fields = { broker: each, registration: each, account: each, back: each, next: each, username: each }
        const { status } = await world.post(`/console/${form}`, fields)
        expect({ form, each, isServiceError: status >= 500 }).toEqual({ form, each, isServiceError: false })
      }
    }
    await world.post('/console/brokers/north/resume')
    const missing = await world.page('/console/nothing')
    expect(missing.status).toBe(404)
    expect(missing.html).toContain('There is nothing here')
  })

  it('is read again as its content alone, and not at all when nothing changed', async () => {
    const read = (headers: Readonly<Record<string, string>>) =>
      world.app.inject({
        url: '/console/registrations',
        headers: { cookie: `keymesh_session=${world.adminSession}`, 'x-keymesh-part': 'main', ...headers },
      })
    const first = await read({})
    expect(first.body).toMatch(/^<main id="main" tabindex="-1" data-live="\d+ registrations\.">/)
    const again = await read({ 'if-none-match': String(first.headers.etag) })
    expect({ status: again.statusCode, body: again.body }).toEqual({ status: 304, body: '' })
  })

  it('finds its style, script and icon, which browsers keep', async () => {
    const { html } = await world.page('/console')
    const assets = [...new Set(html.match(/\/console\/assets\/[^"]+/g))]
    expect(assets).toHaveLength(3)
    for (const path of assets) {
      const { status, headers } = await world.page(path, null)
      expect({ status, cache: headers['cache-control'] }).toEqual({
        status: 200,
        cache: 'public, max-age=31536000, immutable',
      })
    }
  })
})

describe('a password', () => {
  it('never comes back in the form', async () => {
    const password = new Secret('guessed-password-1')
    const { html } = await world.post('/console/sign-in', { username: 'admin', password: password.reveal() }, null)
    expect(html).not.toContain(password.reveal())
    expect(html).toContain('value="admin"')
  })
})
