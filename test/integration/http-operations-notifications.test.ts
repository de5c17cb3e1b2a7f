import { sql } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { accountId } from '../../src/domain/ids.ts'
import { NOTIFICATION_KINDS } from '../../src/domain/notifications.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { NotificationSender } from '../../src/notifications/notification-sender.ts'
import { Notifier } from '../../src/notifier.ts'
import { MAX_ENDPOINTS } from '../../src/store/notification-endpoints.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type Answer, type TestApi, withApi } from '../helpers/http.ts'
import { isSignedBy, type NotificationReceiver, startReceiver } from '../helpers/notification-receiver.ts'

const BASE = '/api/v2/operations/notifications'
const ENDPOINTS = `${BASE}/endpoints`

interface Data {
  readonly id: string
  readonly kinds: readonly string[]
  readonly signingSecret: string
  readonly payload: unknown
}

/** As much of the answers as these tests look into; the routes' own schemas check them. */
interface Body {
  readonly data: Data & readonly Data[]
  readonly meta: { readonly pagination: { readonly count: number } }
  readonly validationDetails: Readonly<Record<string, readonly string[]>>
}

interface Description {
  readonly components: { readonly schemas: object }
  readonly paths: object
}

let api: TestApi
let receiver: NotificationReceiver
let sender: NotificationSender
let other: string
beforeAll(async () => {
  api = await withApi({ env: { KEYMESH_NOTIFICATION_HTTP: 'true', KEYMESH_NOTIFICATION_NETWORKS: '127.0.0.1' } })
  other = (await api.addUser({ name: 'eve', account: 'other' })).apiToken
  receiver = await startReceiver()
  sender = new NotificationSender({ allowHttp: true, allowedNetworks: ['loopback'], timeoutMs: 2_000 })
})
afterAll(async () => {
  await sender?.close()
  await receiver?.[Symbol.asyncDispose]()
  await api?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await sql`truncate notification_endpoints cascade`.execute(api.db)
  await sql`truncate audit`.execute(api.db)
  api.enqueued.length = 0
  receiver.posts.length = 0
  receiver.answers.length = 0
})

const call = (method: Parameters<TestApi['call']>[0], path: string, body?: unknown, options: object = {}) =>
  api.call<Body>(method, `${BASE}${path}`, { ...(body === undefined ? {} : { body }), ...options })
const create = (body: object = {}, options: object = {}): Promise<Answer<Body>> =>
  call('POST', '/endpoints', { name: 'pager', url: receiver.url, ...body }, options)

/** What a worker does with the jobs that were asked for. */
async function work(): Promise<void> {
  const { db, sealer, now } = api.dependencies
  const log = pino({ level: 'silent' })
  const notifier = new Notifier({ db, sealer, sender, now, ids: cryptoRandom, random: () => 0, retryMs: 60_000, log })
  for (const { kind, what } of api.enqueued.splice(0)) {
    if (kind !== 'notifications') continue
    for (const place of what as { accountId: string; endpointId: string }[]) {
      await notifier.deliver({ accountId: accountId(place.accountId), endpointId: place.endpointId })
    }
  }
}

