import { connect as connectInClearText } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectWithTls } from 'node:tls'
import { createWebSocketStream, WebSocket } from 'ws'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginTarget } from '../reconcile/login-port.ts'
import { networkFailure } from './network-failure.ts'
import { tlsClientOptions } from './tls-client-options.ts'

/** More than any answer to a login needs. */
const MAX_FRAME_BYTES = 65_536

export const CLOSED = notVerified('closed', 'The connection was closed before the login was answered.')

export interface TransportEvents {
  /** The connection is open and, with TLS, its certificate is good: from here on a password may be sent. */
  onOpen(): void
  /** May come several times, at any moment. */
  onFailure(verdict: Verdict): void
}

/** The bytes under MQTT: TCP, TLS, or either with WebSocket over it. Throws what no connection can be made of. */
export function openMqttTransport(target: LoginTarget, events: TransportEvents): Duplex {
  const { protocol, host, port } = target
  switch (protocol) {
    case 'mqttws':
      return openWebSocket(`ws://${inUrl(host)}:${port}/`, target, events)
    case 'secure-mqttws':
      return openWebSocket(`wss://${inUrl(host)}:${port}/`, target, events)
    case 'secure-mqtt': {
      const socket = connectWithTls({ host, port, ...tlsClientOptions(target) }, events.onOpen)
      return socket.on('error', (error) => events.onFailure(networkFailure(error)))
    }
    case 'mqtt': {
      const socket = connectInClearText({ host, port, noDelay: true }, events.onOpen)
      return socket.on('error', (error) => events.onFailure(networkFailure(error)))
    }
    default:
      throw new TypeError(`MQTT does not speak ${protocol}`)
  }
}

/** Brokers take any path; the subprotocol is that of MQTT 3.1.1, 6.0. */
function openWebSocket(url: string, target: LoginTarget, events: TransportEvents): Duplex {
  const webSocket = new WebSocket(url, ['mqtt'], {
    ...tlsClientOptions(target),
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
  })
  webSocket.on('open', events.onOpen)
  webSocket.on('unexpected-response', (_request, { statusCode }) => {
    events.onFailure(notVerified('protocol', `The port answered HTTP ${statusCode} instead of opening a WebSocket.`))
  })
  webSocket.on('error', (error) => events.onFailure(webSocketFailure(error)))
  const stream = createWebSocketStream(webSocket)
  // By itself the stream would stay open to write after the broker has gone.
  webSocket.on('close', () => stream.destroy())
  // What goes wrong with the WebSocket itself is told above; the rest is writing to one that closes.
  return stream.on('error', () => events.onFailure(CLOSED))
}

/** What the library says of an answer that is HTTP and no WebSocket has no code of the network. */
function webSocketFailure(error: Error): Verdict {
  const verdict = networkFailure(error)
  return verdict.outcome === 'not-verified' && verdict.reason === 'unknown' ? NOT_WEBSOCKET : verdict
}

const NOT_WEBSOCKET = notVerified('protocol', 'The port does not speak MQTT over WebSocket.')

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)
