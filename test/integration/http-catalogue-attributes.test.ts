import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import {
  catalogue,
  describedCalls,
  GATEWAYS,
  importCatalogue,
  type ListBody,
  PRODUCTS,
  version,
  visible,
} from './http-catalogue-fixtures.ts'
import { testSealer } from './import-fixtures.ts'

let api: TestApi
const { call, idsOf, problems, isDescribed } = describedCalls(() => api)
const ATTRIBUTES = `${PRODUCTS}/orders/attributes`

interface Attribute {
  readonly name: string
  readonly value: string
}
const stored = async (): Promise<readonly Attribute[]> =>
  (await call<ListBody<Attribute>>('GET', `${ATTRIBUTES}?pageSize=100`)).body.data
const create = (name: string, value: string) =>
  call<{ data: Attribute; message: string }>('POST', ATTRIBUTES, { body: { name, value } })

beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('attributes', () => {
  beforeEach(() => importCatalogue(api.db, catalogue()))

  it('are created, read, changed and deleted', async () => {
    const created = await create('color', 'Blue')
    expect([created.status, created.body]).toEqual([200, { data: { name: 'color', value: 'Blue' }, meta: {} }])
    const read = await call('GET', `${ATTRIBUTES}/color`)
    expect([read.body, read.headers.etag]).toEqual([created.body, created.headers.etag])
    expect(await idsOf('?where=(attributes.name==color;attributes.value==Bl*)')).toEqual(['orders'])
    const changed = await call('PATCH', `${ATTRIBUTES}/color`, { body: { value: '' } })
    expect([changed.status, changed.body]).toEqual([200, { data: { name: 'color', value: '' }, meta: {} }])
    expect(await idsOf('?where=(attributes.name==color;attributes.value==Bl*)')).toEqual([])
    expect((await call('PATCH', `${ATTRIBUTES}/color`, { body: {} })).body).toEqual(changed.body)
    const deleted = await call('DELETE', `${ATTRIBUTES}/color`)
    expect([deleted.status, deleted.body]).toEqual([204, null])
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      const answer = await call(method, `${ATTRIBUTES}/color`, method === 'PATCH' ? { body: { value: 'x' } } : {})
      expect([method, answer.status]).toEqual([method, 404])
    }
  })

  it('are listed in pages and sorted', async () => {
    for (const [name, value] of [
      ['name-b', '1'],
      ['name-c', '3'],
      ['name-a', '2'],
    ] as const)
      await create(name, value)
    const values = async (query: string) => {
      const { body } = await call<ListBody<Attribute>>('GET', `${ATTRIBUTES}${query}`)
      return [body.data.map(({ value }) => value).join(''), body.meta.pagination.count, body.meta.pagination.nextPage]
    }
    expect(await values('')).toEqual(['132', 3, null])
    expect(await values('?sortFieldName=name')).toEqual(['213', 3, null])
    expect(await values('?sortFieldName=value&sortDirection=desc&pageSize=2')).toEqual(['32', 3, 2])
  })

  it('stay when a new version is released, whether or not the file names attributes', async () => {
    await create('color', 'Blue')
    const dependencies = { db: api.db, sealer: testSealer(), random: cryptoRandom, nowMs: Date.now }
    const accountId = await ensureAccount(api.db, 'default')
    const versions = [version(), version({ version: '2.0.0' })]
    await importPortalFile(dependencies, accountId, catalogue({ products: [visible('orders', { versions })] }))
    expect((await call<{ data: { version: string } }>('GET', `${PRODUCTS}/orders`)).body.data.version).toBe('2.0.0')
    expect(await stored()).toEqual([{ name: 'color', value: 'Blue' }])
    const declared = visible('orders', { versions, attributes: [{ name: 'team', value: 'sales' }] })
    await importPortalFile(dependencies, accountId, catalogue({ products: [declared] }))
    expect(await stored()).toEqual([
      { name: 'color', value: 'Blue' },
      { name: 'team', value: 'sales' },
    ])
    const again = await importPortalFile(dependencies, accountId, catalogue({ products: [declared] }))
    expect(again.changes).toEqual([])
  })

  it('have unique names', async () => {
    await create('color', 'Blue')
    const second = await create('color', 'Red')
    expect(second).toMatchObject({
      status: 400,
      body: { validationDetails: { name: ['is not unique: the Event API Product has an attribute of this name'] } },
    })
    expect(await stored()).toEqual([{ name: 'color', value: 'Blue' }])
  })

  it('are at most 256', async () => {
    const attributes = Array.from({ length: 255 }, (_, index) => ({ name: `name${index}`, value: '' }))
    await importCatalogue(api.db, catalogue({ products: [visible('orders', { attributes })] }))
    expect([(await create('last', '')).status, (await create('more', '')).status]).toEqual([200, 400])
  })

  it('are not lost when many are created at the same time', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `name-${index}`)
    const answers = await Promise.all(names.flatMap((name) => [create(name, '1'), create(name, '2')]))
    expect(answers.map(({ status }) => status).sort()).toEqual([...names.map(() => 200), ...names.map(() => 400)])
    expect((await stored()).map(({ name }) => name).sort()).toEqual([...names].sort())
  })

  it('are changed and deleted only as they were read', async () => {
    const etag = String((await create('color', 'Blue')).headers.etag)
    const change = (value: string, tag: string) =>
      call('PATCH', `${ATTRIBUTES}/color`, { body: { value }, headers: { 'if-match': tag } })
    const first = await change('Red', etag)
    expect([first.status, (await change('Green', etag)).status]).toEqual([200, 412])
    const remove = (tag: string) => call('DELETE', `${ATTRIBUTES}/color`, { headers: { 'if-match': tag } })
    expect((await remove(etag)).status).toBe(412)
    expect(await stored()).toEqual([{ name: 'color', value: 'Red' }])
    expect((await remove(String(first.headers.etag))).status).toBe(204)
  })

  it.each([
    ['a name of three characters', { name: 'abc', value: 'x' }, ['name']],
    ['a name with a blank', { name: 'the name', value: 'x' }, ['name']],
    ['a long name', { name: 'x'.repeat(129), value: 'x' }, ['name']],
    ['no name', { value: 'x' }, ['name']],
    ['no value', { name: 'color' }, ['value']],
    ['a number', { name: 'color', value: 1 }, ['value']],
    ['two lines', { name: 'color', value: 'a\nb' }, ['value']],
    ['a long value', { name: 'color', value: 'x'.repeat(10_001) }, ['value']],
    ['a NUL', { name: 'color', value: 'a\u0000' }, ['value']],
    ['half a character', { name: 'color', value: 'a\ud800' }, ['value']],
    ['an unknown field', { name: 'color', value: 'x', unit: 'x' }, ['unit']],
    ['a list', [], null],
  ])('are refused with %s, and nothing is written', async (_what, body, fields) => {
    const answer = await call<{ validationDetails: object }>('POST', ATTRIBUTES, { body })
    expect(answer.status).toBe(400)
    if (fields !== null) expect(Object.keys(answer.body.validationDetails)).toEqual(fields)
    expect(await stored()).toEqual([])
  })
})

