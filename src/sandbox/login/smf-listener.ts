import { createServer, type Server, type Socket } from 'node:net'
import { pipeline, type Readable, type Writable } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { constants, createDeflateRaw, createInflateRaw } from 'node:zlib'
import type { ListenerOptions, StartListener } from './listener.ts'
import { openPort } from './open-port.ts'
import { SmfSession } from './smf-session.ts'

const LOGIN_TIMEOUT_MS = 10_000
/** How long a client that was turned away may take to hear it and leave. */
const GOODBYE_TIMEOUT_MS = 1_000
const KEEP_ALIVE_DELAY_MS = 60_000

/** SMF on a port: `smf` as it is, `smfs` over TLS, `smfc` compressed. */
export const startSmfListener: StartListener = async (options) => {
  let clients = 0
  const server = createSmfServer(options, (socket) => {
    clients += 1
    serve(socket, options, `#P2P/v:sandbox/${options.protocol}-${clients}`)
  })
  return { protocol: options.protocol, ...(await openPort(server, options)) }
}

function createSmfServer({ protocol, tls }: ListenerOptions, onClient: (socket: Socket) => void): Server {
  if (protocol === 'smf' || protocol === 'smfc') return createServer(onClient)
  if (protocol !== 'smfs' || tls === null) {
    throw new TypeError(`the SMF listener cannot speak ${protocol}${tls === null ? ' without TLS material' : ''}`)
  }
  return createTlsServer({ ...tls, handshakeTimeout: LOGIN_TIMEOUT_MS }, onClient)
}

function serve(socket: Socket, options: ListenerOptions, inboxTopic: string): void {
  const { input, output } = options.protocol === 'smfc' ? compressed(socket) : { input: socket, output: socket }
  let timer = setTimeout(() => socket.destroy(), LOGIN_TIMEOUT_MS)
  const session = new SmfSession(options, inboxTopic, {
    send(message) {
      // A client that does not read its answers is not read either.
      if (output.writable && !output.write(message) && !input.isPaused()) {
        input.pause()
        output.once('drain', () => input.resume())
      }
    },
    end() {
      output.end()
      clearTimeout(timer)
      timer = setTimeout(() => socket.destroy(), GOODBYE_TIMEOUT_MS)
    },
    destroy: () => socket.destroy(),
  })
  socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    clearTimeout(timer)
    session.closed()
  })
  input.on('data', (chunk: Buffer) => {
    output.cork()
    session.receive(chunk)
    output.uncork()
    if (session.isLoggedIn) clearTimeout(timer)
  })
}

/**
 * One stream of raw deflate in each direction for as long as the connection lasts, flushed after every message. What a
 * few bytes may inflate to is no danger: it comes in pieces that are read one by one, and no message may be large.
 */
function compressed(socket: Socket): { input: Readable; output: Writable } {
  const flushing = { flush: constants.Z_SYNC_FLUSH }
  const input = createInflateRaw({ ...flushing, finishFlush: constants.Z_SYNC_FLUSH })
  const output = createDeflateRaw(flushing)
  const onFailure = (error: Error | null | undefined) => {
    if (error) socket.destroy()
  }
  pipeline(socket, input, onFailure)
  pipeline(output, socket, onFailure)
  return { input, output }
}
