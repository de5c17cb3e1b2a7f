import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { generate, type Packet } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { startLimitedMqttListener } from '../../src/sandbox/login/mqtt-listener.ts'
import { ALICE, loginVpn, makeTlsMaterials, PASSWORD, until } from './login-fixtures.ts'
import { connectPacket, MqttPlace, subscribe, TRANSPORTS, type Transport } from './mqtt-place.ts'
import { MqttRawClient } from './mqtt-raw-client.ts'

let place: MqttPlace
beforeEach(async () => {
  place = await MqttPlace.start()
})
afterEach(() => place[Symbol.asyncDispose]())

describe('MQTT 5', () => {
  const CASES: readonly (readonly [string, (client: MqttRawClient) => void, number])[] = [
    [
      'a retained message',
      (client) => client.send({ cmd: 'publish', topic: 'a', payload: 'x', qos: 0, dup: false, retain: true }),
      0x9a,
    ],
    [
      'an alias of a topic',
      (client) =>
        client.send({
          cmd: 'publish',
          topic: 'a',
          payload: 'x',
          qos: 0,
          dup: false,
          retain: false,
          properties: { topicAlias: 1 },
        }),
      0x94,
    ],
    [
      'an id of a subscription',
      (client) =>
        client.send({
          cmd: 'subscribe',
          messageId: 1,
          subscriptions: [{ topic: 'a', qos: 0 }],
          properties: { subscriptionIdentifier: 1 },
        }),
      0xa1,
    ],
    [
      'a topic that is too long',
      (client) =>
        client.send({ cmd: 'publish', topic: 'x'.repeat(251), payload: 'x', qos: 0, dup: false, retain: false }),
      0x90,
    ],
    [
      'a filter that is too long',
      (client) => client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'x'.repeat(251), qos: 0 }] }),
      0x8f,
    ],
    [
      'a topic with too many levels',
      (client) =>
        client.send({
          cmd: 'publish',
          topic: '/'.repeat(128),
          payload: 'x',
          qos: 0,
          dup: false,
          retain: false,
        }),
      0x90,
    ],
    ['a second CONNECT', (client) => client.send(connectPacket(5)), 0x82],
    [
      'another authentication',
      (client) => client.send({ cmd: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'SCRAM' } }),
      0x82,
    ],
    [
      'a property that comes twice',
      (client) => client.send([0x30, 12, 0, 1, 0x61, 8, 3, 0, 1, 0x78, 3, 0, 1, 0x79]),
      0x82,
    ],
    ['what is no packet', (client) => client.send([0x00, 0x00]), 0x81],
    [
      'a packet that is too large',
      (client) => client.send(Buffer.concat([Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(2_000_000)])),
      0x95,
    ],
  ]
  it.each(CASES)('%s ends the connection with a reason', async (_sentence, act, reasonCode) => {
    await using client = await place.joinRaw(5)
    expect(await client.packet('connack')).toMatchObject({ reasonCode: 0 })
    act(client)
    expect(await client.packet('disconnect')).toMatchObject({ reasonCode })
    await client.closed()
    expect(place.accounts.clients()).toEqual([])
  })

  it('answers each filter of a SUBSCRIBE, and each of an UNSUBSCRIBE', async () => {
    await using client = await place.joinRaw(5, { username: 'app' })
    const topics = ['orders/eu/placed', 'a+', 'a/#/b', 'other', '$share/g/a', '']
    client.send({ cmd: 'subscribe', messageId: 7, subscriptions: topics.map((topic) => ({ topic, qos: 2 })) })
    expect(await client.packet('suback')).toMatchObject({ messageId: 7, granted: [1, 0x8f, 0x8f, 0x87, 0x9e, 0x8f] })
    client.send({ cmd: 'unsubscribe', messageId: 8, unsubscriptions: ['orders/eu/placed', 'other'] })
    expect(await client.packet('unsuback')).toMatchObject({ messageId: 8, granted: [0, 0x11] })
  })
})

