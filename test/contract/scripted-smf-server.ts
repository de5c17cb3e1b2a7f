import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface ScriptedSmfServer extends AsyncDisposable {
  readonly port: number
  connections(): number
}

/** Answers what comes first with the first bytes, what comes next with the second, and so on; null ends. */
export async function startScriptedSmfServer(answers: readonly (Buffer | null)[]): Promise<ScriptedSmfServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    let next = 0
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', () => {
      const answer = answers[next]
      next += 1
      if (answer === null) socket.end()
      else if (answer !== undefined) socket.write(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
