import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLogger } from '../../src/context.ts'
import { createApp } from '../../src/http/app.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { parseMetrics, type Sample, sumOf } from '../helpers/metrics-text.ts'

let api: TestApi
const metrics = new Metrics()
const lines: Record<string, unknown>[] = []
beforeAll(async () => {
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)) as Record<string, unknown>)
      done()
    },
  })
  api = await withApi({ dependencies: { metrics }, log: createLogger({ logLevel: 'info', instance: 'test' }, stream) })
  for (const account of ['default', 'other']) {
    metrics.count('keymesh_broker_rests_total', { account, broker: `broker-of-${account}` })
  }
})
afterAll(() => api[Symbol.asyncDispose]())

const samplesOf = (body: unknown): readonly Sample[] => parseMetrics(String(body))

describe('/metrics for holders of a token', () => {
  it('shows the brokers of their own account, and what is of no account', async () => {
    for (const [account, token] of [
      ['default', api.token],
      ['default', api.userToken],
      ['other', (await api.addUser({ name: 'neighbour', account: 'other' })).apiToken],
    ] as const) {
      const answer = await api.call('GET', '/metrics', { token })
      expect([answer.status, answer.headers['content-type']]).toEqual([200, metrics.contentType])
      const samples = samplesOf(answer.body)
      const rests = samples.filter(({ name }) => name === 'keymesh_broker_rests_total')
      expect(rests.map(({ labels }) => labels.broker)).toEqual([`broker-of-${account}`])
      expect(sumOf(samples, 'keymesh_jobs_missed_total')).toBe(0)
    }
  })

  it('is refused to anybody else', async () => {
    expect((await api.call('GET', '/metrics', { token: null })).status).toBe(401)
    const { apiToken } = await api.addUser({ name: 'reader', permissions: ['services:get'] })
    expect((await api.call('GET', '/metrics', { token: apiToken })).status).toBe(403)
  })
})

describe('/metrics', () => {
  const appWith = (setting: 'public' | 'off') =>
    createApp({ ...api.dependencies, config: { ...api.config, metrics: setting } })

  it('is for anybody where it is public, and shows all accounts', async () => {
    const app = await appWith('public')
    const answer = await app.inject('/metrics')
    expect(answer.statusCode).toBe(200)
    expect(sumOf(samplesOf(answer.body), 'keymesh_broker_rests_total')).toBe(2)
    await app.close()
  })

  it('is not there where it is off', async () => {
    const app = await appWith('off')
    expect((await app.inject('/metrics')).statusCode).toBe(404)
    await app.close()
  })

  it('is public on a port of its own, beside health and nothing else', async () => {
    const dependencies = { ...api.dependencies, config: { ...api.config, metrics: 'off' as const } }
    const app = await createApp(dependencies, 'health')
    const statusOf = async (path: string) => (await app.inject(path)).statusCode
    const paths = ['/metrics', '/healthz', '/readyz', '/api/v0/user', '/api/v2/apim/openapi.json', '/console']
    expect(await Promise.all(paths.map(statusOf))).toEqual([200, 200, 200, 404, 404, 404])
    await app.close()
  })
})

describe('a request', () => {
  it('is counted by the pattern of its route and its status', async () => {
    await using other = await withApi()
    await other.call('GET', '/api/v0/users/somebody-with-a-name')
    await other.call('GET', '/nowhere/else')
    const samples = samplesOf((await other.call('GET', '/metrics')).body)
    const name = 'keymesh_http_request_duration_seconds_count'
    expect(sumOf(samples, name, { method: 'GET', route: 'none', status: '404' })).toBe(1)
    expect(JSON.stringify(samples)).not.toContain('somebody-with-a-name')
    expect(samples.filter((sample) => sample.name === name).map(({ labels }) => labels.route)).toEqual([
      '/api/v0/users/:userName',
      'none',
    ])
  })

  it('is named by every line that it leads to, also after its body was read', async () => {
    const { log, passwords } = api.dependencies
    const app = await createApp({
      ...api.dependencies,
      passwords: {
        hash: passwords.hash,
        verify: async () => {
          await Promise.resolve()
          log.info({ event: 'queue.missed' }, 'somewhere below the route')
          return false
        },
      },
    })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const headers = { 'x-request-id': 'request-7', 'content-type': 'application/json' }
    const sent = request(`${url}/api/v1/iam/tokens`, { method: 'POST', headers })
    sent.flushHeaders()
    await once(app.server, 'request')
    // The body comes in a packet of its own, after the head.
    sent.end(JSON.stringify({ username: 'admin', password: 'x'.repeat(20) }))
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    expect(answer.statusCode).toBe(401)
    expect(lines.filter(({ event }) => event === 'queue.missed').map(({ requestId }) => requestId)).toEqual([
      'request-7',
    ])
    await app.close()
  })
})
