import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** What the server sends when the client has come so far; nothing for what is not given. */
export interface AmqpScript {
  /** After the client's SASL header. */
  readonly onHeader?: readonly Buffer[]
  /** After `sasl-init`, which holds the password. */
  readonly onInit?: readonly Buffer[]
  /** After the client's `open`. */
  readonly onOpen?: readonly Buffer[]
  /** Some time after the client's `open`, if it has not closed by then. */
  readonly late?: readonly Buffer[]
  /** After the client's `close`. */
  readonly onClose?: readonly Buffer[]
  /** Closes the connection after what is sent at this step. */
  readonly endAfter?: 'onHeader' | 'onInit' | 'onOpen' | 'onClose'
}

export interface ScriptedAmqpServer extends AsyncDisposable {
  readonly port: number
  connections(): number
  received(): Buffer
}

/** Well within the time for which an opened connection is watched. */
const LATE_MS = 20

const MARKS = [
  ['onHeader', Buffer.from('AMQP\x03\x01\0\0', 'latin1')],
  ['onInit', Buffer.from([0, 0x53, 0x41])],
  ['onOpen', Buffer.from([0, 0x53, 0x10])],
  ['onClose', Buffer.from([0, 0x53, 0x18])],
] as const

/** AMQP 1.0 by hand, for what a server's library would not say. */
export async function startScriptedAmqpServer(script: AmqpScript): Promise<ScriptedAmqpServer> {
  const sockets = new Set<Socket>()
  const received: Buffer[] = []
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      clearTimeout(late)
    })
    let late: NodeJS.Timeout | undefined
    const write = (frames: readonly Buffer[] = []) => {
      for (const bytes of frames) socket.write(bytes)
    }
    const marks = MARKS.filter(([step]) => script[step] !== undefined || script.endAfter === step)
    let own = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk)
      own = Buffer.concat([own, chunk])
      for (let mark = marks[0]; mark !== undefined && own.includes(mark[1]); mark = marks[0]) {
        own = own.subarray(own.indexOf(mark[1]) + mark[1].length)
        marks.shift()
        write(script[mark[0]])
        if (mark[0] === 'onOpen') late = setTimeout(() => write(script.late), LATE_MS)
        if (mark[0] === 'onClose') clearTimeout(late)
        if (script.endAfter === mark[0]) socket.end()
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    received: () => Buffer.concat(received),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

export const SASL_HEADER = Buffer.from('AMQP\x03\x01\0\0', 'latin1')
export const AMQP_HEADER = Buffer.from('AMQP\0\x01\0\0', 'latin1')

const SASL_FRAME = 1
const AMQP_FRAME = 0

function frame(type: number, code: number, fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from([0, 0x53, code]), list(fields)])
  const head = Buffer.from([0, 0, 0, 0, 2, type, 0, 0])
  head.writeUInt32BE(head.length + body.length)
  return Buffer.concat([head, body])
}

function list(fields: readonly Buffer[]): Buffer {
  const content = Buffer.concat(fields)
  return Buffer.concat([Buffer.from([0xc0, content.length + 1, fields.length]), content])
}

const short = (code: number, text: string): Buffer =>
  Buffer.concat([Buffer.from([code, Buffer.byteLength(text)]), Buffer.from(text)])
const symbol = (text: string): Buffer => short(0xa3, text)
const string = (text: string): Buffer => short(0xa1, text)

function symbols(texts: readonly string[]): Buffer {
  const items = Buffer.concat(texts.map((text) => short(0xa3, text).subarray(1)))
  return Buffer.concat([Buffer.from([0xe0, items.length + 2, texts.length, 0xa3]), items])
}

export const mechanisms = (...names: readonly string[]): Buffer => frame(SASL_FRAME, 0x40, [symbols(names)])
export const challenge = (): Buffer => frame(SASL_FRAME, 0x42, [short(0xa0, 'more')])
export const outcome = (code: number): Buffer => frame(SASL_FRAME, 0x44, [Buffer.from([0x50, code])])

export function open(idleTimeOutMs?: number): Buffer {
  const idle = Buffer.from([0x70, 0, 0, 0, 0])
  if (idleTimeOutMs === undefined) return frame(AMQP_FRAME, 0x10, [string('scripted')])
  idle.writeUInt32BE(idleTimeOutMs, 1)
  const none = Buffer.from([0x40])
  return frame(AMQP_FRAME, 0x10, [string('scripted'), none, none, none, idle])
}

/** Without a condition it is no error. */
export function close(condition?: string, description = ''): Buffer {
  if (condition === undefined) return frame(AMQP_FRAME, 0x18, [])
  const error = Buffer.concat([Buffer.from([0, 0x53, 0x1d]), list([symbol(condition), string(description)])])
  return frame(AMQP_FRAME, 0x18, [error])
}
