import { createHash, timingSafeEqual } from 'node:crypto'
import type { ObjectCollection, StoredObject } from './object-collection.ts'

/** A simulated client connection; `queueName` when it consumes from a queue. */
export interface ConnectedClient {
  /** The broker's own name for the connection. */
  readonly clientName: string
  readonly clientUsername: string
  readonly queueName: string | null
}

export interface ConnectOptions {
  readonly queueName?: string
  /** Called once when the broker drops the client; a login listener closes its socket here. */
  readonly onDrop?: () => void
}

/** What a login with a name and a password comes to. */
export type LoginOutcome = 'accepted' | 'unknown-username' | 'wrong-password' | 'shutdown' | 'msg-vpn-shutdown'

/**
 * The accounts of one message VPN: client usernames with their passwords, and who is connected. The SEMP server writes
 * it; login listeners read it.
 */
export class AccountTable {
  readonly #msgVpn: () => StoredObject | undefined
  readonly #usernames: () => ObjectCollection | undefined
  readonly #clients = new Map<ConnectedClient, (() => void) | null>()
  #connections = 0
  /** Clients that the broker disconnected since the last reset. */
  clientsDropped = 0
  /** Consumers whose binding to a queue the broker ended since the last reset. */
  consumersDropped = 0

  constructor(msgVpn: () => StoredObject | undefined, usernames: () => ObjectCollection | undefined) {
    this.#msgVpn = msgVpn
    this.#usernames = usernames
  }

  /** The stored password in clear text, for assertions and logins; null when the username is absent. */
  passwordOf(clientUsername: string): string | null {
    const account = this.#usernames()?.get(clientUsername)
    return account === undefined ? null : (account.secrets?.password?.reveal() ?? '')
  }

  checkLogin(clientUsername: string, password: string): LoginOutcome {
    const msgVpn = this.#msgVpn()
    if (msgVpn?.values.enabled !== true) return 'msg-vpn-shutdown'
    const account = this.#usernames()?.get(clientUsername)
    if (msgVpn.values.authenticationBasicType !== 'none') {
      const matches = isSameText(this.passwordOf(clientUsername) ?? '', password)
      if (account === undefined) return 'unknown-username'
      if (!matches) return 'wrong-password'
    }
    return account?.values.enabled === false ? 'shutdown' : 'accepted'
  }

  connect(clientUsername: string, options: ConnectOptions = {}): ConnectedClient {
    this.#connections += 1
    const clientName = `#client/${this.#connections}`
    const client: ConnectedClient = { clientName, clientUsername, queueName: options.queueName ?? null }
    this.#clients.set(client, options.onDrop ?? null)
    return client
  }

  disconnect(client: ConnectedClient): void {
    this.#clients.delete(client)
  }

  clients(): ConnectedClient[] {
    return [...this.#clients.keys()]
  }

  connectionsOf(clientUsername: string): number {
    let count = 0
    for (const client of this.#clients.keys()) if (client.clientUsername === clientUsername) count += 1
    return count
  }

  isConnected(client: ConnectedClient): boolean {
    return this.#clients.has(client)
  }

  dropClients(clientUsername: string | null): void {
    this.clientsDropped += this.#drop((client) => clientUsername === null || client.clientUsername === clientUsername)
  }

  dropConsumers(queueName: string): void {
    this.consumersDropped += this.#drop((client) => client.queueName === queueName)
  }

  #drop(isDropped: (client: ConnectedClient) => boolean): number {
    let dropped = 0
    for (const [client, onDrop] of this.#clients) {
      if (!isDropped(client)) continue
      this.#clients.delete(client)
      dropped += 1
      onDrop?.()
    }
    return dropped
  }
}

/** Takes as long whatever of the two is the same. */
const isSameText = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
