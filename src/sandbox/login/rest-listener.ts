import { Buffer } from 'node:buffer'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { ListenerOptions, StartListener } from './listener.ts'
import type { AccessOutcome, MsgVpnAccess } from './msg-vpn-access.ts'
import { openPort } from './open-port.ts'

/** A message larger than this is refused; the sandbox reads messages and drops them. */
const MAX_MESSAGE_BYTES = 1_048_576

interface Answer {
  readonly status: number
  /** What a broker says of it; empty for a message that was taken. */
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

const TAKEN: Answer = { status: 200, text: '' }
const DENIED: Answer = { status: 403, text: 'Publish ACL Denied' }
const TOO_LARGE: Answer = { status: 413, text: 'Message Too Large', headers: { connection: 'close' } }
const NOT_POST: Answer = { status: 405, text: 'Method Not Allowed', headers: { allow: 'POST' } }
const NO_TOPIC: Answer = { status: 400, text: 'The request target is not a topic' }
const UNAUTHORIZED: Answer = {
  status: 401,
  text: 'Unauthorized',
  headers: { 'www-authenticate': 'Basic realm="keymesh-sandbox"' },
}

/**
 * The texts are those that a Solace broker gives to its own clients; the statuses of a shut down client username and
 * of a denied topic are as observed with REST, the others as the texts go with in its documentation.
 */
const REFUSALS: Readonly<Record<Exclude<AccessOutcome, 'accepted'>, Answer>> = {
  'unknown-username': UNAUTHORIZED,
  'wrong-password': UNAUTHORIZED,
  shutdown: { status: 403, text: 'Client Username Is Shutdown' },
  'basic-authentication-shutdown': { status: 403, text: 'Basic Authentication is Shutdown' },
  'connect-denied': { status: 403, text: 'Forbidden' },
  'msg-vpn-shutdown': { status: 503, text: 'Message VPN Unavailable' },
  'too-many-connections': { status: 503, text: 'Too Many Clients' },
}

/** REST messaging, messaging mode: a POST to a topic publishes. A client is connected while its request lasts. */
export const startRestListener: StartListener = async (options) => {
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    void serve(options.msgVpn, request, response)
  }
  const server = options.tls === null ? createServer(onRequest) : createTlsServer({ ...options.tls }, onRequest)
  const { port, close } = await openPort(server, addressOf(options))
  return { protocol: options.protocol, port, close }
}

const addressOf = ({ host, port }: ListenerOptions): { host: string; port: number } => ({ host, port })

async function serve(msgVpn: MsgVpnAccess, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // A connection that breaks shows in `close`.
  request.on('error', () => {})
  response.on('error', () => {})
  const isWhole = await readAndDrop(request)
  if (request.socket.destroyed) return
  answer(response, isWhole ? publish(msgVpn, request, response) : TOO_LARGE)
}

function publish(msgVpn: MsgVpnAccess, request: IncomingMessage, response: ServerResponse): Answer {
  if (request.method !== 'POST') return NOT_POST
  const topic = topicOf(request.url ?? '')
  if (topic === null) return NO_TOPIC
  const login = basicLogin(request.headers.authorization ?? '')
  if (login === null) return UNAUTHORIZED
  const outcome = msgVpn.login(login.username, login.password)
  if (outcome !== 'accepted') return REFUSALS[outcome]
  const client = msgVpn.connect(login.username, () => request.socket.destroy())
  response.on('close', () => msgVpn.disconnect(client))
  return msgVpn.allows(login.username, 'publish', topic) ? TAKEN : DENIED
}

function answer(response: ServerResponse, { status, text, headers }: Answer): void {
  const body = text === '' ? '' : `${text}\n`
  response.writeHead(status, {
    ...headers,
    ...(body === '' ? {} : { 'content-type': 'text/plain' }),
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

/** False when the message is too large; the rest of it is then not read. */
function readAndDrop(request: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= MAX_MESSAGE_BYTES) return
      request.pause()
      resolve(false)
    })
    request.on('end', () => resolve(true))
    request.on('close', () => resolve(true))
  })
}

/** `/TOPIC/a/b` and `/a/b` are the topic `a/b`. Queues are none of this sandbox's REST ports. */
function topicOf(target: string): string | null {
  const path = target.replace(/[?#].*$/s, '')
  if (!path.startsWith('/') || /^\/QUEUE\//i.test(path)) return null
  try {
    const topic = decodeURIComponent(path.replace(/^\/(?:TOPIC\/)?/i, ''))
    return topic === '' ? null : topic
  } catch {
    return null
  }
}

function basicLogin(header: string): { username: string; password: string } | null {
  const token = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(header)?.[1]
  if (token === undefined) return null
  const text = Buffer.from(token, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return colon < 0
    ? { username: text, password: '' }
    : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}
