import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountId, productId } from '../../src/domain/ids.ts'
import { type TestApi, type TestUser, withApi } from '../helpers/http.ts'
import { catalogue, importFile } from './http-registrations-fixture.ts'
import { product, registration, suppliedCredential } from './import-fixtures.ts'

const APIM = '/api/v2/apim'
const PORTAL = '/api/v2/portal'
const ORIGIN = 'https://apim.example'

let api: TestApi
let other: TestUser

const request = { accessRequestId: 'request-2', eventApiProductId: 'orders', planId: 'gold' }
const CLIENT = registration('app-1', { credentials: [suppliedCredential('main', 'key-of-app-1', 'secret-of-app-1')] })

beforeAll(async () => {
  api = await withApi()
  other = await api.addUser({ name: 'eve', account: 'other' })
  await importFile(api, api.accountId, { ...catalogue(), registrations: [CLIENT] })
  await importFile(api, accountId('other'), { ...catalogue('other-'), registrations: [CLIENT] })
  await sql`insert into followed_catalogues (account_id, origin, followed_since, unmanaged_brokers)
    values ('default', ${ORIGIN}, now(), '[{"id": "broker9", "name": "Nine"}]')`.execute(api.db)
})
afterAll(() => api[Symbol.asyncDispose]())

type Write = readonly [sentence: string, method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object | null]
const WRITES: readonly Write[] = [
  [
    'a new registration',
    'POST',
    `${APIM}/appRegistrations`,
    { registrationId: 'app-2', source: 'portal', name: 'Two' },
  ],
  ['a registration', 'PATCH', `${APIM}/appRegistrations/app-1`, { name: 'One' }],
  ['the end of a registration', 'DELETE', `${APIM}/appRegistrations/app-1`, null],
  ['new credentials', 'POST', `${APIM}/appRegistrations/app-1/credentials`, { name: 'more' }],
  ['credentials', 'PATCH', `${APIM}/appRegistrations/app-1/credentials/key-of-app-1`, { name: 'mine' }],
  ['the end of credentials', 'DELETE', `${APIM}/appRegistrations/app-1/credentials/key-of-app-1`, null],
  ['a new access request', 'POST', `${APIM}/appRegistrations/app-1/accessRequests`, request],
  ['an access request', 'PATCH', `${APIM}/appRegistrations/app-1/accessRequests/request-1`, { state: 'REVOKED' }],
  ['the end of an access request', 'DELETE', `${APIM}/appRegistrations/app-1/accessRequests/request-1`, null],
  ['a filter', 'POST', `${APIM}/appRegistrations/app-1/filters`, { name: 'region', values: ['EU'] }],
  [
    'an attribute of a registration',
    'POST',
    `${APIM}/appRegistrations/app-1/attributes`,
    { name: 'colour', value: 'red' },
  ],
  [
    'a webhook',
    'POST',
    `${APIM}/appRegistrations/app-1/webhooks`,
    { name: 'hook', method: 'POST', mode: 'serial', uri: 'https://hook.example/' },
  ],
  ['an attribute of a product', 'POST', `${APIM}/eventApiProducts/orders/attributes`, { name: 'colour', value: 'red' }],
  ['a new product', 'POST', `${PORTAL}/products`, { id: 'bookings' }],
  ['a product', 'PATCH', `${PORTAL}/products/orders`, { name: 'Orders' }],
  ['a new application domain', 'POST', `${PORTAL}/applicationDomains`, { id: 'traffic', name: 'Traffic' }],
]

describe('an account that follows the catalogue of another service', () => {
  it.each<Write>(WRITES)('does not change %s', async (_sentence, method, path, body) => {
    const answer = await api.call<{ message: string }>(method, path, body === null ? {} : { body })
    expect(answer).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining(`The account follows the catalogue of ${ORIGIN}`) },
    })
  })

  it.each<Write>(WRITES)('does not keep another account from changing %s', async (_sentence, method, path, body) => {
    const answer = await api.call(method, path, { token: other.apiToken, ...(body === null ? {} : { body }) })
    expect(answer.status).not.toBe(409)
    expect([200, 201, 204, 404]).toContain(answer.status)
  })

  it.each([`${APIM}/eventApiProducts`, `${APIM}/appRegistrations/app-1`, `${APIM}/gateways`, `${PORTAL}/products`])(
    'shows %s',
    async (path) => {
      expect(await api.call('GET', path)).toMatchObject({ status: 200 })
    },
  )

  it('changes brokers, event meshes and environments', async () => {
    expect(await api.call('POST', `${PORTAL}/environments`, { body: { id: 'test', name: 'Test' } })).toMatchObject({
      status: 201,
    })
    expect(await api.call('PATCH', `${PORTAL}/brokers/broker1`, { body: { name: 'One' } })).toMatchObject({
      status: 200,
    })
    expect(await api.call('DELETE', `${PORTAL}/environments/test`)).toMatchObject({ status: 204 })
  })

  it.each([
    ['products', { ...catalogue(), products: [product(productId('more'))], eventApis: [] }],
    ['registrations', { ...catalogue(), products: [], eventApis: [], registrations: [CLIENT] }],
    ['application domains', { ...catalogue(), products: [], eventApis: [] }],
  ])('takes no file with %s', async (_what, file) => {
    await expect(importFile(api, api.accountId, file)).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('takes a file with brokers, and prunes nothing that comes from there', async () => {
    const brokers = { ...catalogue(), products: [], eventApis: [], applicationDomains: [] }
    const { changes } = await importFile(api, api.accountId, brokers, { prune: true })
    // It had another name above.
    expect(changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)).toEqual(['update broker broker1'])
  })

  it('says how it stands, to its own people', async () => {
    const path = '/api/v2/operations/remoteCatalogue'
    expect(await api.call('GET', path)).toMatchObject({
      status: 200,
      body: { data: { origin: ORIGIN, error: null, unmanagedBrokers: [{ id: 'broker9', name: 'Nine' }] } },
    })
    expect(await api.call('GET', path, { token: other.apiToken })).toMatchObject({ status: 404 })
  })
})
