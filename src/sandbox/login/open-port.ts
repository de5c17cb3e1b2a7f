import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'

export interface OpenPort {
  readonly port: number
  /** Closes the port and every connection on it, whatever state its handshake is in. */
  close(): Promise<void>
}

/** Listens. Rejects with the error of the system when it cannot. */
export async function openPort(server: Server, address: { host: string; port: number }): Promise<OpenPort> {
  const sockets = new Set<Socket>()
  // Below TLS this is the plain connection, which is there before a handshake, and after one that failed.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', (_error, socket: Socket) => socket.destroy())
  server.listen(address)
  await once(server, 'listening')
  // A client that could not be accepted is the client's trouble.
  server.on('error', () => {})
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = server.listening ? once(server, 'close') : null
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
