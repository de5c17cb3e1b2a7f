import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type AccountId, accountId } from '../../src/domain/ids.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { brokerPasswordPlace } from '../../src/store/sealer-port.ts'
import { type Answer, type CallOptions, type TestApi, withApi } from '../helpers/http.ts'
import { accessRequest, portalFile, product, productVersion, registration } from './import-fixtures.ts'

const BASE = '/api/v2/portal'
const DOCUMENT = `
asyncapi: 2.6.0
info: { title: Shipments, version: 1.0.0 }
channels:
  shipments/{country}/sent:
    parameters:
      country: { schema: { type: string, enum: [de, fr] } }
    subscribe:
      message: { payload: { type: object } }
`

let api: TestApi
let other: { readonly token: string; readonly accountId: AccountId }

beforeAll(async () => {
  api = await withApi()
  const user = await api.addUser({ name: 'eve', account: 'other' })
  other = { token: user.apiToken, accountId: accountId('other') }
})
afterAll(() => api[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`truncate environments, brokers, application_domains, event_apis, products, product_documents, registrations, pairs, ledger,
    broker_status cascade`.execute(api.db)
  api.enqueued.length = 0
})

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'
type Body = { readonly data: Record<string, unknown>; readonly validationDetails?: Record<string, string[]> }
const call = (method: Method, path: string, body?: object, options: CallOptions = {}): Promise<Answer<Body>> =>
  api.call<Body>(method, `${BASE}${path}`, { ...options, ...(body === undefined ? {} : { body }) })

/** The answer's data, when the status is as expected. */
async function done(answer: Promise<Answer<Body>>, status: number): Promise<Body['data']> {
  const { status: actual, body } = await answer
  expect({ status: actual, body }).toMatchObject({ status })
  return body?.data
}

const importing = (file: Parameters<typeof portalFile>[0], account: AccountId = api.accountId) => {
  const { db, sealer } = api.dependencies
  return importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, account, portalFile(file))
}
/** Two registrations with an approved request for `orders` 1.0.0 on `broker-1`. */
const withRegistrations = (file: Parameters<typeof portalFile>[0] = {}) =>
  importing({ registrations: [registration('app-1'), registration('app-2')], ...file })
const generations = async () => {
  const { rows } = await sql<{ id: string; generation: number }>`
    select id, generation from registrations where account_id = ${api.accountId} order by id`.execute(api.db)
  return rows.map(({ id, generation }) => `${id} ${generation}`)
}
const storedPassword = async (id: string) => {
  const row = await api.db.selectFrom('brokers').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const place = brokerPasswordPlace(row.account_id, id, row.management_password_version)
  return row.management_password === null
    ? null
    : (await api.dependencies.sealer.open(row.management_password, place)).reveal()
}
const management = {
  url: 'https://Broker.example:1943/',
  msgVpnName: 'default',
  username: 'admin',
  password: 'a password of SEMP',
}

describe('environments, event meshes and application domains', () => {
  it('are created with an id of their own or a given one, read, listed, changed and removed', async () => {
    const { id } = await done(call('POST', '/environments', { name: 'Production' }), 201)
    expect(id).toMatch(/^[A-Za-z0-9]{11}$/)
    await done(call('POST', '/environments', { id: 'test', name: 'Test' }), 201)
    await done(call('POST', '/eventMeshes', { id: 'mesh', name: 'Mesh', environmentId: 'test' }), 201)
    await done(call('POST', '/applicationDomains', { id: 'sales', name: 'Sales' }), 201)
    expect(await done(call('GET', '/applicationDomains/sales'), 200)).toEqual({
      id: 'sales',
      name: 'Sales',
      description: '',
    })
    const list = await call('GET', '/environments?pageSize=1')
    expect(list.body).toMatchObject({ data: [{}], meta: { pagination: { count: 2, nextPage: 2 } } })
    expect(await done(call('PATCH', '/environments/test', { name: 'Testing' }), 200)).toEqual({
      id: 'test',
      name: 'Testing',
    })
    const used = await call('DELETE', '/environments/test')
    expect(used).toMatchObject({ status: 409, body: { message: expect.stringContaining('mesh') } })
    await done(call('DELETE', '/eventMeshes/mesh'), 204)
    await done(call('DELETE', '/environments/test'), 204)
    expect((await call('GET', '/environments/test')).status).toBe(404)
  })

  it('keep to ETags', async () => {
    await done(call('POST', '/environments', { id: 'test', name: 'Test' }), 201)
    const etag = String((await call('GET', '/environments/test')).headers.etag)
    const first = await call('PATCH', '/environments/test', { name: 'One' }, { headers: { 'if-match': etag } })
    expect(first.status).toBe(200)
    expect(first.headers.etag).not.toBe(etag)
    for (const method of ['PATCH', 'DELETE'] as const) {
      const late = await call(method, '/environments/test', method === 'PATCH' ? { name: 'Two' } : undefined, {
        headers: { 'if-match': etag },
      })
      expect(late.status).toBe(412)
    }
    expect(await done(call('GET', '/environments/test'), 200)).toMatchObject({ name: 'One' })
  })
})

