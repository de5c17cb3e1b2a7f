import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apimDescriptionOrSkip } from '../contract/apim-description.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, catalogue, clientOf, Described, importFile } from './http-registrations-fixture.ts'
import { portalFile, registration } from './import-fixtures.ts'

let api: TestApi
let call: Client
const described = new Described()
const description = apimDescriptionOrSkip()
beforeAll(async () => {
  api = await withApi()
  await importFile(api, api.accountId, catalogue())
  call = clientOf(api, described)
})
afterAll(() => api[Symbol.asyncDispose]())

const body = (registrationId: string, more: object = {}) => ({
  registrationId,
  source: 'devportal',
  name: 'App',
  ...more,
})

const generationOf = async (id: string): Promise<number | undefined> =>
  (await api.db.selectFrom('registrations').select('generation').where('id', '=', id).executeTakeFirst())?.generation

const DECLARED = { name: 'declared', before: false, after: true }

describe('application registrations', () => {
  it('are created, read, changed and deleted', async () => {
    const created = await call(
      'POST',
      '',
      body('app-1', { sourceOwner: 'ada', attributes: [{ name: 'color', value: 'red' }] }),
    )
    expect(created).toMatchObject({ status: 201, headers: { location: '/api/v2/apim/appRegistrations/app-1' } })
    expect(created.body.data).toEqual({
      registrationId: 'app-1',
      source: 'devportal',
      name: 'App',
      sourceOwner: 'ada',
      brokerType: 'solace',
      attributes: [{ name: 'color', value: 'red' }],
      filters: [],
      accessRequests: [],
      apis: [],
      credentials: [],
      webhooks: [],
      gatewayMessagingServices: [],
    })
    expect(await generationOf('app-1')).toBe(1)
    expect(api.enqueued).toContainEqual({
      kind: 'registration',
      what: { accountId: 'default', registrationId: 'app-1' },
    })

    const read = await call('GET', '/app-1')
    expect(read).toMatchObject({ status: 200, body: created.body, headers: { 'cache-control': 'no-store' } })
    expect(read.headers.etag).toBe(created.headers.etag)

    const changed = await call('PATCH', '/app-1', { name: 'Other', applicationDomainId: 'sales' })
    expect(changed).toMatchObject({
      status: 200,
      body: { data: { name: 'Other', applicationDomainId: 'sales', sourceOwner: 'ada' } },
    })
    expect(changed.headers.etag).not.toBe(created.headers.etag)
    expect(await generationOf('app-1')).toBe(1)
    expect((await call('PATCH', '/app-1', {})).body).toEqual(changed.body)

    expect(await call('DELETE', '/app-1')).toMatchObject({ status: 204, body: null })
    expect((await call('GET', '/app-1')).status).toBe(404)
    expect((await call('DELETE', '/app-1')).status).toBe(404)
    expect(await generationOf('app-1')).toBe(2)
  })

  it('come back empty under the same id', async () => {
    await call('POST', '', body('phoenix', { attributes: [{ name: 'color', value: 'red' }] }))
    await call('POST', '/phoenix/credentials', { name: 'old' })
    await call('DELETE', '/phoenix')
    const created = await call('POST', '', body('phoenix'))
    expect(created).toMatchObject({
      status: 201,
      body: { data: { credentials: [], attributes: [], accessRequests: [] } },
    })
    expect((await call('POST', '/phoenix/credentials', { name: 'old' })).status).toBe(200)
  })

  it('are refused when they exist, also by many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => call('POST', '', body('twice'))))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.body.message).toContain('twice')
  })

  it('take every id that the description allows, and are found under it', async () => {
    for (const id of ['ab', '2f6c1a52-9f0c-4f0d-8a59-0a5a4fd2c6f1', 'app@example.org/x y', 'x'.repeat(64)]) {
      expect(await call('POST', '', body(id))).toMatchObject({ status: 201, body: { data: { registrationId: id } } })
      expect(await call('GET', `/${encodeURIComponent(id)}`)).toMatchObject({
        status: 200,
        body: { data: { registrationId: id } },
      })
    }
    expect((await call('GET', `/${'x'.repeat(188)}`)).status).toBe(404)
  })

  it('know no domain for products without one, and refuse unknown ones', async () => {
    const created = await call('POST', '', body('no-domain', { applicationDomainId: 'none' }))
    expect(created.body.data).not.toHaveProperty('applicationDomainId')
    const refused = await call('POST', '', body('bad-domain', { applicationDomainId: 'nowhere' }))
    expect(refused).toMatchObject({
      status: 400,
      body: { validationDetails: { applicationDomainId: [expect.any(String)] } },
    })
    expect(await generationOf('bad-domain')).toBeUndefined()
  })

  it('are changed only by who read the newest', async () => {
    const { headers } = await call('POST', '', body('etag'))
    const old = { headers: { 'if-match': String(headers.etag) } }
    expect((await call('PATCH', '/etag', { name: 'One' }, old)).status).toBe(200)
    expect((await call('PATCH', '/etag', { name: 'Two' }, old)).status).toBe(412)
    expect((await call('DELETE', '/etag', undefined, old)).status).toBe(412)
    expect(await call('GET', '/etag')).toMatchObject({ body: { data: { name: 'One' } } })
    expect((await call('DELETE', '/etag', undefined, { headers: { 'if-match': '*' } })).status).toBe(204)
  })

  const wrongBodies: Readonly<Record<string, readonly [body: unknown, field: string]>> = {
    'without a source': [{ registrationId: 'bad-1', name: 'App' }, 'source'],
    'without a name': [{ registrationId: 'bad-1', source: 'portal' }, 'name'],
    'with an id of one character': [body('a'), 'registrationId'],
    'with an id of 65 characters': [body('a'.repeat(65)), 'registrationId'],
    'with a slash in the id': [body('a/b'), 'registrationId'],
    'with a line break in the name': [body('bad-1', { name: 'a\nb' }), 'name'],
    'with an unknown field': [body('bad-1', { nickname: 'x' }), 'nickname'],
    'with one attribute twice': [
      body('bad-1', {
        attributes: [
          { name: 'color', value: '1' },
          { name: 'color', value: '2' },
        ],
      }),
      'attributes[1].name',
    ],
    'that is a list': [[], 'request'],
  }
  it.each(Object.entries(wrongBodies))('are refused %s', async (_name, [given, field]) => {
    const before = await api.db.selectFrom('registrations').select('id').execute()
    const refused = await call('POST', '', given)
    expect(refused).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
    expect(await api.db.selectFrom('registrations').select('id').execute()).toEqual(before)
  })

  it('need their permissions', async () => {
    const lacking = await api.apiToken((await api.addUser({ name: 'reader' })).id, api.accountId, [
      'apim_event_api_product:*:*',
    ])
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['GET', '/x1'],
      ['PATCH', '/x1'],
      ['DELETE', '/x1'],
      ['GET', '/x1/credentials'],
    ] as const) {
      const refused = await call(method, path, method === 'GET' || method === 'DELETE' ? undefined : {}, {
        token: lacking,
      })
      expect(refused).toMatchObject({
        status: 403,
        body: { message: expect.stringContaining('mission_control:access') },
      })
    }
  })
})