describe('MQTT 3.1.1', () => {
  it('an id that is empty needs a clean session', async () => {
    await using client = await MqttRawClient.open(place.port())
    client.send([0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0, 0, 0, 0, 0])
    expect(await client.packet('connack')).toMatchObject({ returnCode: 2 })
    await client.closed()
  })

  it('MQTT 3.1 is not spoken', async () => {
    await using client = await MqttRawClient.open(place.port())
    client.send({ ...connectPacket(4), protocolId: 'MQIsdp', protocolVersion: 3 })
    expect(await client.packet('connack')).toMatchObject({ returnCode: 1 })
    await client.closed()
  })

  it('a message with QoS 2 that is sent again is routed once', async () => {
    const receiver = await place.join('ops')
    await subscribe(receiver, 'a')
    await using client = await place.joinRaw(4)
    const message = { cmd: 'publish', topic: 'a', qos: 2, messageId: 9, retain: false } as const
    client.send({ ...message, payload: 'one', dup: false })
    client.send({ ...message, payload: 'one', dup: true })
    client.send({ cmd: 'pubrel', messageId: 9 })
    client.send({ ...message, payload: 'two', dup: false })
    await until(() => receiver.messages.length >= 2 && client.packets.length >= 5)
    expect(receiver.messages.map(({ text }) => text)).toEqual(['one', 'two'])
    expect(client.packets.map(({ cmd }) => cmd)).toEqual(['connack', 'pubrec', 'pubrec', 'pubcomp', 'pubrec'])
  })

  const CASES: readonly (readonly [string, readonly number[]])[] = [
    ['a packet before CONNECT', [0xc0, 0]],
    ['what is no packet', [0x00, 0x00]],
    ['a greeting of HTTP', [...Buffer.from('GET / HTTP/1.1\r\n\r\n')]],
    ['a greeting of TLS', [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]],
    ['a CONNECT of another protocol', [0x10, 12, 0, 4, 0x41, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0]],
    ['a CONNECT of another version', [0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 9, 2, 0, 0, 0, 0]],
    ['a CONNECT that is cut off', [0x10, 4, 0, 4, 0x4d, 0x51]],
    ['a length that never ends', [0x10, 0xff, 0xff, 0xff, 0xff, 0xff]],
  ]
  it.each(CASES)('%s ends the connection', async (_sentence, bytes) => {
    await using client = await MqttRawClient.open(place.port())
    client.send(bytes)
    await client.closed()
    expect(client.packets).toEqual([])
  })

  const AFTER_CONNECT: readonly (readonly [string, readonly number[]])[] = [
    ['a filter with a wildcard inside a level', [0x82, 7, 0, 1, 0, 2, 0x61, 0x2b, 0]],
    ['a filter that goes on after its last wildcard', [0x82, 8, 0, 1, 0, 3, 0x23, 0x2f, 0x61, 0]],
    ['a filter without a text', [0x82, 5, 0, 1, 0, 0, 0]],
    ['a SUBSCRIBE of nothing', [0x82, 2, 0, 1]],
    ['a SUBSCRIBE without an id', [0x82, 6, 0, 0, 0, 1, 0x61, 0]],
    ['a topic with a wildcard', [0x30, 4, 0, 1, 0x2b, 0x78]],
    ['a topic without a text', [0x30, 3, 0, 0, 0x78]],
    ['a topic with NUL', [0x30, 4, 0, 1, 0, 0x78]],
    ['a QoS that does not exist', [0x36, 6, 0, 1, 0x61, 0, 1, 0x78]],
    ['a message with QoS 1 and no id', [0x32, 6, 0, 1, 0x61, 0, 0, 0x78]],
    ['a packet that only servers send', [0xd0, 0]],
    ['a PUBREC for a message that was not QoS 2', [0x50, 2, 0, 1]],
  ]
  it.each(AFTER_CONNECT)('%s ends the connection', async (_sentence, bytes) => {
    await using client = await place.joinRaw(4)
    await client.packet('connack')
    client.send(bytes)
    await client.closed()
    expect(client.packets).toHaveLength(1)
    expect(place.accounts.clients()).toEqual([])
  })
})