describe('concurrent changes', () => {
  it('with one ETag: the first wins, the others are told', async () => {
    await withRegistrations()
    const path = '/products/orders/versions/1.0.0'
    const headers = { 'if-match': String((await call('GET', path)).headers.etag) }
    const answers = await Promise.all(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((displayName) => call('PATCH', path, { displayName }, { headers })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412, 412, 412, 412, 412])
  })

  it('without one: each is kept', async () => {
    await withRegistrations()
    const path = '/products/orders/versions/1.0.0'
    const bodies = [{ displayName: 'x' }, { description: 'y' }, { public: false }, { brokers: ['broker-2'] }]
    await Promise.all(bodies.map((body) => done(call('PATCH', path, body), 200)))
    expect(await done(call('GET', path), 200)).toMatchObject({
      displayName: 'x',
      description: 'y',
      public: false,
      brokers: ['broker-2'],
    })
    expect(await generations()).toEqual(['app-1 2', 'app-2 2'])
  })
})

describe('brokers', () => {
  beforeEach(() => importing({ brokers: [], products: [], eventApis: [] }))

  it('take a password and never show it', async () => {
    const created = await call('POST', '/brokers', {
      id: 'eu',
      eventMeshId: 'mesh',
      management,
      messaging: { host: 'broker.example', protocols: [{ protocol: 'smfs', port: 55443 }] },
      policy: { mode: 'create-only' },
    })
    expect(created).toMatchObject({
      status: 201,
      body: {
        data: {
          id: 'eu',
          name: 'eu',
          kind: 'solace',
          management: { url: 'https://broker.example:1943', maxConcurrentRequests: 4 },
          policy: { mode: 'create-only', adopt: 'never', window: null },
        },
      },
    })
    const everything = JSON.stringify([created.body, await call('GET', '/brokers/eu'), await call('GET', '/brokers')])
    expect(everything).not.toContain(management.password)
    expect(everything).not.toMatch(/password/i)
    expect(await storedPassword('eu')).toBe(management.password)
  })

  it('say how logins prove credentials, as they were told', async () => {
    const protocols = [{ protocol: 'smfs', port: 55443 }]
    const host = 'broker.example'
    const created = await call('POST', '/brokers', {
      id: 'eu',
      messaging: { host, protocols, logins: { off: ['https', 'smf'], maxPerSecond: 0.5 } },
    })
    const logins = { off: ['smf', 'https'], maxPerSecond: 0.5, maxConcurrent: 16 }
    expect(created).toMatchObject({ status: 201, body: { data: { messaging: { logins } } } })
    expect(await call('GET', '/brokers/eu')).toMatchObject({ body: { data: { messaging: { logins } } } })
    const off = { host, protocols, logins: { ...logins, off: 'all' } }
    expect(await call('PATCH', '/brokers/eu', { messaging: off })).toMatchObject({
      body: { data: { messaging: off } },
    })
    const changed = await call('PATCH', '/brokers/eu', { messaging: { host, protocols } })
    expect(changed).toMatchObject({
      status: 200,
      body: { data: { messaging: expect.not.objectContaining({ logins }) } },
    })
  })

  it('keep the stored password while it goes to the same address, and demand it for another', async () => {
    await done(call('POST', '/brokers', { id: 'eu', eventMeshId: 'mesh', management }), 201)
    const { password: _password, ...same } = management
    await done(call('PATCH', '/brokers/eu', { management: { ...same, maxConcurrentRequests: 9 }, name: 'EU' }), 200)
    expect(await storedPassword('eu')).toBe(management.password)
    const moved = await call('PATCH', '/brokers/eu', { management: { ...same, url: 'https://elsewhere.example:1943' } })
    expect(moved).toMatchObject({
      status: 400,
      body: { validationDetails: { 'management.password': [expect.any(String)] } },
    })
    expect(await done(call('GET', '/brokers/eu'), 200)).toMatchObject({
      name: 'EU',
      management: { url: 'https://broker.example:1943', maxConcurrentRequests: 9 },
    })
    const etag = (await call('GET', '/brokers/eu')).headers.etag
    await done(call('PATCH', '/brokers/eu', { management: { ...same, password: 'another one' } }), 200)
    expect(await storedPassword('eu')).toBe('another one')
    expect((await call('GET', '/brokers/eu')).headers.etag).not.toBe(etag)
    await done(call('PATCH', '/brokers/eu', { management: null }), 200)
    expect(await storedPassword('eu')).toBeNull()
  })

  it('are removed when nothing of registrations is on them any more', async () => {
    await done(call('POST', '/brokers', { id: 'eu', eventMeshId: 'mesh', management }), 201)
    await sql`insert into ledger (account_id, broker_id, kind, name, registration_id, origin)
      values (${api.accountId}, 'eu', 'queue', 'q', 'app-1', 'created')`.execute(api.db)
    const refused = await call('DELETE', '/brokers/eu')
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining('1 object') } })
    await sql`delete from ledger`.execute(api.db)
    await done(call('DELETE', '/brokers/eu'), 204)
    expect((await call('GET', '/brokers')).body).toMatchObject({ data: [] })
  })

  it('with a message VPN of another account are refused', async () => {
    await done(call('POST', '/brokers', { id: 'eu', management }), 201)
    const taken = await call('POST', '/brokers', { id: 'mine', management }, { token: other.token })
    expect(taken).toMatchObject({
      status: 400,
      body: { validationDetails: { management: [expect.stringContaining('in use')] } },
    })
    expect((await call('GET', '/brokers', undefined, { token: other.token })).body).toMatchObject({ data: [] })
  })
})

