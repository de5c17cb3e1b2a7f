import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Step } from '../unit/sandbox-client.ts'
import { until } from './login-fixtures.ts'
import {
  exceptions,
  MqttPlace,
  subscribe,
  type TestClient,
  TRANSPORTS,
  type Transport,
  topicsOf,
} from './mqtt-place.ts'

let place: MqttPlace
beforeEach(async () => {
  place = await MqttPlace.start()
})
afterEach(() => place[Symbol.asyncDispose]())

describe.each([4, 5] as const)('MQTT version %i', (protocolVersion) => {
  it.each([
    ['orders/eu/placed', true],
    ['orders/+/placed', true],
    ['orders/us/paid', true],
    ['orders/eu/item-7/counted', true],
    ['orders/eu/item-*/counted', true],
    ['orders/eu/item-7*/counted', true],
    ['orders/eu/+/counted', false],
    ['orders/+/paid', false],
    ['orders/eu/#', false],
    ['orders/#', false],
    ['#', false],
    ['+/+/placed', false],
    ['orders/eu/placed/more', false],
    ['orders/eu', false],
    ['ORDERS/eu/placed', false],
  ])('an ACL profile lets a client subscribe to %s: %s', async (filter, isAllowed) => {
    const client = await place.join('app', { protocolVersion })
    const refusal = protocolVersion === 5 ? 0x87 : 0x80
    expect(await subscribe(client, filter)).toBe(isAllowed ? 1 : refusal)
    expect(client.mqtt.connected).toBe(true)
  })

  it.each([
    ['orders/eu/placed', true],
    ['orders/us/paid', true],
    ['orders/eu/item-7/counted', true],
    ['orders/us/placed', false],
    ['orders/eu/item/counted', false],
    ['orders/eu/placed/more', false],
    ['orders/paid', false],
    ['other', false],
  ])('an ACL profile lets a client publish to %s: %s', async (topic, isAllowed) => {
    const receiver = await place.join('ops', { protocolVersion })
    await subscribe(receiver, '#')
    const client = await place.join('app', { protocolVersion })
    const published = client.mqtt.publishAsync(topic, 'x', { qos: 1 })
    published.catch(() => {})
    if (isAllowed) {
      await until(() => receiver.messages.length === 1)
      expect(receiver.messages).toEqual([{ topic, text: 'x', qos: 1 }])
      return
    }
    // The acknowledgement of MQTT 5 says it; in 3.1.1 the end of the connection is all that can.
    if (protocolVersion === 5) await expect(published).rejects.toMatchObject({ code: 0x87 })
    else await until(() => !client.mqtt.connected)
    await receiver.mqtt.publishAsync('end', 'x', { qos: 1 })
    await until(() => receiver.messages.length > 0)
    expect(topicsOf(receiver)).toEqual(['end'])
  })

  it('publishing where it is denied without an acknowledgement costs the connection', async () => {
    const client = await place.join('app', { protocolVersion })
    await client.mqtt.publishAsync('other', 'x', { qos: 0 })
    await until(() => !client.mqtt.connected)
    expect(client.reasons).toEqual(protocolVersion === 5 ? [0x87] : [])
  })

  it('an exception that is added works at once, for publishing and for subscribing', async () => {
    const receiver = await place.join('app', { protocolVersion })
    expect(await subscribe(receiver, 'news/+')).toBeGreaterThan(2)
    await place.send(...exceptions('publish', ['news/today']), ...exceptions('subscribe', ['news/*']))
    expect(await subscribe(receiver, 'news/+')).toBe(1)
    await (await place.join('app', { protocolVersion })).mqtt.publishAsync('news/today', 'x', { qos: 1 })
    await until(() => receiver.messages.length === 1)
  })

  it.each([
    [0, 0, 0],
    [0, 1, 0],
    [1, 0, 0],
    [1, 1, 1],
    [1, 2, 1],
    [2, 1, 1],
    [2, 2, 1],
  ] as const)(
    'a message with QoS %i for a subscription with QoS %i comes with %i, once',
    async (sent, asked, expected) => {
      const receiver = await place.join('ops', { protocolVersion })
      expect(await subscribe(receiver, 'a/+', { qos: asked })).toBe(Math.min(asked, 1))
      expect(await subscribe(receiver, 'a/#', { qos: 0 })).toBe(0)
      const sender = await place.join('ops', { protocolVersion })
      for (const text of ['one', 'two']) await sender.mqtt.publishAsync('a/b', text, { qos: sent })
      await until(() => receiver.messages.length === 2)
      expect(receiver.messages).toEqual([
        { topic: 'a/b', text: 'one', qos: expected },
        { topic: 'a/b', text: 'two', qos: expected },
      ])
    },
  )

  it('filters reach what MQTT says', async () => {
    const receivers = new Map<string, TestClient>()
    for (const filter of ['a/#', 'a/+', '#', '+', '/+', 'a/b', '$own/#']) {
      const client = await place.join('ops', { protocolVersion })
      expect(await subscribe(client, filter)).toBe(1)
      receivers.set(filter, client)
    }
    const sender = await place.join('ops', { protocolVersion })
    for (const topic of ['a', 'a/b', 'a/', 'a/b/c', '/a', '$own/x', 'b']) {
      await sender.mqtt.publishAsync(topic, 'x', { qos: 1 })
    }
    await until(() => receivers.get('#')?.messages.length === 6)
    expect(Object.fromEntries([...receivers].map(([filter, client]) => [filter, topicsOf(client)]))).toEqual({
      'a/#': ['a', 'a/b', 'a/', 'a/b/c'],
      'a/+': ['a/b', 'a/'],
      '#': ['a', 'a/b', 'a/', 'a/b/c', '/a', 'b'],
      '+': ['a', 'b'],
      '/+': ['/a'],
      'a/b': ['a/b'],
      '$own/#': ['$own/x'],
    })
  })

  it('a subscription ends when the client says so', async () => {
    const client = await place.join('ops', { protocolVersion })
    await subscribe(client, 'a')
    await client.mqtt.publishAsync('a', 'one', { qos: 1 })
    await client.mqtt.unsubscribeAsync('a')
    await client.mqtt.publishAsync('a', 'two', { qos: 1 })
    expect(client.messages.map(({ text }) => text)).toEqual(['one'])
  })

  it('who comes with the id of a connected client takes its place', async () => {
    const first = await place.join('ops', { protocolVersion, clientId: 'same' })
    const second = await place.join('ops', { protocolVersion, clientId: 'same', transport: 'mqttws' })
    await until(() => !first.mqtt.connected)
    expect(first.reasons).toEqual(protocolVersion === 5 ? [0x8e] : [])
    expect(second.mqtt.connected).toBe(true)
    expect(place.accounts.connectionsOf('ops')).toBe(1)
  })

  it('nobody takes the place of a client of another username', async () => {
    const first = await place.join('ops', { protocolVersion, clientId: 'same' })
    await expect(place.join('app', { protocolVersion, clientId: 'same' })).rejects.toMatchObject({
      code: protocolVersion === 5 ? 0x85 : 2,
    })
    expect(first.mqtt.connected).toBe(true)
  })

  it('a client that may be connected once takes its own place, and nobody else does', async () => {
    const first = await place.join('single', { protocolVersion, clientId: 'same' })
    await expect(place.join('single', { protocolVersion, clientId: 'other' })).rejects.toMatchObject({
      code: protocolVersion === 5 ? 0x97 : 3,
    })
    expect(first.mqtt.connected).toBe(true)
    await place.join('single', { protocolVersion, clientId: 'same' })
    await until(() => !first.mqtt.connected)
    expect(place.accounts.connectionsOf('single')).toBe(1)
  })

  it.each<[string, Step]>([
    ['its username is deleted', ['DELETE', 'clientUsernames/ops']],
    ['its username is shut down', ['PATCH', 'clientUsernames/ops', { enabled: false }]],
    ['the message VPN is shut down', ['PATCH', '', { enabled: false }]],
  ])('a client is thrown out when %s, and its last will with it', async (_sentence, step) => {
    const will = { topic: 'orders/eu/placed', payload: Buffer.from('x'), qos: 1, retain: false } as const
    const other = await place.join('app', { protocolVersion })
    await subscribe(other, 'orders/+/placed')
    const client = await place.join('ops', { protocolVersion, will })
    await place.send(step)
    await until(() => !client.mqtt.connected)
    expect(client.reasons).toEqual(protocolVersion === 5 ? [0x98] : [])
    expect(place.accounts.connectionsOf('ops')).toBe(0)
    await expect(place.join('ops', { protocolVersion })).rejects.toThrow()
    expect(other.messages).toEqual([])
  })

  it('a client that goes without a word leaves its will, and one that says goodbye does not', async () => {
    const receiver = await place.join('ops', { protocolVersion })
    await subscribe(receiver, '#')
    const will = (topic: string) => ({ will: { topic, payload: Buffer.from('x'), qos: 1 as const, retain: false } })
    const polite = await place.join('app', { protocolVersion, ...will('orders/eu/placed') })
    await polite.mqtt.endAsync()
    const denied = await place.join('app', { protocolVersion, ...will('other') })
    denied.mqtt.stream.destroy()
    const rude = await place.join('app', { protocolVersion, ...will('orders/us/paid') })
    rude.mqtt.stream.destroy()
    await until(() => receiver.messages.length > 0)
    expect(topicsOf(receiver)).toEqual(['orders/us/paid'])
    await until(() => place.accounts.connectionsOf('app') === 0)
  })

  it.each([
    ['a wrong password', 'ops', { password: 'wrong' }, 4, 0x86],
    ['no password', 'ops', { password: '' }, 4, 0x86],
    ['an unknown username', 'nobody', {}, 4, 0x86],
    ['a username that is shut down', 'off', {}, 5, 0x87],
    ['an ACL profile that lets nobody in', 'shut-out', {}, 5, 0x87],
  ])('%s is refused', async (_sentence, username, options, returnCode, reasonCode) => {
    await expect(place.join(username, { protocolVersion, ...options })).rejects.toMatchObject({
      code: protocolVersion === 5 ? reasonCode : returnCode,
    })
    expect(place.accounts.clients()).toEqual([])
  })

  it.each([
    ['is shut down', { enabled: false }, 3, 0x88],
    ['takes no passwords', { authenticationBasicEnabled: false }, 5, 0x87],
  ])('a message VPN that %s refuses', async (_sentence, values, returnCode, reasonCode) => {
    await place.send(['PATCH', '', values])
    await expect(place.join('ops', { protocolVersion })).rejects.toMatchObject({
      code: protocolVersion === 5 ? reasonCode : returnCode,
    })
  })

  it('a silent client is given up after one and a half times its interval, and a quiet one is not', async () => {
    const quiet = await place.join('ops', { protocolVersion, keepalive: 1 })
    await using client = await place.joinRaw(protocolVersion, { keepalive: 1 })
    await client.packet('connack')
    await client.closed()
    if (protocolVersion === 5) expect(await client.packet('disconnect')).toMatchObject({ reasonCode: 0x8d })
    expect(quiet.mqtt.connected).toBe(true)
  })

  it('a client that nobody named gets a name', async () => {
    await using client = await place.joinRaw(protocolVersion, { clientId: '' })
    const { properties } = await client.packet('connack')
    const name = properties?.assignedClientIdentifier ?? null
    expect(name).toEqual(protocolVersion === 5 ? expect.stringMatching(/^auto-/) : null)
    await using other = await place.joinRaw(protocolVersion, { clientId: '' })
    await other.packet('connack')
    expect(place.accounts.connectionsOf('ops')).toBe(2)
  })
})