describe('a client that does nothing', () => {
  const LIMITS = { connectTimeoutMs: 100 }

  it.each(Object.keys(TRANSPORTS) as Transport[])('is sent away over %s', async (protocol) => {
    const { access } = loginVpn()
    const { ca, good } = await makeTlsMaterials()
    const tls = protocol.startsWith('secure-') ? good : null
    const listener = await startLimitedMqttListener(
      { protocol, host: '127.0.0.1', port: 0, tls, msgVpn: access, msgVpnNamed: () => access },
      LIMITS,
    )
    // Below every handshake, and above it.
    await using client = await MqttRawClient.open(listener.port)
    await client.closed()
    const url = `${TRANSPORTS[protocol]}://localhost:${listener.port}`
    const above = protocol.endsWith('ws')
      ? new WebSocket(url, ['mqtt'], { ca: ca.certificate })
      : tls === null
        ? connectTcp(listener.port)
        : connectTls({ port: listener.port, ca: ca.certificate })
    await once(above, 'close')
    await listener.close()
  })
})

describe('a client that does not keep up', () => {
  const message = (text: string, messageId: number) =>
    ({ cmd: 'publish', topic: 'a', payload: text, qos: 1, messageId, dup: false, retain: false }) as const
  const published = (client: MqttRawClient) =>
    client.packets.flatMap((packet) => (packet.cmd === 'publish' ? [String(packet.payload)] : []))

  async function receiverOf(receiveMaximum: number): Promise<MqttRawClient> {
    const receiver = await place.joinRaw(5, { properties: { receiveMaximum } })
    receiver.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 1 }] })
    await receiver.packet('suback')
    return receiver
  }

  it('has no more messages unacknowledged than it wants', async () => {
    await using receiver = await receiverOf(2)
    await using sender = await place.joinRaw(4)
    for (const [index, text] of ['one', 'two', 'three', 'four'].entries()) sender.send(message(text, index + 1))
    await until(() => sender.packets.length === 5)
    receiver.send({ cmd: 'pingreq' })
    await receiver.packet('pingresp')
    expect(published(receiver)).toEqual(['one', 'two'])
    receiver.send({ cmd: 'puback', messageId: 1 })
    await until(() => published(receiver).length === 3)
    receiver.send({ cmd: 'puback', messageId: 2 })
    await until(() => published(receiver).length === 4)
    expect(published(receiver)).toEqual(['one', 'two', 'three', 'four'])
  })

  it('is sent away when too many wait for it', async () => {
    await using receiver = await receiverOf(1)
    await using sender = await place.joinRaw(4)
    for (let id = 1; id <= 1002; id += 1) sender.send(message('x', id))
    expect(await receiver.packet('disconnect')).toMatchObject({ reasonCode: 0x97 })
    await until(() => sender.packets.length === 1003)
    expect(place.accounts.connectionsOf('ops')).toBe(1)
  })

  it('is cut off when it does not read', async () => {
    const { access, state } = loginVpn()
    const account = { username: ALICE, password: Buffer.from(PASSWORD) }
    const options = { protocol: 'mqtt', host: '127.0.0.1', port: 0, tls: null, msgVpn: access } as const
    const listener = await startLimitedMqttListener(
      { ...options, msgVpnNamed: () => access },
      { maxUnreadBytes: 1_000_000 },
    )
    await using receiver = await MqttRawClient.open(listener.port)
    await using sender = await MqttRawClient.open(listener.port)
    for (const client of [receiver, sender]) {
      client.send(connectPacket(4, account))
      await client.packet('connack')
    }
    receiver.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 0 }] })
    await receiver.packet('suback')
    receiver.pause()
    await until(() => {
      sender.send({ ...message('x'.repeat(500_000), 1), qos: 0 })
      return state.accounts.clients().length === 1
    })
    await listener.close()
  })
})