describe('a change that reaches brokers raises the registrations it touches, and asks for their reconciliation', () => {
  beforeEach(() => withRegistrations())

  it.each([
    ['management of a broker', 'PATCH', '/brokers/broker-1', { management: null }],
    ['the policy of a broker', 'PATCH', '/brokers/broker-1', { policy: { mode: 'observe-only' } }],
    ['brokers of a version', 'PATCH', '/products/orders/versions/1.0.0', { brokers: ['broker-2'] }],
    ['the state of a version', 'PATCH', '/products/orders/versions/1.0.0', { state: 'DEPRECATED' }],
    ['a document', 'PATCH', '/eventApis/orders-api/versions/1.0.0', { document: DOCUMENT }],
  ] as const)('%s', async (_what, method, path, body) => {
    await done(call(method, path, body), 200)
    expect(await generations()).toEqual(['app-1 2', 'app-2 2'])
    const enqueued = api.enqueued.flatMap(({ kind, what }) => (kind === 'pairs' ? [what] : []))
    expect(JSON.stringify(enqueued)).toContain('"registrationId":"app-1"')
  })

  it.each([
    ['a name', '/brokers/broker-1', { name: 'other' }],
    ['a description', '/products/orders/versions/1.0.0', { description: 'other' }],
    ['sharing', '/products/orders', { shared: false }],
    ['nothing', '/products/orders/versions/1.0.0', { state: 'RELEASED' }],
  ] as const)('but not %s', async (_what, path, body) => {
    await done(call('PATCH', path, body), 200)
    expect(await generations()).toEqual(['app-1 1', 'app-2 1'])
    expect(api.enqueued).toEqual([])
  })
})

