import type { LookupAddress, lookup } from 'node:dns'
import { createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/domain/secret.ts'
import { NotificationSender, type SenderOptions } from '../../src/notifications/notification-sender.ts'
import { type NotificationReceiver, type ReceiverAnswer, startReceiver } from '../helpers/notification-receiver.ts'

const BODY = JSON.stringify({
  type: 'keymesh.notifications',
  timestamp: '2030-01-01T00:00:00.000Z',
  data: { accountId: 'a', accountName: 'a', endpointId: 'e', counts: {}, omitted: 0, notifications: [] },
})

let receiver: NotificationReceiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver[Symbol.asyncDispose]())
beforeEach(() => {
  receiver.posts.length = 0
  receiver.answers.length = 0
})

/** A resolver that gives these addresses, one list for each question. */
function resolverOf(answers: readonly (readonly string[])[]): { readonly resolve: typeof lookup; asked: number } {
  const state = { asked: 0 }
  const resolve = (
    _name: string,
    _options: unknown,
    callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
  ): void => {
    const found = answers[Math.min(state.asked, answers.length - 1)] ?? []
    state.asked += 1
    callback(
      found.length === 0 ? Object.assign(new Error('not found'), { code: 'ENOTFOUND' }) : null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return Object.assign(state, { resolve: resolve as unknown as typeof lookup })
}

async function send(url: string, options: Partial<SenderOptions> = {}) {
  const sender = new NotificationSender({
    allowHttp: true,
    allowedNetworks: ['loopback'],
    timeoutMs: 1_000,
    ...options,
  })
  try {
    return await sender.send({
      id: 'id',
      url: new Secret(url),
      secrets: [new Secret('whsec_c2VjcmV0')],
      body: BODY,
      nowMs: 0,
    })
  } finally {
    await sender.close()
  }
}

describe('what comes of a post', () => {
  const cases: Readonly<Record<string, readonly [ReceiverAnswer, object]>> = {
    'that is taken': [204, { outcome: 'delivered', status: 204 }],
    'that a redirect answers': [
      (response) => response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end(),
      { outcome: 'refused', status: 302, message: expect.stringContaining('Redirects are not followed') },
    ],
    'that is refused': [400, { outcome: 'refused', status: 400, message: 'The receiver answered HTTP 400.' }],
    'that is no longer wanted': [410, { outcome: 'gone', status: 410 }],
    'that comes too often': [
      (response) => response.writeHead(429, { 'retry-after': '120' }).end(),
      { outcome: 'failed', status: 429, retryAfterMs: 120_000 },
    ],
    'that fails': [500, { outcome: 'failed', status: 500, retryAfterMs: null }],
    'whose connection ends': [
      (response) => response.socket?.destroy(),
      { outcome: 'failed', status: null, message: 'The receiver was not reached (UND_ERR_SOCKET).' },
    ],
    'that nobody answers': [
      () => undefined,
      { outcome: 'failed', status: null, message: 'No answer within 1 seconds.' },
    ],
    'whose answer never ends': [
      (response) => {
        response.writeHead(200)
        const write = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
          if (!response.destroyed) response.once('drain', write)
        }
        write()
      },
      { outcome: 'delivered', status: 200 },
    ],
    'whose answer has endless headers': [
      (response) => response.writeHead(200, { 'x-long': 'x'.repeat(40_000) }).end(),
      { outcome: 'failed', status: null, message: 'The answer has too long headers.' },
    ],
  }
  it.each(Object.entries(cases))('%s', async (_sentence, [answer, expected]) => {
    receiver.answers.push(answer)
    expect(await send(`${receiver.url}?token=hidden`)).toMatchObject(expected)
    expect(receiver.posts).toHaveLength(1)
  })

  it('to a port where nobody listens says so without the query', async () => {
    const server = createServer().listen(0)
    const { port } = server.address() as { port: number }
    await new Promise((resolve) => server.close(resolve))
    const attempt = await send(`http://ada:hidden@127.0.0.1:${port}/?token=hidden`)
    expect(attempt).toMatchObject({ outcome: 'failed', message: 'The receiver was not reached (ECONNREFUSED).' })
    expect(JSON.stringify(attempt)).not.toContain('hidden')
  })

  it('that is aborted is the reason of the signal', async () => {
    const sender = new NotificationSender({ allowHttp: true, allowedNetworks: ['loopback'] })
    const stop = new AbortController()
    receiver.answers.push(() => stop.abort(new Error('stopping')))
    const message = { id: 'id', url: new Secret(receiver.url), secrets: [], body: BODY, nowMs: 0 }
    await expect(sender.send(message, stop.signal)).rejects.toThrow('stopping')
    await sender.close()
  })
})

describe('a receiver', () => {
  const REFUSED = 'The receiver has a private or reserved address'
  const cases: Readonly<
    Record<string, readonly [addresses: readonly string[], allowed: readonly string[], said: string]>
  > = {
    'whose name leads to loopback': [['127.0.0.1'], [], REFUSED],
    'whose name leads to the metadata of a cloud': [['169.254.169.254'], ['uniquelocal'], REFUSED],
    'whose name leads to a private address of IPv6': [['fd00::1'], [], REFUSED],
    'whose name leads to a mapped address': [['::ffff:10.0.0.1'], [], REFUSED],
    'whose name leads nowhere': [[], [], 'is not resolved'],
  }
  it.each(Object.entries(cases))('%s is sent nothing', async (_sentence, [addresses, allowedNetworks, said]) => {
    const { resolve } = resolverOf([addresses])
    const attempt = await send(`http://hooks.example.org:${receiver.port}/`, { resolve, allowedNetworks })
    expect(attempt).toMatchObject({ outcome: 'failed', status: null, message: expect.stringContaining(said) })
    expect(receiver.posts).toEqual([])
  })

  it('of an address that is written in the URL is sent nothing, though no name is looked up', async () => {
    const { url } = receiver
    expect(await send(url, { allowedNetworks: [] })).toMatchObject({ message: expect.stringContaining('private') })
    expect(receiver.posts).toEqual([])
  })

  it('is asked over http only where that is allowed', async () => {
    expect(await send(receiver.url, { allowHttp: false })).toMatchObject({ message: expect.stringContaining('https') })
    expect(receiver.posts).toEqual([])
  })

  it('is sent to at the allowed ones of its addresses', async () => {
    const { resolve } = resolverOf([['10.0.0.1', '127.0.0.1', 'fe80::1']])
    expect(await send(`http://hooks.example.org:${receiver.port}/`, { resolve })).toMatchObject({
      outcome: 'delivered',
    })
  })

  it('whose name leads elsewhere after the first time is judged again', async () => {
    const resolver = resolverOf([['127.0.0.1'], ['10.0.0.1']])
    const sender = new NotificationSender({
      allowHttp: true,
      allowedNetworks: ['loopback'],
      timeoutMs: 1_000,
      resolve: resolver.resolve,
    })
    const url = new Secret(`http://hooks.example.org:${receiver.port}/`)
    receiver.answers.push((response) => response.writeHead(204, { connection: 'close' }).end())
    const message = { id: 'id', url, secrets: [], body: BODY, nowMs: 0 }
    expect(await sender.send(message)).toMatchObject({ outcome: 'delivered' })
    expect(await sender.send(message)).toMatchObject({ message: expect.stringContaining(REFUSED) })
    await sender.close()
    expect(resolver.asked).toBe(2)
  })
})