it('messages go from every transport to every transport', async () => {
  const transports = Object.keys(TRANSPORTS) as Transport[]
  const all = await Promise.all(
    transports.map((transport, index) => place.join('ops', { transport, protocolVersion: index % 2 === 0 ? 4 : 5 })),
  )
  for (const client of all) await subscribe(client, 'a/+')
  for (const [index, client] of all.entries()) await client.mqtt.publishAsync(`a/${index}`, 'x', { qos: 1 })
  for (const client of all) {
    await until(() => client.messages.length === all.length)
    expect(topicsOf(client)).toEqual(['a/0', 'a/1', 'a/2', 'a/3'])
  }
})

it('a large message goes through whole', async () => {
  const receiver = await place.join('ops', { transport: 'secure-mqttws' })
  await subscribe(receiver, 'a')
  const text = 'x'.repeat(1_000_000)
  await (await place.join('ops', { transport: 'secure-mqtt' })).mqtt.publishAsync('a', text, { qos: 1 })
  await until(() => receiver.messages.length === 1)
  expect(receiver.messages[0]?.text === text).toBe(true)
})

it('many messages arrive in their order, each once', async () => {
  const receiver = await place.join('ops', { protocolVersion: 5, properties: { receiveMaximum: 3 } })
  await subscribe(receiver, 'a')
  const sender = await place.join('ops')
  const texts = Array.from({ length: 500 }, (_, index) => String(index))
  await Promise.all(texts.map((text) => sender.mqtt.publishAsync('a', text, { qos: 1 })))
  await until(() => receiver.messages.length >= texts.length)
  expect(receiver.messages.map(({ text }) => text)).toEqual(texts)
})

