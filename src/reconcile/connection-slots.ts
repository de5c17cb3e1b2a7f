import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { ClientUsernameConnections } from './ports.ts'

export interface ConnectionSlotsOptions {
  /** See `BrokerPort.connections`. */
  readonly count: () => Promise<ClientUsernameConnections | null>
  readonly now: () => number
}

/** What was counted longer ago is counted again before the next login. */
const FRESH_MS = 2000

/** What the client profile's limit leaves to probes of one client username: all but the last connection. */
export class ConnectionSlots {
  readonly #options: ConnectionSlotsOptions
  #counted: { readonly connections: ClientUsernameConnections | null; readonly atMs: number }

  private constructor(options: ConnectionSlotsOptions, connections: ClientUsernameConnections | null) {
    this.#options = options
    this.#counted = { connections, atMs: options.now() }
  }

  /** Null when no limit is near enough to count, or nobody can tell. */
  static async open(options: ConnectionSlotsOptions): Promise<ConnectionSlots | null> {
    const connections = await options.count()
    return connections === null ? null : new ConnectionSlots(options, connections)
  }

  /** A verdict when a probe might keep a client out; null when it may log in. */
  async refusal(): Promise<Verdict | null> {
    const { count, now } = this.#options
    if (now() - this.#counted.atMs > FRESH_MS) this.#counted = { connections: await count(), atMs: now() }
    const { connections } = this.#counted
    if (connections === null || connections.open < connections.limit - 1) return null
    const { open, limit } = connections
    return notVerified(
      'connection-limit',
      `${open} of ${limit} allowed connections are open, and the last one is left to the client`,
    )
  }
}
