import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket } from 'node:net'

const owners = new AsyncLocalStorage<OwnedSockets>()
let isWatching = false

/**
 * Every socket that a library connects, now or after a name look-up, on behalf of one call: to be sure that none is left
 * when the library forgets one.
 */
export class OwnedSockets {
  readonly #sockets = new Set<Socket>()
  #isClosed = false

  run<T>(call: () => T): T {
    watch()
    return owners.run(this, call)
  }

  /** Closes what is open and lets nothing connect from now on. */
  close(): void {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Resolves when what was sent is on its way and every socket is closed, or else on `close`. */
  async end(): Promise<void> {
    const closings = [...this.#sockets].map(
      (socket) =>
        new Promise<void>((resolve) => {
          if (socket.closed) return resolve()
          socket.once('close', () => resolve())
          if (socket.connecting) socket.destroy()
          else socket.destroySoon()
        }),
    )
    await Promise.all(closings)
    this.close()
  }

  take(socket: Socket): boolean {
    if (this.#isClosed) return false
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return true
  }
}

/** Once for the thread. What connects on nobody's behalf does so as ever. */
function watch(): void {
  if (isWatching) return
  isWatching = true
  const connect = Socket.prototype.connect
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]): Socket {
    const owner = owners.getStore()
    if (owner === undefined || owner.take(this)) return Reflect.apply(connect, this, given)
    process.nextTick(() => this.destroy())
    return this
  }
}