describe('MQTT 5', () => {
  const version5 = { protocolVersion: 5 } as const

  it('hands on what a message says beside its payload', async () => {
    const receiver = await place.join('ops', version5)
    await subscribe(receiver, 'a')
    const properties: unknown[] = []
    receiver.mqtt.on('message', (_topic, _payload, packet) => properties.push(packet.properties))
    const sent = {
      contentType: 'text/plain',
      responseTopic: 'answers',
      correlationData: Buffer.from('id'),
      payloadFormatIndicator: true,
      userProperties: { one: '1', many: ['2', '3'] },
    }
    await (await place.join('ops', version5)).mqtt.publishAsync('a', 'x', { qos: 1, properties: sent })
    await until(() => properties.length === 1)
    expect(properties).toEqual([
      expect.objectContaining({ ...sent, userProperties: expect.objectContaining(sent.userProperties) }),
    ])
  })

  it('tells whether anybody was there', async () => {
    const client = await place.join('ops', version5)
    const reasons: unknown[] = []
    client.mqtt.on('packetreceive', (packet) => {
      if (packet.cmd === 'puback') reasons.push(packet.reasonCode)
    })
    await client.mqtt.publishAsync('a', 'x', { qos: 1 })
    await subscribe(client, 'a')
    await client.mqtt.publishAsync('a', 'x', { qos: 1 })
    expect(reasons).toEqual([0x10, 0])
  })

  it('spares a client what it publishes itself when it asks for that', async () => {
    const client = await place.join('ops', version5)
    expect(await subscribe(client, 'a', { nl: true })).toBe(1)
    await client.mqtt.publishAsync('a', 'own', { qos: 1 })
    await (await place.join('ops')).mqtt.publishAsync('a', 'other', { qos: 1 })
    await until(() => client.messages.length > 0)
    expect(client.messages.map(({ text }) => text)).toEqual(['other'])
  })

  it('drops what is larger than the client takes', async () => {
    const client = await place.join('ops', { ...version5, properties: { maximumPacketSize: 100 } })
    await subscribe(client, 'a')
    for (const text of ['x'.repeat(200), 'small']) {
      await (await place.join('ops')).mqtt.publishAsync('a', text, { qos: 1 })
    }
    await until(() => client.messages.length > 0)
    expect(client.messages.map(({ text }) => text)).toEqual(['small'])
  })

  it('refuses what it does not do, by name', async () => {
    const client = await place.join('ops', version5)
    expect(await subscribe(client, '$share/group/a')).toBe(0x9e)
    await expect(
      place.join('ops', { ...version5, properties: { authenticationMethod: 'SCRAM' } }),
    ).rejects.toMatchObject({
      code: 0x8c,
    })
    const will = { topic: 'a', payload: Buffer.from('x'), qos: 0, retain: true } as const
    await expect(place.join('ops', { ...version5, will })).rejects.toMatchObject({ code: 0x9a })
  })
})
