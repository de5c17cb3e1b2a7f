import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokerId } from '../../src/domain/ids.ts'
import { queueName } from '../../src/domain/names.ts'
import type { PortalProductVersion } from '../../src/domain/portal-file.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, catalogue, clientOf, Described, importFile, type Result } from './http-registrations-fixture.ts'
import { accessRequest, portalFile, product, productVersion, registration } from './import-fixtures.ts'

let api: TestApi
let call: Client
const described = new Described()
beforeAll(async () => {
  api = await withApi({ env: { KEYMESH_MAX_TOPICS: '20' } })
  await importFile(api, api.accountId, catalogue())
  call = clientOf(api, described)
})
afterAll(() => api[Symbol.asyncDispose]())

let registrations = 0
async function newRegistration(): Promise<string> {
  registrations += 1
  const id = `app-${registrations}`
  await call('POST', '', { registrationId: id, source: 'devportal', name: 'App' })
  return id
}

const ask = (id: string, accessRequestId: string, eventApiProductId = 'orders', planId = 'gold'): Promise<Result> =>
  call('POST', `/${id}/accessRequests`, { accessRequestId, eventApiProductId, planId })

async function generation(id: string): Promise<number> {
  const row = await api.db
    .selectFrom('registrations')
    .select('generation')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return row.generation
}

const pairs = async (id: string) =>
  await api.db
    .selectFrom('pairs')
    .select(['broker_id', 'wanted', 'generation'])
    .where('registration_id', '=', id)
    .orderBy('broker_id')
    .execute()

const setState = (id: string, state: string) =>
  api.db
    .updateTable('access_requests')
    .set({ state: state as 'LIVE' })
    .where('registration_id', '=', id)
    .execute()

const DECLARED = { name: 'declared', before: false, after: true }

