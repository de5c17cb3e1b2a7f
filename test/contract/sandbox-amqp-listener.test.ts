import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import rhea, { type Connection, type EventContext } from 'rhea'
import { afterEach, describe, expect, it } from 'vitest'
import { startAmqpListener } from '../../src/sandbox/login/amqp-listener.ts'
import { ALICE, type LoginPlace, PASSWORD, startPlace, until } from './login-fixtures.ts'
import { AMQP_HEADER, open } from './scripted-amqp-server.ts'

const start = () => startPlace(startAmqpListener, { protocol: 'amqp' })

const opened: Connection[] = []
afterEach(() => {
  for (const connection of opened.splice(0)) connection.socket.destroy(new Error('over'))
})

/** The library's own client, as somebody's application has it. */
async function client(place: LoginPlace, options: { idle_time_out?: number } = {}): Promise<Connection> {
  const connection = rhea.create_container().create_connection({
    host: '127.0.0.1',
    port: place.listener.port,
    reconnect: false,
    username: ALICE,
    password: PASSWORD,
    ...options,
  })
  for (const event of ['connection_error', 'connection_close', 'disconnected', 'error']) connection.on(event, () => {})
  connection.connect()
  opened.push(connection)
  await once(connection, 'connection_open')
  return connection
}

describe('a client of the AMQP port', () => {
  it('is connected from its login until it leaves', async () => {
    await using place = await start()
    const connection = await client(place)
    const clients = () => place.vpn.state.accounts.clients().map(({ clientUsername }) => clientUsername)
    expect(clients()).toEqual([ALICE])
    connection.close()
    await until(() => clients().length === 0)
  })

  it('is told when the broker disconnects it', async () => {
    await using place = await start()
    const connection = await client(place)
    const told = once(connection, 'connection_error')
    place.vpn.state.accounts.dropClients(ALICE)
    expect((await told)[0].error).toMatchObject({ condition: 'amqp:connection:forced' })
    await until(() => connection.socket.destroyed)
  })

  it.each([
    ['topic://orders/created', 'orders/created'],
    ['orders/created', 'orders/created'],
  ])('publishes to %s', async (address, topic) => {
    await using place = await start()
    place.vpn.state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' })
    place.vpn.state.aclProfiles.addMember('open', 'publishTopicExceptions', `smf,${topic}`)
    const sender = (await client(place)).open_sender(address)
    await once(sender, 'sendable')
    sender.send({ body: 'hello' })
    await once(sender, 'accepted')
    expect(sender.target.address).toBe(address)
  })

  const attach = async (place: LoginPlace, link: { sender?: string; receiver?: string }): Promise<unknown> => {
    const connection = await client(place)
    const side = link.sender === undefined ? 'receiver' : 'sender'
    const attached = side === 'sender' ? connection.open_sender(link.sender) : connection.open_receiver(link.receiver)
    const [context]: EventContext[] = await once(attached, `${side}_error`)
    return context?.[side]?.error
  }

  it('does not publish where its ACL profile does not let it', async () => {
    await using place = await start()
    place.vpn.state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' })
    expect(await attach(place, { sender: 'orders/created' })).toMatchObject({ condition: 'amqp:unauthorized-access' })
  })

  it('gets no queue, and no messages', async () => {
    await using place = await start()
    const notImplemented = { condition: 'amqp:not-implemented' }
    expect(await attach(place, { sender: 'queue://q' })).toMatchObject(notImplemented)
    expect(await attach(place, { receiver: 'orders/created' })).toMatchObject(notImplemented)
    expect(await attach(place, { sender: '' })).toMatchObject(notImplemented)
  })

  it('is disconnected with its heartbeats when the port is closed', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const place = await start()
    const connection = await client(place, { idle_time_out: 20 })
    const gone = once(connection, 'disconnected')
    await place.listener.close()
    await gone
    expect(place.vpn.state.accounts.clients()).toEqual([])
    await until(() => timers() <= before)
  })
})

describe('the AMQP port', () => {
  const send = async (port: number, bytes: Buffer): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.resume()
    await once(socket, 'connect')
    socket.write(bytes)
    return socket
  }

  it.each([
    ['what is no AMQP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['AMQP without SASL', Buffer.concat([AMQP_HEADER, open()])],
    [
      'junk after the header',
      Buffer.concat([Buffer.from('AMQP\x03\x01\0\0', 'latin1'), Buffer.from([0, 0, 0, 12, 9, 9, 9, 9, 9, 9, 9, 9, 9])]),
    ],
    ['a frame without end', Buffer.concat([Buffer.from('AMQP\x03\x01\0\0\x7f\0\0\0', 'latin1'), Buffer.alloc(70_000)])],
  ])('closes on %s', async (_sentence, bytes) => {
    await using place = await start()
    place.vpn.state.changeMsgVpn({ authenticationBasicEnabled: false })
    const socket = await send(place.listener.port, bytes)
    await until(() => socket.destroyed)
    expect(place.vpn.state.accounts.clients()).toEqual([])
  })

  it('closes with clients that have not logged in', async () => {
    const place = await start()
    const socket = await send(place.listener.port, Buffer.from('AMQP'))
    await place.listener.close()
    await until(() => socket.destroyed)
  })
})
