import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { createWebSocketStream, WebSocketServer } from 'ws'
import type { Listener, ListenerOptions, StartListener, TlsMaterial } from './listener.ts'
import { MqttSession } from './mqtt-session.ts'
import type { MqttLimits } from './mqtt-wire.ts'
import { openPort } from './open-port.ts'

const SUBPROTOCOL = 'mqtt'
const LIMITS: MqttLimits = {
  connectTimeoutMs: 10_000,
  maxPacketBytes: 1024 * 1024,
  maxUnreadBytes: 8 * 1024 * 1024,
}

type OnClient = (stream: Duplex) => void

/** MQTT on a port: `mqtt` as it is, `secure-mqtt` over TLS, `mqttws` and `secure-mqttws` over WebSocket, any path. */
export const startMqttListener: StartListener = (options) => startLimitedMqttListener(options, {})

export async function startLimitedMqttListener(
  options: ListenerOptions,
  overrides: Partial<MqttLimits>,
): Promise<Listener> {
  const limits = { ...LIMITS, ...overrides }
  const server = createMqttServer(options, limits, (stream) => new MqttSession(stream, options.msgVpn, limits))
  const { port, close } = await openPort(server, options)
  return { protocol: options.protocol, port, close }
}

function createMqttServer({ protocol, tls }: ListenerOptions, limits: MqttLimits, onClient: OnClient): Server {
  switch (protocol) {
    case 'mqtt':
      return createServer({ noDelay: true }, onClient)
    case 'secure-mqtt':
      return createTlsServer(
        { ...materialFor(protocol, tls), handshakeTimeout: limits.connectTimeoutMs, noDelay: true },
        onClient,
      )
    case 'mqttws':
      return createWebSocketServer(null, limits, onClient)
    case 'secure-mqttws':
      return createWebSocketServer(materialFor(protocol, tls), limits, onClient)
    default:
      throw new TypeError(`the MQTT listener cannot speak ${protocol}`)
  }
}

function materialFor(protocol: string, tls: TlsMaterial | null): TlsMaterial {
  if (tls === null) throw new TypeError(`the MQTT listener cannot speak ${protocol} without TLS material`)
  return tls
}

function createWebSocketServer(tls: TlsMaterial | null, limits: MqttLimits, onClient: OnClient): Server {
  const { connectTimeoutMs } = limits
  const timeouts = {
    requestTimeout: connectTimeoutMs,
    headersTimeout: connectTimeoutMs,
    connectionsCheckingInterval: Math.max(100, connectTimeoutMs / 10),
  }
  const server =
    tls === null
      ? createHttpServer(timeouts)
      : createHttpsServer({ ...timeouts, ...tls, handshakeTimeout: connectTimeoutMs })
  const webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxPacketBytes,
    clientTracking: false,
    handleProtocols: () => SUBPROTOCOL,
  })
  server.on('request', (_request, response) => {
    response.writeHead(426, { Connection: 'close', Upgrade: 'websocket' }).end()
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (!offersMqtt(request)) {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      const stream = createWebSocketStream(webSocket)
      // Packets come in binary frames only (MQTT 3.1.1, 6.0).
      webSocket.on('message', (_data, isBinary) => {
        if (!isBinary) webSocket.terminate()
      })
      onClient(stream)
    })
  })
  return server
}

/** A client must name the subprotocol, among others if it likes (MQTT 3.1.1, 6.0). */
const offersMqtt = ({ headers }: IncomingMessage): boolean =>
  String(headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .some((name) => name.trim() === SUBPROTOCOL)