describe('access requests', () => {
  it('are approved at once where the product says so, and the brokers are asked to follow', async () => {
    const id = await newRegistration()
    api.enqueued.length = 0
    const created = await ask(id, 'request-1')
    expect(created).toMatchObject({ status: 200, headers: { etag: expect.any(String) } })
    const name = queueName({ accountId: 'default', registrationId: id, accessRequestId: 'request-1' })
    expect(created.body.data).toEqual({
      accessRequestId: 'request-1',
      registrationId: id,
      eventApiProductId: 'orders',
      eventApiProductVersion: '1.0.0',
      planId: 'gold',
      state: 'APPROVED',
      filters: [],
      eventApiProductResourceInformation: { name, accessType: 'exclusive', maxTtl: 0, maxMsgSpoolUsage: 500 },
    })
    expect(await generation(id)).toBe(2)
    expect(await pairs(id)).toEqual([{ broker_id: 'broker1', wanted: true, generation: 2 }])
    expect(api.enqueued).toEqual([{ kind: 'registration', what: { accountId: 'default', registrationId: id } }])
    const read = await call('GET', `/${id}/accessRequests/request-1`)
    expect(read.body).toEqual(created.body)
    expect(read.headers.etag).toBe(created.headers.etag)
    expect((await call('GET', `/${id}/accessRequests`)).body.data).toEqual([created.body.data])
    expect((await call('GET', `/${id}`)).body.data.accessRequests).toEqual([created.body.data])

    expect((await call('DELETE', `/${id}/accessRequests/request-1`)).status).toBe(204)
    expect((await call('GET', `/${id}/accessRequests/request-1`)).status).toBe(404)
    expect(await pairs(id)).toEqual([{ broker_id: 'broker1', wanted: false, generation: 3 }])
  })

  it('name a queue for each Event API where the plan has them, and none where delivery is direct', async () => {
    const id = await newRegistration()
    const name = queueName({
      accountId: 'default',
      registrationId: id,
      accessRequestId: 'single',
      eventApiId: 'ordersapi',
    })
    expect((await ask(id, 'single', 'orders', 'silver')).body.data).toMatchObject({
      eventApiResourceInformation: [{ name, eventApiId: 'ordersapi' }],
    })
    const direct = (await ask(id, 'direct', 'orders', 'bronze')).body.data
    expect(Object.keys(direct).filter((key) => key.includes('Resource'))).toEqual([])
  })

  it('take the ids that gateways make of theirs and ours', async () => {
    const id = await newRegistration()
    const requestId = `2f6c1a52-9f0c-4f0d-8a59-0a5a4fd2c6f1_${'a'.repeat(11)}_${'b'.repeat(11)}`
    expect((await ask(id, requestId)).status).toBe(200)
    expect((await call('GET', `/${id}/accessRequests/${requestId}`)).status).toBe(200)
  })

  it('wait for the decision of an administrator where the product says so', async () => {
    const id = await newRegistration()
    expect((await ask(id, 'waiting', 'secret')).body.data).toMatchObject({ state: 'PENDING_APPROVAL' })
    expect(await generation(id)).toBe(1)
    const member = await api.addUser({
      name: `member-${id}`,
      roles: ['service-management-editor', 'event-portal-manager'],
    })
    const asMember = { token: member.apiToken }
    const path = `/${id}/accessRequests/waiting`
    expect((await call('PATCH', path, { state: 'APPROVED' }, asMember)).status).toBe(403)
    expect((await call('PATCH', path, { state: 'REJECTED' }, asMember)).status).toBe(403)
    expect((await call('PATCH', path, { state: 'REJECTED' })).body.data.state).toBe('REJECTED')
    expect((await call('PATCH', path, { state: 'PENDING_APPROVAL' }, asMember)).body.data.state).toBe(
      'PENDING_APPROVAL',
    )
    expect(await generation(id)).toBe(1)
    expect((await call('PATCH', path, { state: 'APPROVED' })).body.data).toMatchObject({
      state: 'APPROVED',
      eventApiProductResourceInformation: { name: expect.stringMatching(/^keymesh-/) },
    })
    expect(await generation(id)).toBe(2)
    expect(await pairs(id)).toMatchObject([{ broker_id: 'broker2', wanted: true }])
    expect((await call('PATCH', path, { state: 'REVOKED' }, asMember)).body.data.state).toBe('REVOKED')
    expect(await pairs(id)).toMatchObject([{ broker_id: 'broker2', wanted: false }])
  })

  /** Of an administrator; what is not listed is refused. */
  const legal: Readonly<Record<string, readonly string[]>> = {
    PENDING_APPROVAL: ['APPROVED', 'REJECTED', 'REVOKED'],
    REJECTED: ['APPROVED', 'PENDING_APPROVAL'],
    REVOKED: ['APPROVED', 'PENDING_APPROVAL'],
    APPROVED: ['REVOKED'],
    LIVE: ['REVOKED', 'APPROVED'],
    ERROR: ['REVOKED', 'APPROVED'],
  }
  const states = Object.keys(legal)
  it.each(states)('go from %s only where that is legal', async (from) => {
    const id = await newRegistration()
    await ask(id, 'request-1', 'orders')
    for (const to of states) {
      await setState(id, from)
      const before = await api.db.selectFrom('access_requests').selectAll().where('registration_id', '=', id).execute()
      const { status } = await call('PATCH', `/${id}/accessRequests/request-1`, { state: to })
      const allowed = to === from || (legal[from] ?? []).includes(to)
      expect([to, status]).toEqual([to, allowed ? 200 : 400])
      if (allowed && to !== from) await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'REVOKED' })
      else
        expect(
          await api.db.selectFrom('access_requests').selectAll().where('registration_id', '=', id).execute(),
        ).toEqual(before)
      await api.db
        .updateTable('access_requests')
        .set({ approved_at: new Date() })
        .where('registration_id', '=', id)
        .execute()
    }
  })

  it('say why they are in ERROR, until somebody does something about it', async () => {
    const id = await newRegistration()
    const created = await ask(id, 'request-1')
    expect(created.body.data).not.toHaveProperty('reason')
    await setState(id, 'ERROR')
    const reason = 'Broker Frankfurt: the plan deletes 60 objects.'
    await api.db.updateTable('access_requests').set({ reason }).where('registration_id', '=', id).execute()
    const inError = { state: 'ERROR', reason }
    expect((await call('GET', `/${id}/accessRequests/request-1`)).body.data).toMatchObject(inError)
    expect((await call('GET', `/${id}/accessRequests`)).body.data).toMatchObject([inError])
    expect((await call('GET', `/${id}`)).body.data.accessRequests).toMatchObject([inError])
    // An approval of what is approved changes nothing.
    expect((await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'APPROVED' })).body.data).toMatchObject(
      inError,
    )
    const revoked = await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'REVOKED' })
    expect(revoked.body.data).not.toHaveProperty('reason')
    expect(
      await api.db.selectFrom('access_requests').select('reason').where('registration_id', '=', id).execute(),
    ).toEqual([{ reason: null }])
  })

  it('that are withdrawn, and credentials that end, go before all other work of their brokers', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    await call('POST', `/${id}/credentials`, { name: 'leaked', secret: { consumerKey: `leaked-of-${id}` } })
    const pair = { accountId: 'default', registrationId: id, brokerId: 'broker1' }
    const revocation = [{ kind: 'pairs', what: { pairs: [pair], trigger: 'revocation' } }]
    api.enqueued.length = 0
    expect((await call('DELETE', `/${id}/credentials/leaked-of-${id}`)).status).toBe(204)
    expect(api.enqueued).toEqual(revocation)
    api.enqueued.length = 0
    await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'REVOKED' })
    expect(api.enqueued).toEqual(revocation)
    api.enqueued.length = 0
    await call('DELETE', `/${id}/accessRequests/request-1`)
    expect(api.enqueued).toEqual([])
  })

  it('that are over are shown as revoked and stay so', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    await api.db
      .updateTable('access_requests')
      .set({ expired_at: new Date(), expires_at: new Date() })
      .where('registration_id', '=', id)
      .execute()
    expect((await call('GET', `/${id}/accessRequests/request-1`)).body.data).toMatchObject({ state: 'REVOKED' })
    expect((await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'APPROVED' })).status).toBe(400)
  })

  it('keep their version while the product goes on, visible or not', async () => {
    const id = await newRegistration()
    const version = productVersion({ eventApis: [], brokers: [brokerId('broker1')] })
    const release = (...versions: readonly PortalProductVersion[]) =>
      importFile(
        api,
        api.accountId,
        portalFile({ brokers: [], eventApis: [], products: [product('moving', { versions })] }),
      )
    await release(version)
    expect((await ask(id, 'request-1', 'moving')).body.data).toMatchObject({ eventApiProductVersion: '1.0.0' })
    const older = { ...version, state: 'DEPRECATED' } as const
    await release(older, { ...version, version: '1.1.0' })
    expect((await ask(id, 'request-2', 'moving')).body.data).toMatchObject({ eventApiProductVersion: '1.1.0' })
    await release(older, { ...version, version: '1.1.0', public: false })
    expect((await ask(id, 'request-3', 'moving')).status).toBe(400)
    expect((await call('GET', `/${id}/accessRequests`)).body.data).toMatchObject([
      { accessRequestId: 'request-1', eventApiProductVersion: '1.0.0', state: 'APPROVED' },
      { accessRequestId: 'request-2', eventApiProductVersion: '1.1.0', state: 'APPROVED' },
    ])
  })

  it('are refused for what is not there, and for an id that is taken', async () => {
    const id = await newRegistration()
    expect(await ask(id, 'request-1', 'hidden')).toMatchObject({
      status: 400,
      body: { validationDetails: { eventApiProductId: [expect.any(String)] } },
    })
    expect(await ask(id, 'request-1', 'nowhere')).toMatchObject({ status: 400 })
    expect(await ask(id, 'request-1', 'orders', 'platinum')).toMatchObject({
      status: 400,
      body: { validationDetails: { planId: [expect.any(String)] } },
    })
    expect(await ask('nobody', 'request-1')).toMatchObject({ status: 404 })
    expect(await ask(id, 'x')).toMatchObject({
      status: 400,
      body: { validationDetails: { accessRequestId: [expect.any(String)] } },
    })
    expect(await generation(id)).toBe(1)
    const many = await Promise.all(Array.from({ length: 5 }, () => ask(id, 'request-1')))
    expect(many.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400])
    expect(await generation(id)).toBe(2)
  })

  it('are refused when their topics are more than a registration may have', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    const values = Array.from({ length: 11 }, (_, index) => `v${index}`)
    const refused = await call('POST', `/${id}/filters`, { name: 'orderId', values })
    expect(refused).toMatchObject({
      status: 400,
      body: { validationDetails: { values: [expect.stringContaining('22 topics')] } },
    })
    expect((await call('GET', `/${id}/filters`)).body.data).toEqual([])
    expect((await call('POST', `/${id}/filters`, { name: 'orderId', values: values.slice(0, 10) })).status).toBe(200)
  })

  it('are changed only by who read the newest', async () => {
    const id = await newRegistration()
    const { headers } = await ask(id, 'request-1')
    const old = { headers: { 'if-match': String(headers.etag) } }
    await call('POST', `/${id}/accessRequests/request-1/filters`, { name: 'orderId', values: ['A'] })
    expect((await call('PATCH', `/${id}/accessRequests/request-1`, { state: 'REVOKED' }, old)).status).toBe(412)
    expect((await call('DELETE', `/${id}/accessRequests/request-1`, undefined, old)).status).toBe(412)
  })

  it('are paged, sorted and filtered', async () => {
    const id = await newRegistration()
    await ask(id, 'c-request')
    await ask(id, 'a-request', 'secret')
    await ask(id, 'b-request', 'orders', 'silver')
    const idsOf = async (query: string) =>
      ((await call('GET', `/${id}/accessRequests${query}`)).body.data as unknown as { accessRequestId: string }[]).map(
        (each) => each.accessRequestId,
      )
    expect(await idsOf('?pageSize=2')).toEqual(['a-request', 'b-request'])
    expect(await idsOf('?sortFieldName=planId&sortDirection=desc')).toEqual(['b-request', 'c-request', 'a-request'])
    expect(await idsOf('?where=state==PENDING_APPROVAL')).toEqual(['a-request'])
    expect(await idsOf('?where=eventApiProductVersion%3E=1.0.0;planId==g*')).toEqual(['a-request', 'c-request'])
    expect((await call('GET', `/${id}/accessRequests?where=secret==1`)).status).toBe(400)
    expect((await call('GET', '/nobody/accessRequests')).status).toBe(404)
  })

  it('are filtered for a while and no longer, like registrations', async () => {
    const id = await newRegistration()
    const client = new pg.Client({ connectionString: api.connectionString })
    await client.connect()
    try {
      // What keeps a statement from ending, whatever it is.
      await client.query('begin; lock table access_requests in access exclusive mode')
      const lists = [`/${id}/accessRequests?where=planId==gold`, '?where=accessRequests.planId==gold']
      const answers = await Promise.all(lists.map((path) => call('GET', path)))
      const refused = {
        status: 400,
        body: { validationDetails: { where: [expect.stringContaining('takes longer than')] } },
      }
      expect(answers).toMatchObject([refused, refused])
    } finally {
      await client.end()
    }
  })

  it('are what a portal file of the same content finds', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    await call('POST', `/${id}/filters`, { name: 'region', values: ['EU'] })
    await call('POST', `/${id}/accessRequests/request-1/filters`, { name: 'orderId', values: ['A', 'B'] })
    const { data } = (await call('POST', `/${id}/credentials`, { name: 'main' })).body
    expect(data).toBeDefined()
    const file = portalFile({
      ...catalogue(),
      registrations: [
        registration(id, {
          name: 'App',
          source: 'devportal',
          filters: { region: ['EU'] },
          accessRequests: [accessRequest({ filters: { orderId: ['A', 'B'] } })],
        }),
      ],
    })
    const declared = { type: 'update', kind: 'registration', id: id, attributes: [DECLARED] }
    expect((await importFile(api, api.accountId, file)).changes).toEqual([declared])
    expect((await importFile(api, api.accountId, file)).changes).toEqual([])
    const rows = async () => ({
      registration: await api.db
        .selectFrom('registrations')
        .select(['revision', 'generation'])
        .where('id', '=', id)
        .execute(),
      requests: await api.db
        .selectFrom('access_requests')
        .select(['revision', 'state'])
        .where('registration_id', '=', id)
        .execute(),
    })
    const before = await rows()
    // Written by the file after all, the rows are the same.
    await api.db.updateTable('registrations').set({ name: 'Old' }).where('id', '=', id).execute()
    await api.db.updateTable('access_requests').set({ plan_id: 'silver' }).where('registration_id', '=', id).execute()
    expect((await importFile(api, api.accountId, file)).changes).toHaveLength(2)
    const after = await rows()
    expect(after.requests).toEqual(before.requests)
    expect(after.registration[0]?.revision).toBe(before.registration[0]?.revision)
  })
})