describe('notification endpoints', () => {
  it('are created, listed, read, changed and deleted', async () => {
    const created = await create({ kinds: ['broker.back', 'broker.down'] })
    expect(created).toMatchObject({
      status: 201,
      body: {
        data: {
          name: 'pager',
          address: receiver.url,
          kinds: ['broker.down', 'broker.back'],
          enabled: true,
          disabledReason: null,
          failingSinceMs: null,
          signingSecret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        },
      },
    })
    const { id, signingSecret, ...view } = created.body.data
    expect((await call('GET', '/endpoints')).body.data).toEqual([{ id, ...view }])
    const read = await call('GET', `/endpoints/${id}`)
    expect(read.body.data).toEqual({ id, ...view })
    expect(JSON.stringify([read.body, (await call('GET', '/endpoints')).body])).not.toContain(signingSecret)
    const etag = { headers: { 'if-match': String(read.headers.etag) } }
    const url = 'https://hooks.example.org/x?key=hidden'
    const changed = await call('PATCH', `/endpoints/${id}`, { name: 'chat', url, enabled: false }, etag)
    expect(changed).toMatchObject({
      status: 200,
      body: { data: { name: 'chat', address: 'https://hooks.example.org/x?…', enabled: false, kinds: view.kinds } },
    })
    expect((await call('PATCH', `/endpoints/${id}`, { name: 'late' }, etag)).status).toBe(412)
    expect((await call('DELETE', `/endpoints/${id}`, undefined, etag)).status).toBe(412)
    expect((await call('DELETE', `/endpoints/${id}`)).status).toBe(204)
    expect((await call('DELETE', `/endpoints/${id}`)).status).toBe(404)
    const { rows } = await sql<{ line: string }>`
      select action || ' ' || outcome as line from audit order by id`.execute(api.db)
    expect(rows.map(({ line }) => line)).toEqual([
      'notificationEndpoint.create done',
      'notificationEndpoint.change done',
      'notificationEndpoint.change refused',
      'notificationEndpoint.delete refused',
      'notificationEndpoint.delete done',
      'notificationEndpoint.delete refused',
    ])
    expect(JSON.stringify(await api.db.selectFrom('audit').selectAll().execute())).not.toMatch(/hidden|whsec/)
  })

  it('are told everything unless they say what', async () => {
    expect((await create()).body.data.kinds).toEqual(NOTIFICATION_KINDS)
  })

  const wrong: Readonly<Record<string, readonly [body: object, field: string, said: string]>> = {
    'a private address': [{ url: 'https://10.1.2.3/' }, 'url', 'KEYMESH_NOTIFICATION_NETWORKS'],
    'the address of a cloud’s metadata': [{ url: 'http://169.254.169.254/latest' }, 'url', 'private or reserved'],
    'another protocol': [{ url: 'gopher://hooks.example.org' }, 'url', 'must begin with https://'],
    'no URL': [{ url: 'hooks' }, 'url', 'must be a URL'],
    'a kind that is not told': [{ kinds: ['broker.slow'] }, 'kinds', ''],
    'an empty name': [{ name: '' }, 'name', ''],
    'a name of two lines': [{ name: 'a\nb' }, 'name', 'one line'],
  }
  it.each(Object.entries(wrong))('with %s are refused', async (_sentence, [body, field, said]) => {
    const { status, body: answer } = await create(body)
    expect(status).toBe(400)
    const problems = Object.entries(answer.validationDetails).find(([path]) => path.startsWith(field))
    expect(problems?.[1]?.join()).toContain(said)
  })

  it('have a name of their own, and are not too many', async () => {
    const [{ body }] = [await create()]
    expect((await create()).body.validationDetails).toEqual({ name: [expect.stringContaining('not unique')] })
    for (let index = 1; index < MAX_ENDPOINTS; index += 1) await create({ name: `pager ${index}` })
    expect((await create({ name: 'one more' })).status).toBe(409)
    expect((await call('PATCH', `/endpoints/${body.data.id}`, { name: 'pager 1' })).status).toBe(400)
    expect((await call('PATCH', `/endpoints/${body.data.id}`, { name: 'pager' })).status).toBe(200)
  })

  it('get another secret, the older one signing beside it as long as asked', async () => {
    const { id, signingSecret: first } = (await create()).body.data
    const second = (await call('POST', `/endpoints/${id}/rotateSecret`, {})).body.data.signingSecret
    const third = (await call('POST', `/endpoints/${id}/rotateSecret`, { overlapSeconds: 60 })).body.data.signingSecret
    await call('POST', `/endpoints/${id}/test`)
    await work()
    const [post] = receiver.posts
    if (post === undefined) throw new Error('nothing was posted')
    expect([first, second, third].map((secret) => isSignedBy(secret, post))).toEqual([true, true, true])
    const fourth = (await call('POST', `/endpoints/${id}/rotateSecret`, { overlapSeconds: 0 })).body.data.signingSecret
    await call('POST', `/endpoints/${id}/test`)
    await work()
    const last = receiver.posts[1] ?? post
    expect([first, second, third, fourth].map((secret) => isSignedBy(secret, last))).toEqual([
      false,
      false,
      false,
      true,
    ])
  })

  it('of one account are not there for another', async () => {
    const { id } = (await create()).body.data
    await call('POST', `/endpoints/${id}/test`)
    const [delivery] = (await call('GET', '/deliveries')).body.data
    const foreign = { token: other }
    expect((await call('GET', '/endpoints', undefined, foreign)).body.data).toEqual([])
    expect((await call('GET', '/deliveries', undefined, foreign)).body.data).toEqual([])
    for (const [method, path, body] of [
      ['GET', `/endpoints/${id}`],
      ['PATCH', `/endpoints/${id}`, { enabled: false }],
      ['POST', `/endpoints/${id}/rotateSecret`, {}],
      ['POST', `/endpoints/${id}/test`],
      ['POST', `/endpoints/${id}/resendDead`],
      ['GET', `/deliveries/${delivery?.id}`],
      ['POST', `/deliveries/${delivery?.id}/resend`],
      ['DELETE', `/endpoints/${id}`],
    ] as const) {
      expect([path, (await call(method, path, body, foreign)).status]).toEqual([path, 404])
    }
    expect((await create({}, foreign)).status).toBe(201)
    expect((await call('GET', '/endpoints')).body.data).toHaveLength(1)
  })

  it('are for administrators to change, and for operators to test', async () => {
    const { id } = (await create()).body.data
    const { apiToken: editor } = await api.addUser({
      name: 'operator',
      roles: ['service-management-editor', 'event-portal-manager'],
    })
    const token = { token: editor }
    expect((await create({ name: 'mine' }, token)).status).toBe(403)
    expect((await call('PATCH', `/endpoints/${id}`, { url: 'https://evil.example.org' }, token)).status).toBe(403)
    expect((await call('POST', `/endpoints/${id}/rotateSecret`, {}, token)).status).toBe(403)
    expect((await call('DELETE', `/endpoints/${id}`, undefined, token)).status).toBe(403)
    expect((await call('POST', `/endpoints/${id}/test`, undefined, token)).status).toBe(202)
    expect((await call('GET', '/endpoints', undefined, token)).status).toBe(200)
    const permissions = PERMISSIONS.filter((permission) => permission !== 'services:put')
    const { apiToken: reader } = await api.addUser({ name: 'reader', permissions })
    expect((await call('POST', `/endpoints/${id}/test`, undefined, { token: reader })).status).toBe(403)
    expect((await call('GET', '/endpoints', undefined, { token: null })).status).toBe(401)
  })
})