describe('the list of registrations', () => {
  let other: TestApi
  let list: Client
  beforeAll(async () => {
    other = await withApi()
    list = clientOf(other, described)
    for (const [index, id] of ['list-c', 'list-a', 'list-b'].entries()) {
      await list('POST', '', {
        registrationId: id,
        source: 'devportal',
        name: `App ${index}`,
        attributes: [{ name: 'color', value: index === 0 ? 'blue' : 'red' }],
      })
    }
    await list('POST', '/list-a/credentials', { name: 'main', secret: { consumerKey: 'key-of-list-a' } })
  })
  afterAll(() => other[Symbol.asyncDispose]())

  const idsOf = (data: unknown): unknown =>
    Array.isArray(data) ? data.map((each: { registrationId: string }) => each.registrationId) : data

  it('is paged and sorted', async () => {
    const page = await list('GET', '?pageSize=2&pageNumber=1')
    expect(idsOf(page.body.data)).toEqual(['list-a', 'list-b'])
    expect(page.body.meta).toEqual({ pagination: { pageNumber: 1, count: 3, pageSize: 2, nextPage: 2, totalPages: 2 } })
    expect(idsOf((await list('GET', '?sortFieldName=name&sortDirection=desc')).body.data)).toEqual([
      'list-b',
      'list-a',
      'list-c',
    ])
  })

  const queries: Readonly<Record<string, readonly string[]>> = {
    'registrationId==list-a': ['list-a'],
    'name=="App*"': ['list-a', 'list-b', 'list-c'],
    '(attributes.name==color;attributes.value==r*)': ['list-a', 'list-b'],
    'credentials.secret.consumerKey==key-of-list-a': ['list-a'],
    'brokerType==kafka': [],
  }
  it.each(Object.entries(queries))('filters by %s', async (where, ids) => {
    const answer = await list('GET', `?where=${encodeURIComponent(where)}`)
    expect(answer.status).toBe(200)
    expect(idsOf(answer.body.data)).toEqual(ids)
  })

  it.each(['credentials.secret.consumerSecret==x*', 'nowhere==x', 'name', 'name==('])(
    'refuses to filter by %s',
    async (where) => {
      const answer = await list('GET', `?where=${encodeURIComponent(where)}`)
      expect(answer).toMatchObject({ status: 400, body: { validationDetails: { where: [expect.any(String)] } } })
    },
  )

  it.each(['pageSize=0', 'pageSize=101', 'pageNumber=0', 'sortFieldName=secret', 'sortDirection=up', 'filter=x'])(
    'refuses the query %s',
    async (query) => {
      expect((await list('GET', `?${query}`)).body.validationDetails).toHaveProperty(query.split('=')[0] ?? '')
    },
  )
})

