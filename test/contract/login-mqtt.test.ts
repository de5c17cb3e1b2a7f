import { createServer as createHttpServer } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { connect as connectMqtt } from 'mqtt'
import { type Packet, parser } from 'mqtt-packet'
import { beforeAll, describe, expect, it } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createMqttLogin } from '../../src/login/mqtt.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { startMqttListener } from '../../src/sandbox/login/mqtt-listener.ts'
import { openPort } from '../../src/sandbox/login/open-port.ts'
import { type HostileServerKind, refusedPort, startHostileServer, startSlowRelay } from '../helpers/hostile-server.ts'
import {
  ALICE,
  attempt,
  GOOD,
  type LoginVpn,
  makeTlsMaterials,
  PASSWORD,
  startPlace,
  TIMEOUT_MS,
  type TlsMaterials,
  targetOf,
  until,
} from './login-fixtures.ts'
import { expectNoLeaks } from './login-leaks.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from './tls-fixtures.ts'

const login = createMqttLogin()
const WRONG = attempt(ALICE, 'not the password')
const PROTOCOLS = ['mqtt', 'secure-mqtt', 'mqttws', 'secure-mqttws'] as const
type MqttProtocol = (typeof PROTOCOLS)[number]
const isSecure = (protocol: MqttProtocol) => protocol.startsWith('secure-')
const isWebSocket = (protocol: MqttProtocol) => protocol.endsWith('ws')

async function probe(target: LoginTarget, credential: LoginAttempt = GOOD, timeoutMs = TIMEOUT_MS): Promise<Verdict> {
  const verdict = await login.probe(target, credential, { timeoutMs })
  expect(JSON.stringify(verdict)).not.toContain(credential.password.reveal() || 'x'.repeat(99))
  return verdict
}

/** `outcome`, or `not-verified reason`. */
const short = (verdict: Verdict): string =>
  verdict.outcome === 'not-verified' ? `not-verified ${verdict.reason}` : verdict.outcome

let tls: TlsMaterials
beforeAll(async () => {
  tls = await makeTlsMaterials()
})

const startMqtt = (protocol: MqttProtocol) =>
  isSecure(protocol)
    ? startPlace(startMqttListener, { protocol, tls: tls.good, ca: tls.ca.certificate })
    : startPlace(startMqttListener, { protocol })