describe('every call of the catalogue', () => {
  const calls = [
    ['GET', PRODUCTS],
    ['GET', `${PRODUCTS}/orders`],
    ['GET', `${PRODUCTS}/orders/history`],
    ['GET', `${PRODUCTS}/orders/history/1.0.0`],
    ['GET', `${PRODUCTS}/orders/plans`],
    ['GET', `${PRODUCTS}/orders/plans/gold`],
    ['GET', `${PRODUCTS}/orders/plans/gold/eventApis`],
    ['GET', `${PRODUCTS}/orders/plans/gold/eventApis/ordersApi`],
    ['GET', ATTRIBUTES],
    ['GET', `${ATTRIBUTES}/color`],
    ['POST', ATTRIBUTES],
    ['PATCH', `${ATTRIBUTES}/color`],
    ['DELETE', `${ATTRIBUTES}/color`],
    ['GET', GATEWAYS],
    ['GET', `${GATEWAYS}/broker1`],
  ] as const
  const needed = [
    'apim_event_api_product:*:*',
    'application_domain:get:*',
    'messaging_service:read',
    'modeled_event_mesh:get:*',
    'event_designer:access',
  ] as const
  const tokens = new Map<string, string>()

  beforeAll(async () => {
    const attributes = [{ name: 'color', value: 'Blue' }]
    await importCatalogue(api.db, catalogue({ products: [visible('orders', { attributes })] }))
    const { id } = await api.addUser({ name: 'limited' })
    for (const permission of needed) {
      const others = PERMISSIONS.filter((each) => each !== permission)
      tokens.set(permission, await api.apiToken(id, api.accountId, others))
    }
    tokens.set('just enough', await api.apiToken(id, api.accountId, needed))
  })

  it.each(calls)('%s %s needs its permissions, each by name', async (method, path) => {
    const body = method === 'POST' ? { name: 'taste', value: '' } : method === 'PATCH' ? { value: '' } : undefined
    for (const permission of needed) {
      const answer = await call<{ message: string }>(method, path, { token: tokens.get(permission) ?? '', body })
      expect([answer.status, answer.body.message]).toEqual([403, `The API token lacks the permission ${permission}.`])
    }
    expect((await call(method, path, { token: null, body })).status).toBe(401)
    expect((await call(method, path, { token: api.userToken, body })).status).toBe(403)
    const { status } = await call(method, path, { token: tokens.get('just enough') ?? '', body })
    expect(status).toBe(method === 'DELETE' ? 204 : 200)
  })
})

// The description is in ../shared/spec, which not every checkout has.
describe.skipIf(!isDescribed)('all answers above', () => {
  it('are as the description of the API says', () => {
    expect([...new Set(problems)]).toEqual([])
  })
})