describe('Event APIs', () => {
  beforeEach(() => importing({ products: [], eventApis: [] }))

  it.each([
    ['YAML text', DOCUMENT],
    ['JSON text', JSON.stringify({ asyncapi: '2.6.0', info: { title: 'Shipments', version: '1.0.0' }, channels: {} })],
    ['JSON', { asyncapi: '2.6.0', info: { title: 'Shipments', version: '1.0.0' }, channels: {} }],
  ])('take a document as %s', async (_what, document) => {
    const body = { id: 'shipments', version: '1.0.0', document, applicationDomainId: 'sales' }
    expect(await done(call('POST', '/eventApis', body), 201)).toMatchObject({ name: 'Shipments', viewpoint: 'client' })
    const stored = await api.call('GET', `${BASE}/eventApis/shipments/versions/1.0.0/document`)
    expect(stored).toMatchObject({ status: 200, body: { asyncapi: '2.6.0', info: { title: 'Shipments' } } })
  })

  it('read channels, keep the document of a change without one, and are removed', async () => {
    const body = { id: 'shipments', version: '1.0.0', document: DOCUMENT }
    expect(await done(call('POST', '/eventApis', body), 201)).toMatchObject({
      channels: [
        {
          name: 'shipments/{country}/sent',
          clientMaySubscribe: true,
          clientMayPublish: false,
          parameterEnums: { country: ['de', 'fr'] },
        },
      ],
    })
    expect((await call('POST', '/eventApis', body)).status).toBe(409)
    await done(call('PATCH', '/eventApis/shipments/versions/1.0.0', { displayName: 'Sent' }), 200)
    const provider = { document: DOCUMENT, viewpoint: 'provider' }
    expect(await done(call('PATCH', '/eventApis/shipments/versions/1.0.0', provider), 200)).toMatchObject({
      displayName: 'Sent',
      channels: [{ clientMaySubscribe: false, clientMayPublish: true }],
    })
    await done(call('DELETE', '/eventApis/shipments/versions/1.0.0'), 204)
    expect((await call('GET', '/eventApis')).body).toMatchObject({ data: [] })
  })

  it.each([
    ['no AsyncAPI', 'just: text', 'asyncapi'],
    ['version 3', 'asyncapi: 3.0.0\ninfo: { title: x, version: 1.0.0 }', '2.0 to 2.6'],
    ['broken YAML', 'asyncapi: [', 'line 1'],
    ['a reference to a file', `${DOCUMENT}\nx-more: { $ref: './more.yaml' }`, 'names a file'],
    ['a reference to an address', `${DOCUMENT}\nx-more: { $ref: 'https://e.example/a.yaml' }`, 'address'],
    [
      'a channel with a wildcard',
      'asyncapi: 2.6.0\ninfo: { title: x, version: 1.0.0 }\nchannels: { "a/>": {} }',
      'line',
    ],
  ])('refuse a document with %s, with every problem, and write nothing', async (_what, document, expected) => {
    const answer = await call('POST', '/eventApis', { id: 'shipments', version: '1.0.0', document })
    expect(answer.status).toBe(400)
    expect(Object.keys(answer.body.validationDetails ?? {})).toEqual(['document'])
    expect(answer.body.validationDetails?.document?.join('\n')).toContain(expected)
    expect((await call('GET', '/eventApis')).body).toMatchObject({ data: [] })
  })
})

