import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountId } from '../../src/domain/ids.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, catalogue, clientOf, Described, importFile } from '../integration/http-registrations-fixture.ts'

let api: TestApi
const described = new Described()
beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

// Few ids, so that the accounts meet.
const registration = fc.constantFrom('app-1', 'app-1', 'app-2')
const consumerKey = fc.constantFrom('shared-key-1', 'shared-key-2')
const request = fc.constantFrom('request-1', 'request-2')
const product = fc.constantFrom('orders', 'secret', 'hidden')
const value = fc.constantFrom('EU', 'US', 'X*')

const call = (method: Call['method'], path: string, body?: unknown): Call => ({
  method,
  path,
  ...(body === undefined ? {} : { body }),
})

const anyCall: fc.Arbitrary<Call> = fc.oneof(
  registration.map((id) => call('POST', '', { registrationId: id, source: 'portal', name: 'App' })),
  registration.map((id) => call('PATCH', `/${id}`, { name: 'Other' })),
  fc.constant(call('DELETE', '/app-2')),
  registration.map((id) => call('GET', `/${id}`)),
  fc.constant(call('GET', '')),
  fc.tuple(registration, consumerKey).map(([id, key]) =>
    call('POST', `/${id}/credentials`, {
      name: key,
      secret: { consumerKey: key, consumerSecret: `secret-of-${key}` },
    }),
  ),
  fc.tuple(registration, consumerKey).map(([id, key]) => call('GET', `/${id}/credentials/${key}`)),
  fc
    .tuple(registration, consumerKey)
    .map(([id, key]) =>
      call('PATCH', `/${id}/credentials/${key}`, { secret: { consumerKey: key, consumerSecret: 'another-secret' } }),
    ),
  fc.tuple(registration, consumerKey).map(([id, key]) => call('DELETE', `/${id}/credentials/${key}`)),
  fc
    .tuple(registration, request, product)
    .map(([id, accessRequestId, eventApiProductId]) =>
      call('POST', `/${id}/accessRequests`, { accessRequestId, eventApiProductId, planId: 'gold' }),
    ),
  fc
    .tuple(registration, request, fc.constantFrom('APPROVED', 'REVOKED'))
    .map(([id, requestId, state]) => call('PATCH', `/${id}/accessRequests/${requestId}`, { state })),
  fc.tuple(registration, request).map(([id, requestId]) => call('DELETE', `/${id}/accessRequests/${requestId}`)),
  fc
    .tuple(registration, request, value)
    .map(([id, requestId, each]) =>
      call('POST', `/${id}/accessRequests/${requestId}/filters`, { name: 'region', values: [each] }),
    ),
  fc
    .tuple(registration, value)
    .map(([id, each]) => call('POST', `/${id}/filters`, { name: 'orderId', values: [each] })),
  registration.map((id) => call('DELETE', `/${id}/filters/orderId`)),
  fc.tuple(registration, value).map(([id, each]) => call('POST', `/${id}/attributes`, { name: 'color', value: each })),
  registration.map((id) =>
    call('POST', `/${id}/webhooks`, { name: 'hook', uri: 'https://hooks.example.org', method: 'POST' }),
  ),
  registration.map((id) => call('DELETE', `/${id}/webhooks/hook`)),
)

/** Each account begins with it, so that most calls find something. */
const NEW = { registrationId: 'app-1', source: 'portal', name: 'App' }

let runs = 0
let accounts = 0
/** A fresh account with the same catalogue. */
async function newAccount(): Promise<{ readonly name: string; readonly client: Client }> {
  accounts += 1
  const name = `walled${accounts}`
  const { apiToken } = await api.addUser({ name: `user-of-${name}`, account: name })
  const { id } = await api.db.selectFrom('accounts').select('id').where('name', '=', name).executeTakeFirstOrThrow()
  await importFile(api, accountId(id), catalogue(`${name}-`))
  return { name: id, client: clientOf(api, described, apiToken) }
}

/** What depends on nothing but the account's own calls: no times, and no queue names, which hold the account. */
function plain(answer: { readonly status: number; readonly body: unknown }, account: string): unknown {
  const text = JSON.stringify(answer.body ?? null)
    .replaceAll(/"issuedAt":\d+/g, '"issuedAt":0')
    .replaceAll(/keymesh-[a-z2-7]{26}/g, 'keymesh-queue')
    .replaceAll(/"errorId":"[^"]+"/g, '"errorId":""')
    .replaceAll(`${account}-`, '')
  return { status: answer.status, body: JSON.parse(text) as unknown }
}