describe.each(PROTOCOLS)('a login over %s', (protocol) => {
  const CASES: readonly (readonly [string, (vpn: LoginVpn) => void, LoginAttempt, string])[] = [
    ['takes the right password', () => {}, GOOD, 'accepted'],
    ['refuses a wrong password', () => {}, WRONG, 'rejected'],
    ['refuses an unknown username', () => {}, attempt('nobody', PASSWORD), 'rejected'],
    [
      'cannot tell a shut down username from a wrong password',
      ({ state }) => state.clientUsernames.change(ALICE, { enabled: false }),
      GOOD,
      'rejected',
    ],
    [
      'cannot log in while the message VPN is down',
      ({ state }) => state.changeMsgVpn({ enabled: false }),
      GOOD,
      'busy',
    ],
    [
      'accepts anything where the message VPN does',
      ({ state }) => state.changeMsgVpn({ authenticationBasicType: 'none' }),
      WRONG,
      'accepted',
    ],
    [
      'cannot log in while there are too many connections',
      ({ state }) => {
        state.clientProfiles.put('narrow', { maxConnectionCountPerClientUsername: 1 })
        state.clientUsernames.change(ALICE, { clientProfileName: 'narrow' })
        state.connect(ALICE)
      },
      GOOD,
      'busy',
    ],
    [
      'is good when the ACL profile allows neither publishing nor subscribing',
      ({ state }) =>
        state.aclProfiles.change('open', {
          publishTopicDefaultAction: 'disallow',
          subscribeTopicDefaultAction: 'disallow',
        }),
      GOOD,
      'accepted',
    ],
    [
      'takes every character, and as many as there may be',
      ({ state }) =>
        state.clientUsernames.put('ü'.repeat(189), {
          enabled: true,
          aclProfileName: 'open',
          password: '€'.repeat(128),
        }),
      attempt('ü'.repeat(189), '€'.repeat(128)),
      'accepted',
    ],
  ]
  it.each(CASES)('%s', async (_sentence, change, credential, expected) => {
    await using server = await startMqtt(protocol)
    change(server.vpn)
    const before = server.vpn.state.accounts.clients().length
    expect(short(await probe(server.target(), credential))).toBe(expected)
    await until(() => server.vpn.state.accounts.clients().length === before)
  })

  it.each(['localhost', '127.0.0.1'])('reaches %s', async (host) => {
    await using server = await startMqtt(protocol)
    expect(short(await probe(server.target({ host })))).toBe('accepted')
  })

  it('does not disturb a client that is connected', async () => {
    await using server = await startMqtt(protocol)
    const secure = isSecure(protocol) ? { ca: tls.ca.certificate } : {}
    const scheme = `${isWebSocket(protocol) ? 'ws' : 'mqtt'}${isSecure(protocol) ? 's' : ''}`
    const client = connectMqtt(`${scheme}://localhost:${server.listener.port}`, {
      username: ALICE,
      password: PASSWORD,
      reconnectPeriod: 0,
      ...secure,
    })
    try {
      await until(() => client.connected)
      await Promise.all(Array.from({ length: 5 }, () => probe(server.target())))
      expect(client.connected).toBe(true)
    } finally {
      await client.endAsync(true)
    }
  })

  it('ends with the deadline when the broker says nothing, and when it is aborted', async () => {
    await using silent = await startHostileServer('silent')
    const target = targetOf(protocol, silent.port)
    expect(short(await probe(target, GOOD, 100))).toBe('not-verified timeout')
    expect(short(await probe(target, GOOD, 0))).toBe('not-verified timeout')
    const controller = new AbortController()
    const aborted = login.probe(target, GOOD, { timeoutMs: 600_000, signal: controller.signal })
    await until(() => silent.received().length > 0)
    controller.abort()
    expect(short(await aborted)).toBe('not-verified timeout')
    expect(short(await login.probe(target, GOOD, { timeoutMs: 600_000, signal: AbortSignal.abort() }))).toBe(
      'not-verified timeout',
    )
  })

  it('waits for a slow broker until the deadline', async () => {
    await using server = await startMqtt(protocol)
    await using slow = await startSlowRelay({ port: server.listener.port, delayMs: 100 })
    expect(short(await probe(server.target({ port: slow.port })))).toBe('accepted')
    await using slower = await startSlowRelay({ port: server.listener.port, delayMs: 60_000 })
    expect(short(await probe(server.target({ port: slower.port }), GOOD, 300))).toBe('not-verified timeout')
    expect(slower.connections()).toBe(1)
  })

  it('says what failed below MQTT', async () => {
    expect(short(await probe(targetOf(protocol, await refusedPort())))).toBe('not-verified refused')
    expect(short(await probe({ ...targetOf(protocol, 1883), host: 'broker.invalid' }))).toBe('not-verified dns')
    expect(short(await probe({ ...targetOf(protocol, 65_536) }))).toBe('not-verified unknown')
  })

  const HOSTILE: Readonly<Record<string, string>> = {
    'close-at-once': 'closed',
    'reset-at-once': 'closed',
    'close-after-data': 'closed',
    'junk-banner': 'protocol',
    'junk-answer': 'protocol',
    http: 'protocol',
    flood: 'protocol',
  }
  it.each(Object.entries(HOSTILE))('is not verified with a server that does %s', async (kind, reason) => {
    const name = (isSecure(protocol) ? `${kind}-tls` : kind) as HostileServerKind
    await using server = await startHostileServer(name, { tls: tls.good })
    const verdict = await probe({ ...targetOf(protocol, server.port), caCertificate: tls.ca.certificate })
    expect(short(verdict)).toBe(`not-verified ${reason}`)
    expect(server.connections()).toBe(1)
  })

  it('leaves nothing behind', { timeout: 180_000 }, async () => {
    await using server = await startMqtt(protocol)
    const refused = await refusedPort()
    const kinds: readonly (() => Promise<Verdict>)[] = [
      () => probe(server.target()),
      () => probe(server.target(), WRONG),
      () => probe(server.target({ port: refused })),
      () => probe(server.target(), GOOD, 20),
    ]
    await expectNoLeaks(async (index) => kinds[index % kinds.length]?.())
    await until(() => server.vpn.state.accounts.clients().length === 0)
  })
})

describe.each(['secure-mqtt', 'secure-mqttws'] as const)('a certificate over %s', (protocol) => {
  const connect = async (material: TlsMaterials['good'], ca: string | undefined, host = 'localhost') => {
    await using server = await startHostileServer('silent-tls', { tls: material })
    const verdict = await probe({
      ...targetOf(protocol, server.port),
      host,
      ...(ca === undefined ? {} : { caCertificate: ca }),
    })
    // Not one byte after the handshake: the password stays here.
    expect(server.received()).toHaveLength(0)
    return short(verdict)
  }

  it.each([
    ['of an authority that is not trusted', () => connect(tls.good, undefined), 'tls-untrusted'],
    [
      'that signed itself',
      () => connect({ key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE }, tls.ca.certificate),
      'tls-untrusted',
    ],
    ['that has expired', () => connect(tls.expired, tls.ca.certificate), 'tls-expired'],
    ['that is not valid yet', () => connect(tls.notYet, tls.ca.certificate), 'tls-expired'],
    ['for another host', () => connect(tls.otherName, tls.ca.certificate), 'tls-wrong-name'],
    ['for another address', () => connect(tls.otherName, tls.ca.certificate, '127.0.0.1'), 'tls-wrong-name'],
  ])('%s is not taken', async (_sentence, run, reason) => {
    expect(await run()).toBe(`not-verified ${reason}`)
  })
})

