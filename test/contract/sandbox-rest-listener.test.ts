import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startRestListener } from '../../src/sandbox/login/rest-listener.ts'
import { ALICE, type LoginPlace, PASSWORD, startPlace, until } from './login-fixtures.ts'

const start = () => startPlace(startRestListener, { protocol: 'http' })
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly authorization?: string | null
  readonly body?: string | Buffer
  readonly agent?: Agent
}

async function ask(place: LoginPlace, asked: Asked = {}) {
  const { method = 'POST', path = '/TOPIC/orders/created', body = 'hello', agent = false } = asked
  const { authorization = basic(`${ALICE}:${PASSWORD}`) } = asked
  const headers = { 'content-length': Buffer.byteLength(body), ...(authorization === null ? {} : { authorization }) }
  const sent = request({ host: '127.0.0.1', port: place.listener.port, method, path, headers, agent })
  sent.on('error', () => {})
  sent.end(body)
  const [response]: IncomingMessage[] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response?.setEncoding('utf8') ?? []) text += chunk
  return { status: response?.statusCode, text: text.trim(), headers: response?.headers ?? {} }
}

describe('a POST to the REST port', () => {
  it.each([
    '/TOPIC/orders/created',
    '/orders/created',
    '/topic/orders/created',
    '/orders%2Fcreated',
    '/orders/created?x=1',
  ])('publishes with the target %s, where the ACL profile lets it', async (path) => {
    await using place = await start()
    place.vpn.state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' })
    expect(await ask(place, { path })).toMatchObject({ status: 403, text: 'Publish ACL Denied' })
    place.vpn.state.aclProfiles.addMember('open', 'publishTopicExceptions', 'smf,orders/created')
    expect(await ask(place, { path })).toMatchObject({ status: 200, text: '' })
  })

  it.each(['/', '/TOPIC/', '/QUEUE/q', '/%zz', '/%'])('is a mistake with the target %s', async (path) => {
    await using place = await start()
    expect(await ask(place, { path })).toMatchObject({ status: 400 })
  })

  it.each([
    ['nothing', null],
    ['another scheme', 'Bearer abc'],
    ['no base64', 'Basic ***'],
    ['no password', basic(ALICE)],
    ['an empty one', basic(':')],
  ])('is unauthorized with %s', async (_sentence, authorization) => {
    await using place = await start()
    const answer = await ask(place, { authorization })
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': expect.stringContaining('Basic') } })
  })

  it('may have a large message, and not a huge one', async () => {
    await using place = await start()
    expect(await ask(place, { body: Buffer.alloc(1_000_000) })).toMatchObject({ status: 200 })
    expect(await ask(place, { body: Buffer.alloc(1_500_000) })).toMatchObject({ status: 413 })
  })

  it('is checked each time on a connection that stays', async () => {
    await using place = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      expect(await ask(place, { agent })).toMatchObject({ status: 200 })
      place.vpn.state.setPassword(ALICE, 'another')
      expect(await ask(place, { agent })).toMatchObject({ status: 401 })
      await until(() => place.vpn.state.accounts.clients().length === 0)
    } finally {
      agent.destroy()
    }
  })
})

describe('the REST port', () => {
  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS'])('does not take %s', async (method) => {
    await using place = await start()
    expect(await ask(place, { method })).toMatchObject({ status: 405, headers: { allow: 'POST' } })
  })

  it('lives on after junk, and after clients that leave in the middle', async () => {
    await using place = await start()
    for (const text of ['junk\r\n\r\n', 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc']) {
      const socket = connect(place.listener.port, '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.end(text)
      socket.resume()
      await until(() => socket.destroyed)
    }
    expect(await ask(place)).toMatchObject({ status: 200 })
  })

  it('closes with connections that stay', async () => {
    const place = await start()
    const agent = new Agent({ keepAlive: true })
    expect(await ask(place, { agent })).toMatchObject({ status: 200 })
    await place.listener.close()
    await expect(ask(place, { agent: new Agent() })).rejects.toThrow(/ECONNREFUSED/)
    agent.destroy()
  })
})