describe('products and their versions', () => {
  const plan = { id: 'gold', name: 'Gold', messageDeliveryMode: 'guaranteed', maxMsgSpoolUsage: 50 }

  it('go from nothing to a visible product', async () => {
    await importing({ products: [] })
    await done(call('POST', '/products', { id: 'parcels', name: 'Parcels', applicationDomainId: 'sales' }), 201)
    const path = '/products/parcels/versions/1.0.0'
    const created = await done(
      call('POST', '/products/parcels/versions', {
        version: '1.0.0',
        eventApis: [{ id: 'orders-api', version: '1.0.0' }],
        plans: [plan],
        brokers: ['broker-1'],
      }),
      201,
    )
    expect(created).toMatchObject({
      state: 'DRAFT',
      public: false,
      displayName: 'Parcels',
      plans: [{ id: 'gold', queueType: 'combined', maximumTimeToLive: 86_400, unlimitedMsgSpoolUsage: false }],
    })
    await done(call('PATCH', '/products/parcels', { shared: true }), 200)
    await done(call('PATCH', path, { state: 'RELEASED', public: true }), 200)
    const listed = await api.call<{ data: { id: string }[] }>('GET', '/api/v2/apim/eventApiProducts')
    expect(listed.body.data).toMatchObject([{ id: 'parcels', version: '1.0.0', plans: [{ name: 'Gold' }] }])
    expect(await done(call('GET', '/products/parcels'), 200)).toMatchObject({
      versions: [{ version: '1.0.0', state: 'RELEASED', public: true }],
    })
    const row = await api.db.selectFrom('product_versions').selectAll().executeTakeFirstOrThrow()
    const { rows } = await sql<{ id: string }>`select id from users where name = 'admin'`.execute(api.db)
    expect([row.created_by, row.changed_by]).toEqual([rows[0]?.id, rows[0]?.id])
  })

  it('name who changed them: a user, or nobody after a portal file', async () => {
    await importing({ products: [product('orders', { versions: [productVersion()] })] })
    const { rows } = await sql<{ id: string }>`select id from users where name = 'admin'`.execute(api.db)
    const admin = rows[0]?.id
    const named = async () => {
      const { body } = await api.call<{ data: Record<string, unknown> }>('GET', '/api/v2/apim/eventApiProducts/orders')
      return [body.data.createdBy, body.data.changedBy]
    }
    expect(await named()).toEqual(['keymesh', 'keymesh'])
    await done(call('PATCH', '/products/orders', { description: 'Other words' }), 200)
    expect(await named()).toEqual(['keymesh', admin])
    await importing({ products: [product('orders', { description: 'From a file', versions: [productVersion()] })] })
    expect(await named()).toEqual(['keymesh', 'keymesh'])
    const attributes = '/api/v2/apim/eventApiProducts/orders/attributes'
    await api.call('POST', attributes, { body: { name: 'color', value: 'Blue' } })
    expect(await named()).toEqual(['keymesh', admin])
    await done(call('PATCH', '/products/orders/versions/1.0.0', { displayName: 'Orders!' }), 200)
    expect(await named()).toEqual(['keymesh', admin])
  })

  it('keep the attributes that a change names, and lose the others', async () => {
    const attributes = [
      { name: 'color', value: 'Blue' },
      { name: 'shape', value: 'Round' },
    ]
    await importing({ products: [product('orders', { attributes, versions: [productVersion()] })] })
    const ofProduct = async () => (await done(call('GET', '/products/orders'), 200)).attributes
    await done(call('PATCH', '/products/orders', { name: 'Renamed' }), 200)
    expect(await ofProduct()).toEqual(attributes)
    await done(call('PATCH', '/products/orders/versions/1.0.0', { displayName: 'Orders!' }), 200)
    expect(await ofProduct()).toEqual(attributes)
    const changed = [{ name: 'shape', value: 'Square' }]
    expect(await done(call('PATCH', '/products/orders', { attributes: changed }), 200)).toMatchObject({
      attributes: changed,
    })
    await done(call('PATCH', '/products/orders', { attributes: [] }), 200)
    expect(await ofProduct()).toEqual([])
  })

  it('go through their states forward only, one at a time', async () => {
    const versions = [productVersion({ state: 'DRAFT' })]
    await importing({ products: [product('orders', { versions })] })
    const to = async (state: string) => (await call('PATCH', '/products/orders/versions/1.0.0', { state })).status
    for (const state of ['DEPRECATED', 'RETIRED']) expect(await to(state)).toBe(409)
    expect(await to('RELEASED')).toBe(200)
    for (const state of ['DRAFT', 'RETIRED']) expect(await to(state)).toBe(409)
    expect(await to('DEPRECATED')).toBe(200)
    for (const state of ['DRAFT', 'RELEASED']) expect(await to(state)).toBe(409)
    expect(await to('RETIRED')).toBe(200)
    for (const state of ['DRAFT', 'RELEASED', 'DEPRECATED']) expect(await to(state)).toBe(409)
  })

  it('are removed when nobody may use them; a version that a request names stays as DELETED', async () => {
    await withRegistrations()
    const path = '/products/orders/versions/1.0.0'
    expect((await call('DELETE', path)).status).toBe(409)
    expect((await call('DELETE', '/products/orders')).status).toBe(409)
    expect((await call('DELETE', '/brokers/broker-1')).status).toBe(409)
    expect((await call('DELETE', '/eventApis/orders-api/versions/1.0.0')).status).toBe(409)
    await done(call('PATCH', path, { state: 'DEPRECATED' }), 200)
    await done(call('PATCH', path, { state: 'RETIRED' }), 200)
    await done(call('DELETE', path), 204)
    expect(await done(call('GET', path), 200)).toMatchObject({ state: 'DELETED', brokers: [], eventApis: [] })
    expect((await call('PATCH', path, { public: false })).status).toBe(409)
    await done(call('POST', '/products/orders/versions', { version: '2.0.0' }), 201)
    await done(call('DELETE', '/products/orders/versions/2.0.0'), 204)
    expect((await call('GET', '/products/orders/versions')).body).toMatchObject({ data: [{ version: '1.0.0' }] })
    await done(call('DELETE', '/eventApis/orders-api/versions/1.0.0'), 204)
  })

  it.each([
    ['a plan that a request has goes', { plans: [] }, 'request'],
    ['two plans of one name', { plans: [plan, { ...plan, id: 'gold2' }, { ...plan, id: 'gold' }] }, 'plans[1]'],
    ['an unknown broker', { brokers: ['broker-1', 'nowhere'] }, 'brokers[1]'],
    ['the same broker twice', { brokers: ['broker-1', 'broker-1'] }, 'brokers[1]'],
    ['an unknown version of an Event API', { eventApis: [{ id: 'orders-api', version: '9.9.9' }] }, 'eventApis[0]'],
    [
      'an unlimited queue that does not say so',
      { plans: [{ ...plan, maxMsgSpoolUsage: 0 }] },
      'plans[0].maxMsgSpoolUsage',
    ],
    ['an unknown state', { state: 'LIVE' }, 'state'],
    ['an unknown field', { sharing: true }, 'sharing'],
  ])('refuse %s and write nothing', async (_what, body, field) => {
    await withRegistrations()
    const before = await done(call('GET', '/products/orders/versions/1.0.0'), 200)
    const answer = await call('PATCH', '/products/orders/versions/1.0.0', body)
    expect(answer.status).toBe(400)
    expect(Object.keys(answer.body.validationDetails ?? {})).toContain(field)
    expect(await done(call('GET', '/products/orders/versions/1.0.0'), 200)).toEqual(before)
    expect(await generations()).toEqual(['app-1 1', 'app-2 1'])
  })
})

