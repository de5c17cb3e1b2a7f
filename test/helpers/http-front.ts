import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FrontRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
}

/** Answers instead of the server behind; true when it did. */
export type Fault = (request: FrontRequest, response: ServerResponse) => boolean

/** An HTTP server in front of another one: it keeps what was asked, and can fail instead of it. */
export class HttpFront implements AsyncDisposable {
  readonly requests: FrontRequest[] = []
  readonly url: string
  readonly #server: ReturnType<typeof createServer>
  #fault: Fault | null = null

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(behind: string): Promise<HttpFront> {
    let front: HttpFront | null = null
    const server = createServer((incoming, response) => front?.answer(behind, incoming, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    front = new HttpFront(server)
    return front
  }

  /** Until it is told otherwise. */
  failWith(fault: Fault | null): void {
    this.#fault = fault
  }

  answer(behind: string, incoming: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '', headers } = incoming
    const asked = { method, path: url.split('?')[0] ?? '' }
    this.requests.push(asked)
    if (this.#fault?.(asked, response) === true) return
    const forwarded = request(`${behind}${url}`, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    incoming.pipe(forwarded)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** A fault: this status for every request whose path ends so. */
export const refusing =
  (ending: string, status: number): Fault =>
  ({ path }, response) => {
    if (!path.endsWith(ending)) return false
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ message: 'refused', errorId: 'test' }))
    return true
  }