describe('deliveries', () => {
  it('of a test say what came of it', async () => {
    const { id } = (await create()).body.data
    const asked = await call('POST', `/endpoints/${id}/test`)
    expect(asked).toMatchObject({ status: 202, body: { data: { endpointId: id, state: 'pending', test: true } } })
    expect(api.enqueued).toMatchObject([{ kind: 'notifications', what: [{ endpointId: id }] }])
    await work()
    const { body } = await call('GET', `/deliveries/${asked.body.data.id}`)
    expect(body.data).toMatchObject({
      state: 'delivered',
      attempts: 1,
      lastStatus: 204,
      payload: { data: { counts: { test: 1 }, notifications: [{ subject: { requestedBy: 'admin' } }] } },
    })
    expect(receiver.posts[0]?.payload).toEqual(body.data.payload)
  })

  it('that are dead are listed, and sent again one by one or all at once', async () => {
    const { id } = (await create()).body.data
    await sql`
      insert into notification_deliveries (account_id, endpoint_id, id, state, test, notifications, body, attempts,
        next_attempt_at, give_up_at, created_at, finished_at)
      select account_id, ${id}, 'dead-' || n, 'dead', false, 1, ${JSON.stringify({
        type: 'keymesh.notifications',
        timestamp: '2030-01-01T00:00:00.000Z',
        data: { accountId: 'a', accountName: 'a', endpointId: id, counts: {}, omitted: 0, notifications: [] },
      })}, 9, now(), now(), now() - n * interval '1 minute', now()
      from notification_endpoints, generate_series(1, 3) n`.execute(api.db)
    const dead = async () => (await call('GET', `/deliveries?state=dead&endpointId=${id}`)).body
    expect(await dead()).toMatchObject({
      data: [{ id: 'dead-1' }, { id: 'dead-2' }, { id: 'dead-3' }],
      meta: { pagination: { count: 3 } },
    })
    expect((await call('GET', `/endpoints/${id}`)).body.data).toMatchObject({ deadDeliveries: 3 })
    expect((await call('POST', '/deliveries/dead-1/resend')).body.data).toMatchObject({ state: 'pending', attempts: 0 })
    await work()
    expect((await dead()).meta.pagination.count).toBe(2)
    expect(await call('POST', `/endpoints/${id}/resendDead`)).toMatchObject({
      status: 202,
      body: { data: { count: 2 } },
    })
    await work()
    expect(receiver.posts.map(({ headers }) => headers['webhook-id'])).toEqual(['dead-1', 'dead-3', 'dead-2'])
    expect(await call('POST', `/endpoints/${id}/resendDead`)).toMatchObject({ body: { data: { count: 0 } } })
    await call('PATCH', `/endpoints/${id}`, { enabled: false })
    for (const path of [`/endpoints/${id}/test`, `/endpoints/${id}/resendDead`, '/deliveries/dead-1/resend']) {
      expect((await call('POST', path)).status).toBe(409)
    }
  })

  it('have a described payload', async () => {
    const { body } = await api.call<Description>('GET', '/api/v2/apim/openapi.json')
    expect(body.components.schemas).toHaveProperty('NotificationPayload')
    expect(Object.keys(body.paths).filter((path) => path.startsWith(ENDPOINTS))).toHaveLength(5)
  })
})
