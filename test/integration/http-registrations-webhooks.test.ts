import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newKeyRing } from '../../src/secrets/key-ring.ts'
import { createSealer } from '../../src/secrets/seal.ts'
import { createSealedRows } from '../../src/store/sealed-rows.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, catalogue, clientOf, Described, importFile } from './http-registrations-fixture.ts'
import { portalFile, registration } from './import-fixtures.ts'

let api: TestApi
let call: Client
beforeAll(async () => {
  api = await withApi()
  await importFile(api, api.accountId, catalogue())
  call = clientOf(api, new Described())
  await call('POST', '', { registrationId: 'app-1', source: 'devportal', name: 'App' })
})
afterAll(() => api[Symbol.asyncDispose]())

const WEBHOOKS = '/app-1/webhooks'
const HOOK = {
  uri: 'https://hooks.example.org/orders',
  name: 'orders',
  method: 'POST',
  mode: 'serial',
  gatewayMessagingServiceIds: ['broker1'],
  authentication: { basicAuth: { username: 'keymesh', password: 'webhook-password' } },
  tlsOptions: { tlsTrustedCommonNames: ['*.example.org'] },
  requestHeaders: [{ headerName: 'x-tenant', headerValue: 'tenant-of-webhook' }],
  appendTopicToUrl: true,
}

describe('webhooks', () => {
  it('are created, listed, read, changed and deleted', async () => {
    const created = await call('POST', WEBHOOKS, HOOK)
    expect(created).toMatchObject({ status: 201, body: { data: HOOK } })
    expect((await call('GET', WEBHOOKS)).body.data).toEqual([{ uri: HOOK.uri, name: 'orders' }])
    expect((await call('GET', `${WEBHOOKS}/orders`)).body.data).toEqual(HOOK)
    expect((await call('GET', '/app-1')).body.data.webhooks).toEqual([HOOK])
    const authentication = { headerAuth: { headerName: 'authorization', headerValue: 'Bearer webhook-token' } }
    const changed = await call('PATCH', `${WEBHOOKS}/orders`, { uri: HOOK.uri, method: 'PUT', authentication })
    expect(changed).toMatchObject({ status: 200, body: { ...HOOK, method: 'PUT', authentication } })
    expect((await call('PATCH', `${WEBHOOKS}/orders`, { name: 'renamed' })).status).toBe(200)
    expect((await call('GET', `${WEBHOOKS}/orders`)).status).toBe(404)
    const old = { headers: { 'if-match': String(changed.headers.etag) } }
    expect((await call('PATCH', `${WEBHOOKS}/renamed`, { name: 'other' }, old)).status).toBe(412)
    expect((await call('DELETE', `${WEBHOOKS}/renamed`, undefined, old)).status).toBe(412)
    expect((await call('DELETE', `${WEBHOOKS}/renamed`)).status).toBe(204)
    expect((await call('DELETE', `${WEBHOOKS}/renamed`)).status).toBe(404)
    expect((await call('GET', WEBHOOKS)).body.data).toEqual([])
  })

  it('get a name when they have none, by which they are found', async () => {
    const created = await call('POST', WEBHOOKS, { uri: 'http://hooks.example.org', method: 'POST' })
    const { name } = created.body.data
    expect(created.body.data).toEqual({ uri: 'http://hooks.example.org', method: 'POST', mode: 'parallel', name })
    expect((await call('GET', `${WEBHOOKS}/${String(name)}`)).body.data).toEqual(created.body.data)
    await call('DELETE', `${WEBHOOKS}/${String(name)}`)
  })

  const wrong: Readonly<Record<string, readonly [body: object, field: string]>> = {
    'without an address': [{ method: 'POST' }, 'uri'],
    'without a method': [{ uri: HOOK.uri }, 'method'],
    'with another scheme': [{ ...HOOK, uri: 'ftp://hooks.example.org' }, 'uri'],
    'with a password in the address': [{ ...HOOK, uri: 'https://a:b@hooks.example.org' }, 'uri'],
    'with an unknown broker': [
      { ...HOOK, gatewayMessagingServiceIds: ['broker1', 'broker9'] },
      'gatewayMessagingServiceIds[1]',
    ],
    'with two ways to authenticate': [
      { ...HOOK, authentication: { ...HOOK.authentication, headerAuth: { headerName: 'a', headerValue: 'b' } } },
      'authentication',
    ],
    'with a line break in a header': [
      { ...HOOK, requestHeaders: [{ headerName: 'x-tenant', headerValue: 'a\r\nx-admin: yes' }] },
      'requestHeaders[0].headerValue',
    ],
    'with a header that has no name of one': [
      { ...HOOK, requestHeaders: [{ headerName: 'x tenant:', headerValue: 'a' }] },
      'requestHeaders[0].headerName',
    ],
    'with an unknown field': [{ ...HOOK, retries: 3 }, 'retries'],
  }
  it.each(Object.entries(wrong))('are refused %s', async (_name, [body, field]) => {
    const refused = await call('POST', WEBHOOKS, body)
    expect(refused).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
    expect(await api.db.selectFrom('webhooks').selectAll().execute()).toEqual([])
  })

  it('have a name of their own in the registration', async () => {
    await call('POST', WEBHOOKS, HOOK)
    const twice = await call('POST', WEBHOOKS, HOOK)
    expect(twice).toMatchObject({
      status: 400,
      body: { validationDetails: { name: [expect.stringContaining('not unique')] } },
    })
    await call('DELETE', `${WEBHOOKS}/orders`)
  })

  it('are sealed where they are stored, and follow the rotation of keys', async () => {
    await call('POST', WEBHOOKS, HOOK)
    const [row] = await api.db.selectFrom('webhooks').selectAll().execute()
    expect(JSON.stringify(row)).not.toMatch(/webhook-password|tenant-of-webhook/)
    const rows = createSealedRows(api.db)
    const sealed = (await rows.next(null, 100)).find(({ place }) => place.table === 'webhooks')
    if (sealed === undefined) throw new Error('the webhook is not among the sealed rows')
    const newSealer = createSealer(newKeyRing())
    const opened = await api.dependencies.sealer.open(sealed.sealed, sealed.place)
    const resealed = await newSealer.seal(opened, sealed.place)
    expect(await rows.replace(sealed, 'another one', resealed)).toBe(false)
    expect(await rows.replace(sealed, sealed.sealed, resealed)).toBe(true)
    const [after] = await api.db.selectFrom('webhooks').select('secrets').execute()
    expect(after?.secrets).toBe(resealed)
    await rows.replace({ ...sealed, sealed: resealed }, resealed, sealed.sealed)
    await call('DELETE', `${WEBHOOKS}/orders`)
  })

  it('are gone with their registration, whoever deletes it', async () => {
    const file = portalFile({
      ...catalogue(),
      registrations: [registration('by-file', { accessRequests: [], credentials: [] })],
    })
    await importFile(api, api.accountId, file)
    await call('POST', '/by-file/webhooks', HOOK)
    await importFile(api, api.accountId, { ...file, registrations: [] }, { prune: true, confirmedDeletions: 1 })
    expect((await call('GET', '/by-file')).status).toBe(404)
    await importFile(api, api.accountId, file)
    expect((await call('GET', '/by-file/webhooks')).body.data).toEqual([])
  })

  it('raise no generation, as no broker has them yet', async () => {
    const before = await api.db.selectFrom('registrations').select('generation').where('id', '=', 'by-file').execute()
    await call('POST', '/by-file/webhooks', HOOK)
    expect(await api.db.selectFrom('registrations').select('generation').where('id', '=', 'by-file').execute()).toEqual(
      before,
    )
  })
})
