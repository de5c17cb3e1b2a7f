import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestApi, withApi } from '../helpers/http.ts'

let api: TestApi
beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('the example route', () => {
  it('says who calls, by an API token and by a user token', async () => {
    const byApiToken = await api.call('GET', '/api/v0/user')
    expect(byApiToken).toMatchObject({
      status: 200,
      body: {
        data: { kind: 'apiToken', accountName: 'default', userName: 'admin', roles: ['administrator'] },
        meta: {},
      },
    })
    const byUserToken = await api.call('GET', '/api/v0/user', { token: api.userToken })
    expect(byUserToken).toMatchObject({ status: 200, body: { data: { kind: 'user', permissions: [] } } })
  })
})
