import { connect, type Socket } from 'node:net'
import { constants, createDeflateRaw, createInflateRaw, deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Protocol } from '../../src/domain/catalogue.ts'
import { type ClientControl, decodeClientControl, encodeClientControl } from '../../src/sandbox/login/smf-control.ts'
import { SmfFramer } from '../../src/sandbox/login/smf-framer.ts'
import { startSmfListener } from '../../src/sandbox/login/smf-listener.ts'
import { decodeSmf, encodeSmf, type SmfMessage } from '../../src/sandbox/login/smf-message.ts'
import { SmfSession } from '../../src/sandbox/login/smf-session.ts'
import { ALICE, loginVpn, PASSWORD, startPlace, until } from './login-fixtures.ts'

const CLIENT_CONTROL = 0x0c
const SUBSCRIPTION = 0x0f
const KEEP_ALIVE = 0x0b

const EMPTY: SmfMessage = {
  protocol: CLIENT_CONTROL,
  timeToLive: 1,
  correlationTag: null,
  username: null,
  password: null,
  response: null,
  body: Buffer.alloc(0),
}
const control = (change: Partial<ClientControl> = {}): Buffer =>
  encodeClientControl({ messageType: 0, msgVpnName: 'sandbox', inboxTopic: null, authenticationScheme: 0, ...change })
const loginMessage = (change: Partial<SmfMessage> = {}): Buffer =>
  encodeSmf({ ...EMPTY, username: ALICE, password: PASSWORD, body: control(), ...change })
const keepAlive = encodeSmf({ ...EMPTY, protocol: KEEP_ALIVE })
function subscribe(topic: string, kind = 0): Buffer {
  const body = Buffer.alloc(7 + topic.length)
  body.writeUInt8(0x80 | kind, 0)
  body.writeUInt32BE(body.length, 1)
  body.write(topic, 6)
  return encodeSmf({ ...EMPTY, protocol: SUBSCRIPTION, correlationTag: 77, body })
}
const said = ({ response }: SmfMessage): string => (response === null ? '' : `${response.code} ${response.text}`)

/** A client of raw bytes. */
class RawClient {
  readonly socket: Socket
  readonly answers: SmfMessage[] = []
  isClosed = false
  readonly #send: (bytes: Buffer) => void

  constructor(port: number, protocol: Protocol) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.isClosed = true
    })
    const framer = new SmfFramer()
    const onData = (chunk: Buffer) => this.answers.push(...framer.push(chunk, 65_536).map(decodeSmf))
    if (protocol === 'smfc') {
      const output = createDeflateRaw({ flush: constants.Z_SYNC_FLUSH })
      output.pipe(this.socket)
      this.socket.pipe(createInflateRaw({ finishFlush: constants.Z_SYNC_FLUSH })).on('data', onData)
      this.#send = (bytes) => output.write(bytes)
    } else {
      this.socket.on('data', onData)
      this.#send = (bytes) => this.socket.write(bytes)
    }
  }

  async ask(bytes: Buffer): Promise<SmfMessage> {
    const count = this.answers.length
    this.#send(bytes)
    await until(() => this.answers.length > count || this.isClosed)
    const answer = this.answers[count]
    if (answer === undefined) throw new Error('the connection was closed without an answer')
    return answer
  }

  send(bytes: Buffer): void {
    this.#send(bytes)
  }

  closed(): Promise<void> {
    return until(() => this.isClosed)
  }
}

async function open(protocol: Protocol = 'smf') {
  const place = await startPlace(startSmfListener, { protocol })
  const { state } = place.vpn
  return {
    ...place,
    state,
    dial: () => new RawClient(place.listener.port, protocol),
    connected: () => state.accounts.connectionsOf(ALICE),
    [Symbol.asyncDispose]: () => place.listener.close(),
  }
}

