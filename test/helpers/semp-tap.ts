import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface WritePoint {
  /** 1 is the first write from now on. */
  readonly write: number
  /** `before`: the broker never gets it; `after`: the broker did it, and nobody gets to know. */
  readonly moment: 'before' | 'after'
}

export interface TappedWrite {
  readonly method: string
  readonly path: string
  readonly body: string
  /** The SEMP session of who sent it: one for each process. */
  readonly session: string
}

export interface SempTapOptions {
  /** Told when a write came and when its answer goes back. */
  readonly onWrite?: (write: TappedWrite, moment: 'came' | 'answered') => void
}

/**
 * An HTTP server in front of a broker's management address that stops writes where it is told. Reads pass. The broker
 * does what it is asked in the order in which it comes, so that a stopped write leaves it exactly where it is.
 */
export async function startSempTap(behind: string, options: SempTapOptions = {}): Promise<SempTap> {
  const tap = new SempTap(behind, options)
  await tap.listen()
  return tap
}

export class SempTap implements AsyncDisposable {
  readonly #behind: string
  readonly #options: SempTapOptions
  readonly #server: Server
  readonly #agent = new Agent({ keepAlive: true })
  #url = ''
  #point: WritePoint | null = null
  #writes = 0
  #reach: () => void = () => undefined
  #withheld: (() => void)[] = []

  constructor(behind: string, options: SempTapOptions) {
    this.#behind = behind
    this.#options = options
    this.#server = createServer((incoming, response) => this.#take(incoming, response))
  }

  get url(): string {
    return this.#url
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves when that write is stopped; all that come later are stopped before the broker gets them. */
  hold(point: WritePoint): Promise<void> {
    this.#point = point
    this.#writes = 0
    return new Promise((resolve) => {
      this.#reach = resolve
    })
  }

  /** Stops nothing more, and keeps what was withheld until the answer is called. */
  keep(): () => void {
    this.#point = null
    const withheld = this.#withheld
    this.#withheld = []
    return () => {
      for (const pass of withheld) pass()
    }
  }

  /** Passes on what was withheld, and stops nothing more. Who sent it may be gone: the broker gets it all the same. */
  release(): void {
    this.keep()()
  }

  /** Stops nothing more, and forgets what was withheld. */
  clear(): void {
    this.#point = null
    this.#withheld = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.clear()
    this.#server.closeAllConnections()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
    this.#agent.destroy()
  }

  #take(incoming: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = 'GET', url = '', headers } = incoming
      const body = Buffer.concat(chunks)
      if (method === 'GET') {
        this.#forward({ method, url, headers, body }, response)
        return
      }
      const write = { method, path: url.split('?')[0] ?? '', body: body.toString(), session: headers.cookie ?? '' }
      this.#options.onWrite?.(write, 'came')
      response.once('close', () => this.#options.onWrite?.(write, 'answered'))
      this.#writes += 1
      const moment = this.#momentOf(this.#writes)
      const reach = this.#writes === this.#point?.write ? this.#reach : () => undefined
      if (moment === 'before') {
        this.#withheld.push(() => this.#forward({ method, url, headers, body }, response))
        reach()
        return
      }
      this.#forward({ method, url, headers, body }, response, (send) => {
        if (moment === null) {
          send()
          return
        }
        this.#withheld.push(send)
        reach()
      })
    })
  }

  #momentOf(write: number): WritePoint['moment'] | null {
    if (this.#point === null || write < this.#point.write) return null
    return write === this.#point.write ? this.#point.moment : 'before'
  }

  #forward(
    asked: Pick<IncomingMessage, 'headers'> & { readonly method: string; readonly url: string; readonly body: Buffer },
    response: ServerResponse,
    answer: (send: () => void) => void = (send) => send(),
  ): void {
    const { method, url, headers, body } = asked
    const forwarded = request(`${this.#behind}${url}`, { method, headers, agent: this.#agent }, (found) => {
      const chunks: Buffer[] = []
      found.on('data', (chunk: Buffer) => chunks.push(chunk))
      found.on('end', () => {
        answer(() => {
          response.writeHead(found.statusCode ?? 502, found.headers)
          response.end(Buffer.concat(chunks))
        })
      })
    })
    forwarded.on('error', () => response.destroy())
    forwarded.end(body)
  }
}