describe('decisions on access requests', () => {
  const manual = { products: [product('orders', { versions: [productVersion({ approvalType: 'manual' })] })] }
  const path = '/appRegistrations/app-1/accessRequests/request-1'

  it('approve, once', async () => {
    await withRegistrations(manual)
    const waiting = await call('GET', '/accessRequests?state=PENDING_APPROVAL')
    expect(waiting.body).toMatchObject({
      data: [
        { registrationId: 'app-1', accessRequestId: 'request-1', productName: 'orders' },
        { registrationId: 'app-2' },
      ],
      meta: { pagination: { count: 2 } },
    })
    expect(await done(call('POST', `${path}/approve`), 200)).toMatchObject({ state: 'APPROVED' })
    expect(await generations()).toEqual(['app-1 2', 'app-2 1'])
    expect(api.enqueued).toEqual([{ kind: 'registration', what: { accountId: 'default', registrationId: 'app-1' } }])
    await done(call('POST', `${path}/approve`), 200)
    expect(await generations()).toEqual(['app-1 2', 'app-2 1'])
    expect([400, 409, 422]).toContain((await call('POST', `${path}/decline`)).status)
    expect((await call('GET', '/accessRequests?registrationId=app-1')).body).toMatchObject({
      data: [{ state: 'APPROVED' }],
    })
  })

  it('decline, which touches no broker', async () => {
    await withRegistrations(manual)
    expect(await done(call('POST', `${path}/decline`), 200)).toMatchObject({ state: 'REJECTED' })
    expect(await generations()).toEqual(['app-1 1', 'app-2 1'])
    expect(api.enqueued).toEqual([])
  })

  it('are refused for what is not there and by an old ETag', async () => {
    await withRegistrations({
      ...manual,
      registrations: [registration('app-1', { accessRequests: [accessRequest()] })],
    })
    expect((await call('POST', '/appRegistrations/app-9/accessRequests/request-1/approve')).status).toBe(404)
    expect((await call('POST', '/appRegistrations/app-1/accessRequests/request-9/approve')).status).toBe(404)
    const headers = { 'if-match': '"old"' }
    expect((await call('POST', `${path}/approve`, undefined, { headers })).status).toBe(412)
    expect((await call('POST', `${path}/approve`, undefined, { token: other.token })).status).toBe(404)
  })
})