describe('a port with another transport', () => {
  const CASES: readonly (readonly [MqttProtocol, MqttProtocol, RegExp])[] = [
    ['mqtt', 'secure-mqtt', /^not-verified (?:protocol|closed)$/],
    ['mqtt', 'mqttws', /^not-verified protocol$/],
    ['secure-mqtt', 'mqtt', /^not-verified (?:protocol|closed)$/],
    ['secure-mqtt', 'mqttws', /^not-verified protocol$/],
    ['mqttws', 'mqtt', /^not-verified (?:protocol|closed)$/],
    ['mqttws', 'secure-mqttws', /^not-verified (?:protocol|closed)$/],
    ['secure-mqttws', 'mqttws', /^not-verified protocol$/],
    ['secure-mqttws', 'secure-mqtt', /^not-verified (?:protocol|closed)$/],
  ]
  it.each(CASES)('is not verified with %s where the broker speaks %s', async (protocol, spoken, expected) => {
    await using server = await startMqtt(spoken)
    const target = { ...server.target(), protocol, caCertificate: tls.ca.certificate }
    expect(short(await probe(target))).toMatch(expected)
  })

  it('is not verified where HTTP is spoken and no WebSocket', async () => {
    const server = createHttpServer((_request, response) => response.writeHead(404).end())
    const { port, close } = await openPort(server, { host: '127.0.0.1', port: 0 })
    expect(await probe(targetOf('mqttws', port))).toEqual({
      outcome: 'not-verified',
      reason: 'protocol',
      detail: 'The port answered HTTP 404 instead of opening a WebSocket.',
    })
    await close()
  })

  it.each([
    ['at once', (client: WebSocket) => client.close(1013)],
    ['when it has the login', (client: WebSocket) => client.once('message', () => client.close(1013))],
    ['without a goodbye', (client: WebSocket) => client.once('message', () => client.terminate())],
  ])('is not verified where a WebSocket is opened and closed %s', async (_sentence, onClient) => {
    const http = createHttpServer()
    const { port, close } = await openPort(http, { host: '127.0.0.1', port: 0 })
    new WebSocketServer({ server: http }).on('connection', onClient)
    expect(short(await probe(targetOf('mqttws', port)))).toBe('not-verified closed')
    await close()
  })

  it('is not verified where WebSocket is spoken and no MQTT', async () => {
    const http = createHttpServer()
    const { port, close } = await openPort(http, { host: '127.0.0.1', port: 0 })
    const server = new WebSocketServer({ server: http, handleProtocols: () => false })
    expect(short(await probe(targetOf('mqttws', port)))).toBe('not-verified protocol')
    const echo = new WebSocketServer({ noServer: true })
    server.close()
    http.on('upgrade', (request, socket, head) => {
      echo.handleUpgrade(request, socket, head, (client) => client.on('message', (data) => client.send(data)))
    })
    expect(short(await probe(targetOf('mqttws', port)))).toBe('not-verified protocol')
    await close()
  })
})