describe('any bytes', () => {
  const packets: readonly Packet[] = [
    connectPacket(4, { clientId: 'fuzz' }),
    { cmd: 'publish', topic: 'a/b', payload: 'x', qos: 2, messageId: 7, dup: false, retain: false },
    { cmd: 'pubrel', messageId: 7 },
    { cmd: 'subscribe', messageId: 8, subscriptions: [{ topic: 'a/#', qos: 1 }] },
    { cmd: 'unsubscribe', messageId: 9, unsubscriptions: ['a/#'] },
    { cmd: 'pingreq' },
    { cmd: 'disconnect' },
  ]
  const proper = ([4, 5] as const).map((protocolVersion) =>
    packets.map((packet) => {
      const said = packet.cmd === 'connect' ? { ...packet, protocolVersion } : packet
      return generate(said, { protocolVersion })
    }),
  )
  const damage = fc.record({ at: fc.nat(200), byte: fc.nat(255) })
  const damaged = fc
    .record({ version: fc.nat(1), from: fc.nat(1), damages: fc.array(damage, { maxLength: 4 }) })
    .map(({ version, from, damages }) => {
      const bytes = Buffer.concat(proper[version]?.slice(from) ?? [])
      for (const { at, byte } of damages) bytes[at % bytes.length] = byte
      return bytes
    })
  const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
  const input = fc.record({
    connects: fc.constantFrom(null, 4, 5),
    bytes: fc.oneof({ weight: 3, arbitrary: damaged }, anything),
    cut: fc.nat(200),
  })

  it('cost their own connection at most', { timeout: 120_000 }, async () => {
    const other = await place.join('ops')
    await fc.assert(
      fc.asyncProperty(input, async ({ connects, bytes, cut }) => {
        await using client = await MqttRawClient.open(place.port())
        if (connects !== null) client.send(connectPacket(connects))
        client.send(bytes.subarray(0, cut))
        client.send(bytes.subarray(cut))
        client.finish()
        await client.closed()
      }),
      { numRuns: 500 },
    )
    expect(other.mqtt.connected).toBe(true)
    await until(() => place.accounts.clients().length === 1)
  })
})

describe('WebSocket', () => {
  const open = (path: string, protocols: readonly string[], transport: Transport = 'mqttws') =>
    new WebSocket(`${TRANSPORTS[transport]}://localhost:${place.port(transport)}${path}`, [...protocols], {
      ca: place.caCertificate,
    })

  it.each(['/', '/mqtt', '/any/where?what=ever'])('takes a client at %s', async (path) => {
    for (const transport of ['mqttws', 'secure-mqttws'] as const) {
      const client = open(path, ['other', 'mqtt'], transport)
      await once(client, 'open')
      expect(client.protocol).toBe('mqtt')
      client.terminate()
    }
  })

  it('refuses a client that does not say that it speaks MQTT', async () => {
    for (const protocols of [[], ['mqttv3.1'], ['smf.solacesystems.com']]) {
      const [error] = await once(open('/', protocols), 'error').catch((reason: unknown) => [reason])
      expect(String(error)).toContain('400')
    }
  })

  it('tells a browser what to do', async () => {
    const response = await fetch(`http://localhost:${place.port('mqttws')}/`)
    expect([response.status, response.headers.get('upgrade')]).toEqual([426, 'websocket'])
  })

  it('takes packets in any pieces, and no text', async () => {
    const bytes = generate(connectPacket(4))
    const client = open('/', ['mqtt'])
    await once(client, 'open')
    for (const byte of bytes) client.send(Buffer.from([byte]))
    const [answer] = await once(client, 'message')
    expect(answer).toEqual(Buffer.from([0x20, 2, 0, 0]))
    client.send('text')
    await once(client, 'close')
    await until(() => place.accounts.clients().length === 0)
  })

  it('takes no message larger than a packet may be', async () => {
    const client = open('/', ['mqtt'])
    await once(client, 'open')
    client.send(Buffer.alloc(2_000_000))
    expect((await once(client, 'close'))[0]).toBe(1009)
  })
})
