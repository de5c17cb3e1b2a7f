import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '../contract/tls-fixtures.ts'

/** What a server does to its clients. With `-tls` it does so after the handshake; the certificate is for `localhost`. */
export type HostileKind =
  /** Takes every byte and says nothing. */
  | 'silent'
  | 'close-at-once'
  | 'reset-at-once'
  /** Closes when the client's first bytes have come. */
  | 'close-after-data'
  /** Speaks first, and it is no protocol. */
  | 'junk-banner'
  /** Answers the client's first bytes with bytes that are no protocol, and stays. */
  | 'junk-answer'
  /** Answers the client's first bytes as an HTTP server answers what it cannot read, and closes. */
  | 'http'
  /** Speaks forever. */
  | 'flood'
export type HostileServerKind = HostileKind | `${HostileKind}-tls`

export interface HostileServer extends AsyncDisposable {
  readonly port: number
  /** How many clients came. */
  connections(): number
  /** What the clients sent. */
  received(): Buffer
  /** Closes the port and every connection. */
  close(): Promise<void>
}

export interface HostileOptions {
  /** PEM texts for the kinds with TLS, instead of the one for `localhost`. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

const JUNK = Buffer.from('220 hello there, this is no messaging protocol \u0000\u00ff\u0001\r\n\r\n', 'latin1')

const BEHAVIOURS: Readonly<Record<HostileKind, (socket: Socket) => void>> = {
  silent: () => {},
  'close-at-once': (socket) => void socket.end(),
  // A socket with TLS cannot be reset; what it leaves out is the goodbye of TLS.
  'reset-at-once': (socket) => void (socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()),
  'close-after-data': (socket) => void socket.once('data', () => socket.end()),
  'junk-banner': (socket) => void socket.write(JUNK),
  'junk-answer': (socket) => void socket.once('data', () => socket.write(JUNK)),
  http: (socket) => void socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')),
  flood: (socket) => {
    const fill = () => {
      while (socket.writable && socket.write(Buffer.alloc(16_384, 0xa5)));
    }
    socket.on('drain', fill)
    fill()
  },
}

export async function startHostileServer(
  kind: HostileServerKind,
  { tls = { key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE } }: HostileOptions = {},
): Promise<HostileServer> {
  const received: Buffer[] = []
  let connections = 0
  const behaviour = BEHAVIOURS[kind.replace(/-tls$/, '') as HostileKind]
  const onClient = (socket: Socket) => {
    connections += 1
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    behaviour(socket)
  }
  const server = kind.endsWith('-tls') ? createTlsServer(tls, onClient) : createServer(onClient)
  const { port, close } = await listen(server)
  return {
    port,
    connections: () => connections,
    received: () => Buffer.concat(received),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Passes bytes on to a port of this machine, the answers `delayMs` late. */
export async function startSlowRelay(to: { readonly port: number; readonly delayMs: number }): Promise<HostileServer> {
  let connections = 0
  const received: Buffer[] = []
  const timers = new Set<NodeJS.Timeout>()
  const server = createServer((socket) => {
    connections += 1
    const behind = connect(to.port, '127.0.0.1')
    const later = (run: () => void) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        run()
      }, to.delayMs)
      timers.add(timer)
    }
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk)
      behind.write(chunk)
    })
    behind.on('data', (chunk) => later(() => socket.write(chunk)))
    behind.on('end', () => later(() => socket.end()))
    for (const [one, other] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => (one === socket ? other.destroy() : later(() => other.destroy())))
    }
  })
  const { port, close } = await listen(server)
  const closeAll = async () => {
    await close()
    for (const timer of timers) clearTimeout(timer)
  }
  return {
    port,
    connections: () => connections,
    received: () => Buffer.concat(received),
    close: closeAll,
    [Symbol.asyncDispose]: closeAll,
  }
}

/** Listens and never accepts: whoever comes when the queue is full is not answered at all. */
const DEAF = `
  const server = require('node:net').createServer()
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    process.stdout.write(server.address().port + '\\n', () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })
  })`

/** A port where connections neither come about nor fail. */
export async function startDeafServer(): Promise<{ readonly port: number } & AsyncDisposable> {
  const child = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = await once(child.stdout, 'data')
  const port = Number(line)
  const callers: Socket[] = []
  try {
    let isFull = false
    while (!isFull && callers.length < 20) {
      const caller = connect(port, '127.0.0.1')
      caller.on('error', () => {})
      callers.push(caller)
      isFull = await Promise.race([once(caller, 'connect').then(() => false), delay(250).then(() => true)])
    }
    if (!isFull) throw new Error('the queue of connections has no end')
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    port,
    async [Symbol.asyncDispose]() {
      for (const caller of callers) caller.destroy()
      const gone = once(child, 'close')
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** A port of this machine that refuses connections. */
export async function refusedPort(): Promise<number> {
  const { port, close } = await listen(createServer())
  await close()
  return port
}

async function listen(server: Server): Promise<{ port: number; close: () => Promise<void> }> {
  const sockets = new Set<Socket>()
  // The plain connection below TLS as well, whose handshake may never end.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