describe.each(['smf', 'smfc'] as const)('a client over %s', (protocol) => {
  it('logs in, subscribes, keeps alive, updates, and is connected until it goes', async () => {
    await using server = await open(protocol)
    const client = server.dial()
    const accepted = await client.ask(loginMessage({ correlationTag: 5 }))
    expect(said(accepted)).toBe('200 OK')
    expect(accepted.correlationTag).toBe(5)
    const inbox = decodeClientControl(accepted.body).inboxTopic
    expect(inbox).toMatch(/^#P2P\/.+[^/]$/)
    expect(server.connected()).toBe(1)

    const request = subscribe(`${inbox}/>`)
    const subscribed = await client.ask(request)
    expect(said(subscribed)).toBe('200 OK')
    expect(subscribed).toMatchObject({ protocol: SUBSCRIPTION, correlationTag: 77, body: decodeSmf(request).body })
    expect(said(await client.ask(subscribe('a/b', 1)))).toBe('200 OK')
    expect(await client.ask(keepAlive)).toMatchObject({ protocol: KEEP_ALIVE, response: null })
    expect(said(await client.ask(loginMessage({ body: control({ messageType: 1 }) })))).toBe('200 OK')

    client.socket.end()
    await until(() => server.connected() === 0)
  })

  it('is told why it is turned away, and then the connection ends', async () => {
    await using server = await open(protocol)
    const client = server.dial()
    const refused = await client.ask(loginMessage({ password: 'not it' }))
    expect(said(refused)).toBe('401 Unauthorized')
    expect(decodeClientControl(refused.body).inboxTopic).toBeNull()
    await client.closed()
    expect(server.connected()).toBe(0)
  })
})

describe('a login', () => {
  const CASES: readonly (readonly [string, (vpn: ReturnType<typeof loginVpn>) => void, Buffer, string])[] = [
    [
      'without a message VPN is for that of the port',
      () => {},
      loginMessage({ body: control({ msgVpnName: null }) }),
      '200 OK',
    ],
    [
      'names a message VPN that is not there',
      () => {},
      loginMessage({ body: control({ msgVpnName: 'x' }) }),
      '403 Message VPN Not Allowed',
    ],
    ['names an unknown username', () => {}, loginMessage({ username: 'nobody' }), '401 Unauthorized'],
    ['has no username', () => {}, loginMessage({ username: null }), '401 Unauthorized'],
    ['has no password', () => {}, loginMessage({ password: null }), '401 Unauthorized'],
    [
      'has a longer password that begins with the right one',
      () => {},
      loginMessage({ password: `${PASSWORD}x` }),
      '401 Unauthorized',
    ],
    [
      'is for a username that is shut down',
      ({ state }) => state.clientUsernames.change(ALICE, { enabled: false }),
      loginMessage(),
      '403 Client Username Is Shutdown',
    ],
    [
      'is wrong and for a username that is shut down',
      ({ state }) => state.clientUsernames.change(ALICE, { enabled: false }),
      loginMessage({ password: 'not it' }),
      '401 Unauthorized',
    ],
    [
      'is wrong and for a message VPN that is shut down',
      ({ state }) => state.changeMsgVpn({ enabled: false }),
      loginMessage({ password: 'not it' }),
      '503 Message VPN Unavailable',
    ],
    [
      'meets basic authentication that is off',
      ({ state }) => state.changeMsgVpn({ authenticationBasicEnabled: false }),
      loginMessage(),
      '403 Basic Authentication is Shutdown',
    ],
    [
      'is not allowed by the ACL profile',
      ({ state }) => state.aclProfiles.change('open', { clientConnectDefaultAction: 'disallow' }),
      loginMessage(),
      '403 Forbidden',
    ],
    [
      'is wrong and not allowed by the ACL profile',
      ({ state }) => state.aclProfiles.change('open', { clientConnectDefaultAction: 'disallow' }),
      loginMessage({ password: 'not it' }),
      '401 Unauthorized',
    ],
    [
      'is one too many',
      ({ state }) => {
        state.clientProfiles.put('narrow', { maxConnectionCountPerClientUsername: 1 })
        state.clientUsernames.change(ALICE, { clientProfileName: 'narrow' })
        state.connect(ALICE)
      },
      loginMessage(),
      '503 Too Many Clients',
    ],
    [
      'has a client certificate instead',
      () => {},
      loginMessage({ body: control({ authenticationScheme: 1 }) }),
      '403 Client Certificate Authentication Is Shutdown',
    ],
    [
      'has a ticket instead',
      () => {},
      loginMessage({ body: control({ authenticationScheme: 2 }) }),
      '401 Unauthorized',
    ],
  ]
  it.each(CASES)('that %s', async (_sentence, change, bytes, expected) => {
    await using server = await open()
    change(server.vpn)
    expect(said(await server.dial().ask(bytes))).toBe(expected)
  })
})

describe('a subscription', () => {
  it('is refused by the ACL profile, but for the own inbox', async () => {
    await using server = await open()
    server.state.aclProfiles.change('open', { subscribeTopicDefaultAction: 'disallow' })
    const client = server.dial()
    const inbox = decodeClientControl((await client.ask(loginMessage())).body).inboxTopic
    expect(said(await client.ask(subscribe('a/b')))).toBe('403 Subscription ACL Denied')
    expect(said(await client.ask(subscribe(`${inbox}/x`)))).toBe('200 OK')
  })
})

describe('the connection is closed', () => {
  it.each([
    ['for what is no SMF', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['for a message before the login', keepAlive],
    ['for an update before the login', loginMessage({ body: control({ messageType: 1 }) })],
    ['for a body that is no client control', loginMessage({ body: Buffer.from([9, 9]) })],
    ['for a login that promises to be very long', Buffer.from('030c00010000000c7fffffff', 'hex')],
    ['for a login of more than its share', loginMessage({ username: 'x'.repeat(20_000) })],
  ])('%s, and nothing is said', async (_sentence, bytes) => {
    await using server = await open()
    const client = server.dial()
    client.send(bytes)
    await client.closed()
    expect(client.answers).toEqual([])
  })

  it.each([
    ['after a second login', loginMessage()],
    ['after a message that is too long', encodeSmf({ ...EMPTY, protocol: 0x0d, body: Buffer.alloc(70_000) })],
    ['after a subscription that is none', encodeSmf({ ...EMPTY, protocol: SUBSCRIPTION, body: Buffer.alloc(3) })],
  ])('%s', async (_sentence, bytes) => {
    await using server = await open()
    const client = server.dial()
    await client.ask(loginMessage())
    client.send(bytes)
    await client.closed()
    expect(client.answers).toHaveLength(1)
    await until(() => server.connected() === 0)
  })

  it('when the broker drops the client', async () => {
    await using server = await open()
    const client = server.dial()
    await client.ask(loginMessage())
    server.state.accounts.dropClients(ALICE)
    await client.closed()
  })

  it('when the listener closes, also in the middle of a login', async () => {
    const server = await open()
    const [one, other] = [server.dial(), server.dial()]
    await one.ask(loginMessage())
    other.send(loginMessage().subarray(0, 20))
    await until(() => !other.socket.connecting && other.socket.writableLength === 0)
    await server.listener.close()
    await Promise.all([one.closed(), other.closed()])
    expect(server.connected()).toBe(0)
  })

  it('for bytes that inflate to no end', async () => {
    await using server = await open('smfc')
    const bomb = deflateRawSync(Buffer.alloc(50_000_000))
    const client = new RawClient(server.listener.port, 'smf')
    client.send(bomb)
    await client.closed()
  })
})

describe('messages of protocols that the sandbox does not know', () => {
  it('are ignored after the login', async () => {
    await using server = await open()
    const client = server.dial()
    await client.ask(loginMessage())
    client.send(encodeSmf({ ...EMPTY, protocol: 0x0d, body: Buffer.alloc(60_000) }))
    expect(await client.ask(keepAlive)).toMatchObject({ protocol: KEEP_ALIVE })
  })

  it('and answers that nobody reads do not pile up', async () => {
    await using server = await open()
    const client = server.dial()
    await client.ask(loginMessage())
    client.socket.pause()
    const many = Buffer.concat(Array.from({ length: 5000 }, () => keepAlive))
    for (let index = 0; index < 300; index += 1) client.send(many)
    // The broker does not read on: what it was not asked to keep stays here.
    let unsent = 0
    let unchanged = 0
    await until(() => {
      unchanged = client.socket.writableLength === unsent ? unchanged + 1 : 0
      unsent = client.socket.writableLength
      return unsent > 0 && unchanged === 20
    })
    client.socket.resume()
    await until(() => client.answers.length > 5000 * 20)
  })
})

describe('whatever a client sends', () => {
  const good = [loginMessage(), keepAlive, subscribe('a/b'), loginMessage({ body: control({ messageType: 1 }) })]
  const junk = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
  const mutated = fc
    .tuple(fc.constantFrom(...good), fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 3 }))
    .map(([original, changes]) => {
      const changed = Buffer.from(original)
      for (const [offset, value] of changes) changed[offset % changed.length] = value
      return changed
    })
  const chunks = fc.array(fc.oneof({ weight: 1, arbitrary: junk }, { weight: 4, arbitrary: mutated }), { maxLength: 6 })

  it('never throws out of a session, which ends once and leaves nobody connected', () => {
    const vpn = loginVpn()
    const options = {
      protocol: 'smf' as const,
      host: '127.0.0.1',
      port: 0,
      tls: null,
      msgVpn: vpn.access,
      msgVpnNamed: (name: string) => (name === 'sandbox' ? vpn.access : undefined),
    }
    fc.assert(
      fc.property(fc.boolean(), chunks, (loggedIn, sent) => {
        const calls: string[] = []
        const session = new SmfSession(options, '#P2P/x', {
          send: () => calls.push('send'),
          end: () => calls.push('end'),
          destroy: () => calls.push('destroy'),
        })
        if (loggedIn) session.receive(loginMessage())
        for (const chunk of sent) session.receive(chunk)
        const ends = calls.filter((call) => call !== 'send')
        expect(ends.length).toBeLessThanOrEqual(1)
        if (ends.length === 1) expect(calls.at(-1)).toBe(ends[0])
        session.closed()
        expect(vpn.state.accounts.connectionsOf(ALICE)).toBe(0)
      }),
      { numRuns: 3000 },
    )
  })

  it.each(['smf', 'smfc'] as const)('leaves the %s listener as it was', async (protocol) => {
    await using server = await open(protocol)
    await fc.assert(
      fc.asyncProperty(chunks, fc.boolean(), async (sent, raw) => {
        const client = raw ? new RawClient(server.listener.port, 'smf') : server.dial()
        for (const chunk of sent) client.send(chunk)
        client.socket.end()
        client.socket.resume()
        await client.closed()
      }),
      { numRuns: 150 },
    )
    expect(said(await server.dial().ask(loginMessage()))).toBe('200 OK')
    expect(server.connected()).toBe(1)
  })
})

describe('the listener', () => {
  it('is not for other protocols, nor for TLS without a certificate', async () => {
    await expect(startPlace(startSmfListener, { protocol: 'mqtt' })).rejects.toThrow(TypeError)
    await expect(startPlace(startSmfListener, { protocol: 'smfs' })).rejects.toThrow(TypeError)
  })
})
