import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** `up` is what clients send, `down` what they are answered; both when a fault names none. */
export type Direction = 'up' | 'down'

/** What the proxy does to connections, those that are open and those that come. */
export type ProxyFault =
  | { readonly kind: 'none' }
  /** Nobody listens; open connections are reset. */
  | { readonly kind: 'refuse' }
  /** Open connections are reset, and each new one as soon as it is there. */
  | { readonly kind: 'reset' }
  /** Takes connections and passes nothing on. What came meanwhile is passed on when the fault ends. */
  | { readonly kind: 'silent'; readonly direction?: Direction }
  /** Passes so many bytes on, of each connection, then breaks it off: receivers see its end, or a reset. */
  | { readonly kind: 'cut'; readonly afterBytes: number; readonly direction?: Direction }
  | { readonly kind: 'slow'; readonly bytesPerSecond: number; readonly direction?: Direction }
  | { readonly kind: 'late'; readonly delayMs: number; readonly direction?: Direction }
  /** Says goodbye to the receiver of this direction; the other direction stays open. */
  | { readonly kind: 'half-close'; readonly direction: Direction }
  /** Answers each HTTP request by itself with these bytes, and closes. */
  | { readonly kind: 'answer'; readonly with: string }

const NONE: ProxyFault = { kind: 'none' }
const SLOW_TICK_MS = 50

/**
 * A port of this machine that passes bytes on to another one and back, and does to them what it is told. The target may
 * change: a server that was started again elsewhere is behind the same port.
 */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const proxy = new FaultProxy(targetPort)
  await proxy.listen()
  return proxy
}

export class FaultProxy implements AsyncDisposable {
  targetPort: number
  readonly #server: Server
  readonly #connections = new Set<ProxiedConnection>()
  #port = 0
  #fault: ProxyFault = NONE
  #accepted = 0

  constructor(targetPort: number) {
    this.targetPort = targetPort
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
  }

  get port(): number {
    return this.#port
  }