describe.each([
  ['a registration', ''],
  ['an access request', '/accessRequests/request-1'],
])('filters of %s', (_name, below) => {
  it('narrow topics, and the brokers are asked to follow', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    const filters = `/${id}${below}/filters`
    const created = await call('POST', filters, { name: 'orderId', values: ['A1', 'B*'] })
    expect(created).toMatchObject({ status: 200, body: { data: { name: 'orderId', values: ['A1', 'B*'] } } })
    expect(await generation(id)).toBe(3)
    expect((await call('GET', filters)).body.data).toEqual([created.body.data])
    const read = await call('GET', `${filters}/orderId`)
    expect(read.headers.etag).toBe(created.headers.etag)
    const same = await call('PATCH', `${filters}/orderId`, { values: ['A1', 'B*'] })
    expect(same.body).toEqual(created.body)
    expect(await generation(id)).toBe(3)
    expect((await call('PATCH', `${filters}/orderId`, { values: ['C'] })).body.data.values).toEqual(['C'])
    expect(await generation(id)).toBe(4)
    const old = { headers: { 'if-match': String(created.headers.etag) } }
    expect((await call('PATCH', `${filters}/orderId`, { values: ['D'] }, old)).status).toBe(412)
    expect((await call('DELETE', `${filters}/orderId`, undefined, old)).status).toBe(412)
    expect((await call('POST', filters, { name: 'orderId', values: ['D'] })).status).toBe(400)
    expect((await call('DELETE', `${filters}/orderId`)).status).toBe(204)
    expect((await call('GET', `${filters}/orderId`)).status).toBe(404)
    expect((await call('DELETE', `${filters}/orderId`)).status).toBe(404)
    expect(await generation(id)).toBe(5)
  })

  it.each(['a/b', '>', 'a>', '!a', 'a*b', '', 'x'.repeat(129), '\u0000', 'a\u0007'])(
    'refuse the value %j',
    async (value) => {
      const id = `values${below === '' ? '-1' : '-2'}`
      await call('POST', '', { registrationId: id, source: 'devportal', name: 'App' })
      await ask(id, 'request-1')
      const before = await generation(id)
      const refused = await call('POST', `/${id}${below}/filters`, { name: 'orderId', values: ['fine', value] })
      expect(refused.status).toBe(400)
      expect(Object.keys(refused.body.validationDetails ?? {}).join()).toMatch(/^values/)
      expect(await generation(id)).toBe(before)
    },
  )

  it('may have any name that a parameter has', async () => {
    const id = await newRegistration()
    await ask(id, 'request-1')
    for (const name of ['id', 'a b', 'ü/ß', '__proto__', 'constructor']) {
      expect((await call('POST', `/${id}${below}/filters`, { name, values: ['v'] })).status).toBe(200)
      const read = await call('GET', `/${id}${below}/filters/${encodeURIComponent(name)}`)
      expect(read).toMatchObject({ status: 200, body: { data: { name, values: ['v'] } } })
    }
    expect((await call('GET', `/${id}${below}/filters?pageSize=2`)).body.meta).toMatchObject({
      pagination: { count: 5 },
    })
    expect((await call('POST', `/${id}${below}/filters`, { name: '', values: ['v'] })).status).toBe(400)
    expect((await call('POST', `/${id}${below}/filters`, { name: 'none', values: [] })).status).toBe(400)
  })
})