const TABLES = ['registrations', 'access_requests', 'credentials', 'pairs', 'webhooks'] as const

async function rowsOf(account: string): Promise<string> {
  const rows = await Promise.all(
    TABLES.map((table) => api.db.selectFrom(table).selectAll().where('account_id', '=', account).execute()),
  )
  return JSON.stringify(rows.map((each) => each.map((row) => JSON.stringify(row)).sort()))
}

async function run(client: Client, account: string, { method, path, body }: Call): Promise<unknown> {
  return plain(await client(method, path, body), account)
}

describe('two accounts with the same ids, names and keys', () => {
  it('never see or change each other', async () => {
    const calls = fc.array(fc.tuple(fc.boolean(), anyCall), { minLength: 16, maxLength: 32 })
    await fc.assert(
      fc.asyncProperty(calls, async (drawn) => {
        // Keys that no run before has left behind: they would hide that the accounts meet.
        runs += 1
        const mixed = JSON.parse(JSON.stringify(drawn).replaceAll('shared-key', `key-of-run-${runs}`)) as typeof drawn
        const [first, second, alone] = [await newAccount(), await newAccount(), await newAccount()]
        for (const { client } of [first, second, alone]) await client('POST', '', NEW)
        const answers: unknown[] = []
        for (const [isFirst, each] of mixed) {
          const [caller, other] = isFirst ? [first, second] : [second, first]
          const before = await rowsOf(other.name)
          const answer = await run(caller.client, caller.name, each)
          expect(await rowsOf(other.name)).toBe(before)
          if (isFirst) answers.push(answer)
        }
        const expected: unknown[] = []
        for (const [isFirst, each] of mixed) if (isFirst) expected.push(await run(alone.client, alone.name, each))
        expect(answers).toEqual(expected)
      }),
      { numRuns: 5 },
    )
  }, 120_000)

  it('gives a token of the one nothing of the other, whatever is asked for', async () => {
    const [owner, stranger] = [await newAccount(), await newAccount()]
    const setUp = [
      call('POST', '', { registrationId: 'app-1', source: 'portal', name: 'App' }),
      call('POST', '/app-1/credentials', { name: 'main', secret: { consumerKey: 'only-key-1' } }),
      call('POST', '/app-1/accessRequests', {
        accessRequestId: 'request-1',
        eventApiProductId: 'orders',
        planId: 'gold',
      }),
      call('POST', '/app-1/filters', { name: 'region', values: ['EU'] }),
      call('POST', '/app-1/accessRequests/request-1/filters', { name: 'region', values: ['EU'] }),
      call('POST', '/app-1/attributes', { name: 'color', value: 'red' }),
      call('POST', '/app-1/webhooks', { name: 'hook', uri: 'https://hooks.example.org', method: 'POST' }),
    ]
    for (const each of setUp) expect((await owner.client(each.method, each.path, each.body)).status).toBeLessThan(300)
    const before = await rowsOf(owner.name)
    const paths = [
      '',
      '/credentials/only-key-1',
      '/accessRequests/request-1',
      '/accessRequests/request-1/filters/region',
      '/filters/region',
      '/attributes/color',
      '/webhooks/hook',
    ]
    const lists = ['/credentials', '/accessRequests', '/filters', '/attributes', '/webhooks', '/eventApis']
    for (const path of [...paths, ...lists, '/eventApis/ordersapi', '/accessRequests/request-1/eventApis']) {
      expect((await owner.client('GET', `/app-1${path}`)).status).toBe(200)
      expect((await stranger.client('GET', `/app-1${path}`)).status).toBe(404)
    }
    for (const path of paths) {
      expect((await stranger.client('PATCH', `/app-1${path}`, {})).status).toBe(404)
      expect((await stranger.client('DELETE', `/app-1${path}`)).status).toBe(404)
    }
    expect((await stranger.client('GET', '')).body).toMatchObject({ data: [], meta: { pagination: { count: 0 } } })
    for (const each of setUp)
      expect((await stranger.client(each.method, each.path, each.body)).status).toBeLessThan(300)
    expect(await rowsOf(owner.name)).toBe(before)
  })
})