  /** How many clients came. */
  get accepted(): number {
    return this.#accepted
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#connections.size
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** From now on, until told otherwise. */
  async set(fault: ProxyFault): Promise<void> {
    const refused = this.#fault.kind === 'refuse'
    this.#fault = fault
    if (fault.kind === 'refuse' || fault.kind === 'reset') this.resetAll()
    if (fault.kind === 'refuse' && !refused) await this.#stopListening()
    if (fault.kind !== 'refuse' && refused) await this.listen()
    for (const connection of this.#connections) connection.set(fault)
  }

  /** Resets what is open now, once; whoever comes after that is served. */
  resetAll(): void {
    for (const connection of this.#connections) connection.reset()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#fault = { kind: 'reset' }
    for (const connection of this.#connections) connection.reset()
    await this.#stopListening()
  }

  async #stopListening(): Promise<void> {
    if (!this.#server.listening) return
    const ended = once(this.#server, 'close')
    this.#server.close()
    await ended
  }

  #accept(socket: Socket): void {
    this.#accepted += 1
    socket.on('error', () => undefined)
    if (this.#fault.kind === 'reset' || this.#fault.kind === 'refuse') {
      socket.resetAndDestroy()
      return
    }
    const connection = new ProxiedConnection(socket, this.targetPort, this.#fault)
    this.#connections.add(connection)
    void connection.ended.then(() => this.#connections.delete(connection))
  }
}

/** One client and the connection to the target on its behalf. */
class ProxiedConnection {
  readonly ended: Promise<unknown>
  readonly #client: Socket
  readonly #target: Socket
  readonly #up: Stream
  readonly #down: Stream
  #fault: ProxyFault
  #request = Buffer.alloc(0)

  constructor(client: Socket, targetPort: number, fault: ProxyFault) {
    this.#client = client
    this.#target = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    this.#fault = fault
    this.#up = new Stream(client, this.#target, () => this.reset())
    this.#down = new Stream(this.#target, client, () => this.reset())
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk))
    this.#target.on('data', (chunk: Buffer) => {
      if (this.#fault.kind !== 'answer') this.#down.take(chunk)
    })
    // One that breaks takes the other with it, as with nobody in between.
    client.on('error', () => this.reset())
    this.#target.on('error', () => this.reset())
    this.ended = Promise.all([closed(client), closed(this.#target)])
    this.set(fault)
  }

  set(fault: ProxyFault): void {
    this.#fault = fault
    const applies = (direction: Direction): boolean =>
      !('direction' in fault) || fault.direction === undefined || fault.direction === direction
    this.#up.set(applies('up') ? fault : NONE)
    this.#down.set(applies('down') ? fault : NONE)
  }

  reset(): void {
    this.#up.stop()
    this.#down.stop()
    for (const socket of [this.#client, this.#target]) {
      if (socket.connecting) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  #fromClient(chunk: Buffer): void {
    if (this.#fault.kind !== 'answer') {
      this.#up.take(chunk)
      return
    }
    this.#request = Buffer.concat([this.#request, chunk])
    if (!isWholeRequest(this.#request)) return
    this.#client.end(this.#fault.with)
    this.#target.destroy()
    // Whoever closes first takes the rest along; a client that does not is not waited for.
    this.#client.once('end', () => this.#client.destroy())
  }
}

/** `once` of Node would reject on an error before it. */
const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()))

function isWholeRequest(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0)
  return text.length >= end + 4 + length
}

/** One direction of one connection. */
class Stream {
  readonly #from: Socket
  readonly #to: Socket
  readonly #reset: () => void
  #fault: ProxyFault = NONE
  #waiting: Buffer[] = []
  #ended = false
  #saidGoodbye = false
  #left = Number.POSITIVE_INFINITY
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(from: Socket, to: Socket, reset: () => void) {
    this.#from = from
    this.#to = to
    this.#reset = reset
    from.on('end', () => {
      this.#ended = true
      this.#pump()
    })
    to.on('drain', () => from.resume())
    to.on('close', () => this.stop())
  }

  set(fault: ProxyFault): void {
    this.#fault = fault
    this.#left = fault.kind === 'cut' ? fault.afterBytes : Number.POSITIVE_INFINITY
    if (fault.kind === 'half-close') this.#goodbye()
    this.#pump()
  }

  take(chunk: Buffer): void {
    this.#waiting.push(chunk)
    this.#pump()
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#waiting = []
  }

  #pump(): void {
    const fault = this.#fault
    switch (fault.kind) {
      case 'silent':
        return
      case 'slow':
        if (this.#timers.size === 0) this.#trickle()
        return
      case 'late': {
        const chunks = this.#waiting.splice(0)
        const ended = this.#ended
        if (chunks.length > 0 || (ended && !this.#saidGoodbye))
          this.#later(fault.delayMs, () => this.#pass(chunks, ended))
        return
      }
      case 'none':
      case 'refuse':
      case 'reset':
      case 'cut':
      case 'half-close':
      case 'answer':
        // What is still on its way, late or slowly, keeps its place before this.
        if (this.#timers.size === 0) this.#pass(this.#waiting.splice(0), this.#ended)
        return
      default:
        fault satisfies never
    }
  }

  #trickle(): void {
    const fault = this.#fault
    if (fault.kind !== 'slow') {
      this.#pump()
      return
    }
    const bytes = Buffer.concat(this.#waiting)
    const share = Math.max(1, Math.floor((fault.bytesPerSecond * SLOW_TICK_MS) / 1_000))
    this.#waiting = bytes.length > share ? [bytes.subarray(share)] : []
    this.#pass([bytes.subarray(0, share)], this.#ended && this.#waiting.length === 0)
    if (this.#waiting.length > 0) this.#later(SLOW_TICK_MS, () => this.#trickle())
  }

  #later(delayMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      act()
      if (this.#timers.size === 0) this.#pump()
    }, delayMs)
    this.#timers.add(timer)
  }

  #pass(chunks: readonly Buffer[], ended: boolean): void {
    for (const chunk of chunks) {
      if (chunk.length === 0 || this.#saidGoodbye || !this.#to.writable) continue
      const passed = chunk.subarray(0, this.#left)
      this.#left -= passed.length
      const isLast = this.#left <= 0
      const flows = this.#to.write(passed, () => {
        if (isLast) this.#reset()
      })
      if (!flows) this.#from.pause()
      if (isLast) return
    }
    if (ended) this.#goodbye()
  }

  #goodbye(): void {
    if (this.#saidGoodbye) return
    this.#saidGoodbye = true
    this.#to.end()
  }
}