describe('what is refused', () => {
  it.each([
    ['/environments', { name: '' }, 'name'],
    ['/environments', { name: 'x', colour: 'red' }, 'colour'],
    ['/environments', { id: 'no good', name: 'x' }, 'id'],
    ['/eventMeshes', { name: 'x', environmentId: 'nowhere' }, 'environmentId'],
    ['/brokers', { eventMeshId: 'nowhere' }, 'eventMeshId'],
    ['/brokers', { management: { ...management, password: undefined } }, 'management.password'],
    ['/brokers', { management: { ...management, url: 'ftp://x' } }, 'management.url'],
    ['/brokers', { management: { ...management, caCertificate: 'x' } }, 'management.caCertificate'],
    [
      '/brokers',
      { messaging: { host: 'a', protocols: [{ protocol: 'gopher', port: 1 }] } },
      'messaging.protocols[0].protocol',
    ],
    ['/brokers', { messaging: { host: 'a', protocols: [], logins: { off: ['gopher'] } } }, 'messaging.logins.off[0]'],
    ['/brokers', { messaging: { host: 'a', protocols: [], logins: { off: 'some' } } }, 'messaging.logins.off'],
    ['/brokers', { policy: { disruptive: 'window' } }, 'policy.window'],
    ['/products', { applicationDomainId: 'nowhere' }, 'applicationDomainId'],
    [
      '/products',
      {
        attributes: [
          { name: 'colour', value: 'a' },
          { name: 'colour', value: 'b' },
        ],
      },
      'attributes[1].name',
    ],
    ['/eventApis', { version: '1.0.0' }, 'document'],
  ])('POST %s %o', async (path, body, field) => {
    const answer = await call('POST', path, body)
    expect(answer.status).toBe(400)
    expect(Object.keys(answer.body.validationDetails ?? {})).toEqual([field])
    expect((await call('GET', path)).body).toMatchObject({ data: [] })
  })

  it('objects that exist are not created again', async () => {
    await importing({})
    for (const [path, body] of [
      ['/environments', { id: 'prod', name: 'x' }],
      ['/applicationDomains', { id: 'sales', name: 'x' }],
      ['/products', { id: 'orders' }],
      ['/products/orders/versions', { version: '1.0.0' }],
    ] as const) {
      expect((await call('POST', path, body)).status).toBe(409)
    }
  })

  it.each([
    ['GET', '/brokers', 'services:get'],
    ['PATCH', '/brokers/broker-1', 'services:put'],
    ['POST', '/brokers', 'services:post'],
    ['GET', '/products', 'application_domain:get:*'],
    ['POST', '/products', 'apim_event_api_product:*:*'],
  ] as const)('%s %s without %s', async (method, path, missing) => {
    const user = await api.addUser({ name: `without-${method}${path.replaceAll('/', '-')}` })
    const permissions = PERMISSIONS.filter((each) => each !== missing)
    const token = await api.apiToken(user.id, api.accountId, permissions)
    const answer = await call(method, path, method === 'GET' ? undefined : {}, { token })
    expect(answer).toMatchObject({ status: 403, body: { message: expect.stringContaining(missing) } })
  })

  it('who is no administrator', async () => {
    const roles = ['service-management-editor', 'event-portal-manager'] as const
    const { apiToken, userToken } = await api.addUser({ name: 'grace', roles })
    for (const token of [apiToken, userToken]) {
      expect((await call('GET', '/environments', undefined, { token })).status).toBe(403)
    }
    expect((await call('GET', '/environments', undefined, { token: api.userToken })).status).toBe(200)
  })

  it('another account sees and changes only its own', async () => {
    await withRegistrations()
    const as = { token: other.token }
    for (const path of [
      '/environments/prod',
      '/brokers/broker-1',
      '/products/orders',
      '/products/orders/versions/1.0.0',
    ]) {
      expect((await call('GET', path, undefined, as)).status).toBe(404)
      expect((await call('PATCH', path, {}, as)).status).toBe(404)
      expect((await call('DELETE', path, undefined, as)).status).toBe(404)
    }
    expect((await call('GET', '/accessRequests', undefined, as)).body).toMatchObject({ data: [] })
    await done(call('POST', '/environments', { id: 'prod', name: 'Mine' }, as), 201)
    expect(await done(call('GET', '/environments/prod'), 200)).toEqual({ id: 'prod', name: 'Production' })
    await done(call('POST', '/eventMeshes', { id: 'mesh', name: 'Mine', environmentId: 'prod' }, as), 201)
    expect(await generations()).toEqual(['app-1 1', 'app-2 1'])
  })
})