describe('a broker that answers', () => {
  /** Sends the bytes when a client's first have come, and leaves or stays. */
  async function startScripted(answer: readonly number[], then: 'stay' | 'leave') {
    const received: Buffer[] = []
    const server = createTcpServer((socket: Socket) => {
      socket.on('data', (chunk) => received.push(chunk))
      socket.once('data', () => {
        if (then === 'leave') socket.end(Buffer.from(answer))
        else socket.write(Buffer.from(answer))
      })
    })
    const { port, close } = await openPort(server, { host: '127.0.0.1', port: 0 })
    return { port, received: () => Buffer.concat(received), [Symbol.asyncDispose]: close }
  }
  const connack = (code: number) => [0x20, 2, 0, code]

  const CASES: readonly (readonly [string, readonly number[], 'stay' | 'leave', string])[] = [
    ['code 0', connack(0), 'stay', 'accepted'],
    ['code 0, and leaves', connack(0), 'leave', 'accepted'],
    ['code 0, with a session of before', [0x20, 2, 1, 0], 'stay', 'accepted'],
    ['code 0 twice', [...connack(0), ...connack(0)], 'stay', 'accepted'],
    ['code 0 and junk with it', [...connack(0), 0xff, 0xff], 'stay', 'not-verified protocol'],
    ['code 1', connack(1), 'leave', 'not-verified protocol'],
    ['code 2', connack(2), 'leave', 'not-verified protocol'],
    ['code 3', connack(3), 'leave', 'busy'],
    ['code 4', connack(4), 'leave', 'rejected'],
    ['code 5', connack(5), 'leave', 'rejected'],
    ['code 5, and stays', connack(5), 'stay', 'rejected'],
    ['code 6', connack(6), 'leave', 'not-verified unknown'],
    ['code 134 of MQTT 5', connack(134), 'leave', 'rejected'],
    ['code 135 of MQTT 5', connack(135), 'leave', 'rejected'],
    ['code 136 of MQTT 5', connack(136), 'leave', 'busy'],
    ['code 137 of MQTT 5', connack(137), 'leave', 'busy'],
    ['code 138 of MQTT 5', connack(138), 'leave', 'not-verified unknown'],
    ['code 140 of MQTT 5', connack(140), 'leave', 'not-verified authentication-type'],
    ['code 151 of MQTT 5', connack(151), 'leave', 'busy'],
    ['code 156 of MQTT 5', connack(156), 'leave', 'not-verified protocol'],
    ['code 255', connack(255), 'leave', 'not-verified unknown'],
    ['half a CONNACK', [0x20, 2, 0], 'stay', 'not-verified timeout'],
    ['half a CONNACK, and leaves', [0x20, 2, 0], 'leave', 'not-verified closed'],
    ['a CONNACK with impossible flags', [0x20, 2, 2, 0], 'stay', 'not-verified protocol'],
    [
      'a CONNACK without an end',
      [0x20, 0xff, 0xff, 0xff, 0x7f, ...Array(2000).fill(0)],
      'stay',
      'not-verified protocol',
    ],
    ['another packet', [0xd0, 0], 'stay', 'not-verified protocol'],
    ['another packet, and then code 0', [0xd0, 0, ...connack(0)], 'stay', 'not-verified protocol'],
    ['what is no packet', [0x00, 0x00], 'stay', 'not-verified protocol'],
  ]
  it.each(CASES)('%s', async (_sentence, answer, then, expected) => {
    await using server = await startScripted(answer, then)
    const timeoutMs = expected === 'not-verified timeout' ? 300 : TIMEOUT_MS
    expect(short(await probe(targetOf('mqtt', server.port), GOOD, timeoutMs))).toBe(expected)
  })

  it('hears one CONNECT of MQTT 3.1.1, with an id that every broker takes, and then a goodbye', async () => {
    await using server = await startScripted(connack(0), 'stay')
    await probe(targetOf('mqtt', server.port))
    await until(() => server.received().at(-2) === 0xe0)
    const packets: Packet[] = []
    const reader = parser()
    reader.on('packet', (packet) => packets.push(packet))
    reader.parse(server.received())
    expect(packets).toEqual([
      expect.objectContaining({
        cmd: 'connect',
        protocolVersion: 4,
        clean: true,
        clientId: expect.stringMatching(/^[0-9a-zA-Z]{23}$/),
        username: ALICE,
        password: Buffer.from(PASSWORD),
      }),
      expect.objectContaining({ cmd: 'disconnect' }),
    ])
  })

  it('tells no two probes apart by nothing but their ids', async () => {
    const ids = new Set<string>()
    for (let index = 0; index < 3; index += 1) {
      await using server = await startScripted(connack(0), 'leave')
      await probe(targetOf('mqtt', server.port))
      ids.add(/keymesh[0-9a-f]{16}/.exec(server.received().toString('latin1'))?.[0] ?? '')
    }
    expect(ids.size).toBe(3)
  })
})

describe('what no broker takes', () => {
  it.each([
    ['no username', attempt('', PASSWORD)],
    ['no password', attempt(ALICE, '')],
    ['a username that is too long', attempt('x'.repeat(190), PASSWORD)],
    ['a password that is too long', attempt(ALICE, 'x'.repeat(129))],
    ['a NUL in the username', attempt('a\0b', PASSWORD)],
    ['a line break in the password', attempt(ALICE, 'a\nb')],
    ['half a character in the password', attempt(ALICE, 'a\ud800')],
  ])('%s is not sent', async (_sentence, credential) => {
    await using server = await startHostileServer('silent')
    expect(short(await probe(targetOf('mqtt', server.port), credential))).toBe('not-verified bad-input')
    expect(server.connections()).toBe(0)
  })

  it('is a protocol of another kind', async () => {
    expect(short(await probe(targetOf('amqp', 1)))).toBe('not-verified unknown')
  })
})