describe('many clients at once', () => {
  it('change one registration without a lost update, and without an error of ours', async () => {
    await call('POST', '', body('busy'))
    const tasks = Array.from({ length: 10 }, (_, index) => [
      () => call('POST', '/busy/credentials', { name: `credential-${index}` }),
      () => call('POST', '/busy/attributes', { name: `attribute-${index}`, value: 'x' }),
      () => call('POST', '/busy/filters', { name: `filter-${index}`, values: ['x'] }),
      () =>
        call('POST', '/busy/accessRequests', {
          accessRequestId: `request-${index}`,
          eventApiProductId: 'orders',
          planId: 'gold',
        }),
      () => call('PATCH', '/busy', { name: `App ${index}` }),
    ]).flat()
    const answers = await Promise.all(tasks.map((task) => task()))
    expect(answers.map(({ status }) => status)).toEqual(tasks.map(() => 200))
    const { data } = (await call('GET', '/busy')).body
    for (const list of ['credentials', 'attributes', 'filters', 'accessRequests']) expect(data[list]).toHaveLength(10)
    expect(await generationOf('busy')).toBe(1 + 30)
    const pairs = await api.db.selectFrom('pairs').selectAll().where('registration_id', '=', 'busy').execute()
    expect(pairs).toMatchObject([{ broker_id: 'broker1', wanted: true, generation: 31 }])
  })

  it('let one of those win that read the same', async () => {
    const { headers } = await call('POST', '', body('raced'))
    const options = { headers: { 'if-match': String(headers.etag) } }
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => call('PATCH', '/raced', { name: `App ${index}` }, options)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 412)])
    const winner = answers.find(({ status }) => status === 200)
    expect((await call('GET', '/raced')).body).toEqual(winner?.body)
  })
})

describe('the published description', () => {
  it.skipIf(description === null)('has the operations of the APIM description, and no other', async () => {
    const { body: published } = await api.call<{ paths: Record<string, object> }>('GET', '/api/v2/apim/openapi.json')
    const operations = Object.entries(published.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace('/api/v2/apim', '')}`),
    )
    const ofRegistrations = (list: readonly string[]) => list.filter((each) => / \/appRegistrations/.test(each)).sort()
    expect(ofRegistrations(operations)).toEqual(ofRegistrations(description?.operations ?? []))
    expect(ofRegistrations(operations)).toHaveLength(39)
  })
})

describe('a portal file', () => {
  it('finds nothing to change in a registration of the same content that the API made, apart from whose it is', async () => {
    await call('POST', '', body('from-api', { sourceOwner: 'ada', attributes: [{ name: 'color', value: 'red' }] }))
    await call('POST', '/from-api/credentials', { name: 'main' })
    const file = portalFile({
      ...catalogue(),
      registrations: [
        registration('from-api', {
          name: 'App',
          source: 'devportal',
          sourceOwner: 'ada',
          attributes: [{ name: 'color', value: 'red' }],
          accessRequests: [],
        }),
      ],
    })
    const declared = { type: 'update', kind: 'registration', id: 'from-api', attributes: [DECLARED] }
    expect((await importFile(api, api.accountId, file)).changes).toEqual([declared])
    expect((await importFile(api, api.accountId, file)).changes).toEqual([])
  })
})