describe('attributes of a registration', () => {
  it('are kept for integrations, and no broker hears of them', async () => {
    const id = await newRegistration()
    const attributes = `/${id}/attributes`
    const created = await call('POST', attributes, { name: 'cost.center', value: '' })
    expect(created).toMatchObject({ status: 200, body: { data: { name: 'cost.center', value: '' } } })
    expect((await call('POST', attributes, { name: 'cost.center', value: '1' })).status).toBe(400)
    expect((await call('PATCH', `${attributes}/cost.center`, { value: '42' })).body.data).toEqual({
      name: 'cost.center',
      value: '42',
    })
    expect((await call('PATCH', `${attributes}/cost.center`, {})).body.data.value).toBe('42')
    const old = { headers: { 'if-match': String(created.headers.etag) } }
    expect((await call('DELETE', `${attributes}/cost.center`, undefined, old)).status).toBe(412)
    await call('POST', attributes, { name: 'alpha', value: 'z' })
    const sorted = await call('GET', `${attributes}?sortFieldName=name`)
    expect(sorted.body.data).toEqual([
      { name: 'alpha', value: 'z' },
      { name: 'cost.center', value: '42' },
    ])
    expect((await call('DELETE', `${attributes}/cost.center`)).status).toBe(204)
    expect((await call('GET', `${attributes}/cost.center`)).status).toBe(404)
    expect((await call('POST', attributes, { name: 'abc', value: '' })).status).toBe(400)
    expect(await generation(id)).toBe(1)
  })
})
