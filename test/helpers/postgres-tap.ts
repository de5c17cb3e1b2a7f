import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Where a process is stopped on its way through the database. */
export interface StatementPoint {
  /** Of the statement's text. */
  readonly statement: RegExp
  /** What its transaction has sent by then, values among it. */
  readonly about?: readonly string[]
  /** `before`: the server never gets the statement; `after`: it is done, and the process does not get to know. */
  readonly moment: 'before' | 'after'
  /** Text of the answer, for `after`: a statement with another answer passes. */
  readonly answer?: string
}

/** One statement that is caught, the first that comes; all others pass. */
export interface Hold {
  /** Resolves when the process is stopped there. */
  readonly reached: Promise<void>
  readonly isReached: () => boolean
  /** Passes on what was withheld. */
  release(): void
}

/**
 * A port in front of a PostgreSQL server that reads along (protocol 3.0, without TLS) and stops connections at chosen
 * statements. A client that goes away takes its connection to the server with it, as if nobody were in between.
 */
export async function startPostgresTap(connectionString: string): Promise<PostgresTap> {
  const tap = new PostgresTap(new URL(connectionString))
  await tap.listen()
  return tap
}

interface ArmedHold {
  readonly point: StatementPoint
  /** False when it has caught one already. */
  readonly catch: (connection: TappedConnection) => boolean
  readonly reach: () => void
}

type Find = (statement: string, transaction: string) => ArmedHold | null

export class PostgresTap implements AsyncDisposable {
  readonly #target: URL
  readonly #server: Server
  readonly #connections = new Set<TappedConnection>()
  readonly #armed = new Set<ArmedHold>()
  #port = 0

  constructor(target: URL) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
  }

  /** The same database, through the tap. */
  get connectionString(): string {
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String(this.#port)
    return url.href
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  hold(point: StatementPoint): Hold {
    let reach: () => void = () => undefined
    let isReached = false
    let holding: TappedConnection | null = null
    const reached = new Promise<void>((resolve) => {
      reach = () => {
        isReached = true
        resolve()
      }
    })
    const armed: ArmedHold = {
      point,
      reach: () => reach(),
      catch: (connection) => {
        if (!this.#armed.delete(armed)) return false
        holding = connection
        return true
      },
    }
    this.#armed.add(armed)
    return {
      reached,
      isReached: () => isReached,
      release: () => {
        this.#armed.delete(armed)
        holding?.release()
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.destroy()
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  #accept(client: Socket): void {
    const target = connect({ host: this.#target.hostname, port: Number(this.#target.port || 5432), noDelay: true })
    const connection = new TappedConnection(client, target, (statement, transaction) =>
      this.#find(statement, transaction),
    )
    this.#connections.add(connection)
    client.once('close', () => this.#connections.delete(connection))
  }

  #find(statement: string, transaction: string): ArmedHold | null {
    for (const hold of this.#armed) {
      const { statement: pattern, about = [] } = hold.point
      if (pattern.test(statement) && about.every((text) => transaction.includes(text))) return hold
    }
    return null
  }
}

/** Types of frontend messages after which the server acts: Query, Sync, Flush, and what has no answer. */
const ENDS_GROUP = new Set(['Q', 'S', 'H', 'X', 'p', 'c', 'd', 'f', 'F'])
const IDLE = 'I'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)

class TappedConnection {
  readonly #client: Socket
  readonly #target: Socket
  readonly #find: Find
  #fromClient = Buffer.alloc(0)
  #fromTarget = Buffer.alloc(0)
  #isStarted = false
  /** Messages that came and do not make the server act yet. */
  #group: Buffer[] = []
  /** What was sent since the transaction began. */
  #transaction = ''
  #heldUp: Buffer[] | null = null
  #heldDown: Buffer[] | null = null
  /** What decides, when the answer is there, whether it is withheld. */
  #answering: ArmedHold | null = null

  constructor(client: Socket, target: Socket, find: Find) {
    this.#client = client
    this.#target = target
    this.#find = find
    client.on('data', (chunk: Buffer) => this.#takeUp(chunk))
    target.on('data', (chunk: Buffer) => this.#takeDown(chunk))
    for (const socket of [client, target]) {
      socket.on('error', () => this.destroy())
      socket.on('close', () => this.destroy())
    }
  }

  destroy(): void {
    this.#client.destroy()
    this.#target.destroy()
  }

  release(): void {
    const [up, down] = [this.#heldUp, this.#heldDown]
    this.#heldUp = null
    this.#heldDown = null
    for (const chunk of down ?? []) this.#client.write(chunk)
    for (const group of up ?? []) this.#pass(group)
  }

  #takeUp(chunk: Buffer): void {
    this.#fromClient = Buffer.concat([this.#fromClient, chunk])
    for (;;) {
      // The first message has no type (protocol 3.0, 55.7).
      const header = this.#isStarted ? 1 : 0
      if (this.#fromClient.length < header + 4) return
      const length = header + this.#fromClient.readInt32BE(header)
      if (this.#fromClient.length < length) return
      const message = this.#fromClient.subarray(0, length)
      this.#fromClient = this.#fromClient.subarray(length)
      this.#group.push(message)
      if (this.#isStarted && !ENDS_GROUP.has(String.fromCharCode(message[0] ?? 0))) continue
      this.#isStarted = true
      const group = Buffer.concat(this.#group)
      this.#group = []
      if (this.#heldUp === null) this.#pass(group)
      else this.#heldUp.push(group)
    }
  }

  #pass(group: Buffer): void {
    const statement = group.toString('utf8')
    this.#transaction += statement
    const hold = this.#find(statement, this.#transaction)
    if (hold?.point.moment === 'before' && hold.catch(this)) {
      this.#heldUp = [group]
      hold.reach()
      return
    }
    if (hold?.point.moment === 'after') {
      this.#heldDown = []
      this.#answering = hold
    }
    this.#target.write(group)
  }

  #takeDown(chunk: Buffer): void {
    if (this.#heldDown === null) this.#client.write(chunk)
    else this.#heldDown.push(chunk)
    this.#fromTarget = Buffer.concat([this.#fromTarget, chunk])
    while (this.#fromTarget.length >= 5) {
      const length = 1 + this.#fromTarget.readInt32BE(1)
      if (this.#fromTarget.length < length) return
      const message = this.#fromTarget.subarray(0, length)
      this.#fromTarget = this.#fromTarget.subarray(length)
      if (message[0] !== READY_FOR_QUERY) continue
      if (message[5] === IDLE) this.#transaction = ''
      this.#answered()
    }
  }

  #answered(): void {
    const hold = this.#answering
    if (hold === null) return
    this.#answering = null
    const { answer = '' } = hold.point
    if (Buffer.concat(this.#heldDown ?? []).includes(answer) && hold.catch(this)) hold.reach()
    else this.release()
  }
}
