import type { Lane } from './brokers/solace/request-limiter.ts'
import type { SempRequestEvent } from './brokers/solace/semp-client.ts'
import { createSolaceBroker, type SolaceBroker } from './brokers/solace/solace-broker.ts'
import { codeOf, KeymeshError } from './domain/errors.ts'
import type { BrokerFacts, BrokerPort } from './reconcile/ports.ts'
import type { BrokerKey } from './reconcile/sweep-port.ts'
import { readBrokerAccess } from './store/broker-settings.ts'
import type { Database } from './store/database.ts'
import type { Sealer } from './store/sealer-port.ts'

/** Told of each SEMP request, where it is sent. */
export type ObserveSemp = (broker: BrokerKey, event: SempRequestEvent) => void

export interface BrokerConnectionsOptions {
  readonly observe?: ObserveSemp
  /** While true sweeps take fewer of the connections to their broker. */
  readonly isUrgent?: () => boolean
}

interface Connection extends Ports {
  readonly fingerprint: string
}

type Ports = Readonly<Record<Lane, BrokerPort>>

/** One connection per broker and process, so that its limits hold for all work; a changed setting makes a new one. */
export class BrokerConnections {
  readonly #db: Database
  readonly #sealer: Sealer
  readonly #connections = new Map<string, Connection>()
  readonly #retired: Promise<void>[] = []
  readonly #observe: ObserveSemp
  readonly #isUrgent: () => boolean

  constructor(db: Database, sealer: Sealer, options: BrokerConnectionsOptions = {}) {
    this.#db = db
    this.#sealer = sealer
    this.#observe = options.observe ?? (() => undefined)
    this.#isUrgent = options.isUrgent ?? (() => false)
  }

  /** Throws `BROKER_UNUSABLE` when the broker is unknown or its management settings are incomplete. */
  async port(broker: BrokerKey, lane: Lane = 'foreground'): Promise<BrokerPort> {
    const access = await readBrokerAccess(this.#db, this.#sealer, broker)
    if (access === null) {
      throw new KeymeshError({
        code: 'BROKER_UNUSABLE',
        fate: 'stop',
        message: `Broker ${broker.brokerId} is unknown or its management settings are incomplete.`,
        hint: 'Import a portal file that holds its URL, message VPN, user name and password.',
      })
    }
    const key = JSON.stringify([broker.accountId, broker.brokerId])
    const fingerprint = JSON.stringify([access.management, access.passwordVersion])
    const known = this.#connections.get(key)
    if (known?.fingerprint === fingerprint) return known[lane]
    const { accountId, brokerId } = broker
    const onRequest = (event: SempRequestEvent): void => this.#observe({ accountId, brokerId }, event)
    const ports = shared(
      createSolaceBroker(access.management, await access.password(), { onRequest, isUrgent: this.#isUrgent }),
    )
    const raced = this.#connections.get(key)
    if (raced?.fingerprint === fingerprint) {
      await ports.foreground.close()
      return raced[lane]
    }
    this.#connections.set(key, { fingerprint, ...ports })
    // Work that still holds the former connection fails and is tried again on the new one.
    if (raced !== undefined) this.#retired.push(raced.foreground.close())
    return ports[lane]
  }

  async close(): Promise<void> {
    const ports = [...this.#connections.values()].map(({ foreground }) => foreground.close())
    this.#connections.clear()
    await Promise.all([...ports, ...this.#retired])
  }
}

const FACTS_FRESH_MS = 1000
/** Longer than a run takes from seeing the profile absent to creating it. */
const CREATED_FRESH_MS = 5000

/**
 * What runs side by side have in common is done once: the broker's facts, read at the start of each, serve all runs
 * that begin within a second, and a shared client profile that one of them created is no conflict for the others.
 */
function shared(broker: SolaceBroker): Ports {
  let read: { readonly facts: Promise<BrokerFacts>; readonly atMs: number } | null = null
  const createdAtMs = new Map<string, number>()

  const facts: BrokerPort['facts'] = (_signal, { fresh } = { fresh: false }) => {
    const nowMs = performance.now()
    if (read === null || fresh || nowMs - read.atMs > FACTS_FRESH_MS) {
      const reading = broker.facts()
      read = { facts: reading, atMs: nowMs }
      reading.catch(() => {
        if (read?.facts === reading) read = null
      })
    }
    return read.facts
  }
  const create = async (port: BrokerPort, ...[object, password, signal]: Parameters<BrokerPort['create']>) => {
    if (object.kind !== 'clientProfile') return port.create(object, password, signal)
    try {
      await port.create(object, password, signal)
      createdAtMs.set(object.name, performance.now())
    } catch (error) {
      // Another run of ours was faster after this one had seen the profile absent.
      const ours = performance.now() - (createdAtMs.get(object.name) ?? Number.NEGATIVE_INFINITY) <= CREATED_FRESH_MS
      if (codeOf(error) !== 'ALREADY_EXISTS' || !ours) throw error
    }
  }
  const view = (port: BrokerPort): BrokerPort => ({
    facts,
    create: (object, password, signal) => create(port, object, password, signal),
    get: (ref, signal) => port.get(ref, signal),
    list: (kind, signal) => port.list(kind, signal),
    members: (ref, signal) => port.members(ref, signal),
    queuedMessages: (name, signal) => port.queuedMessages(name, signal),
    connections: (name, signal) => port.connections(name, signal),
    update: (ref, attributes, password, signal) => port.update(ref, attributes, password, signal),
    addMember: (ref, kind, member, signal) => port.addMember(ref, kind, member, signal),
    removeMember: (ref, kind, member, signal) => port.removeMember(ref, kind, member, signal),
    delete: (ref, signal) => port.delete(ref, signal),
    close: () => port.close(),
  })
  return { foreground: view(broker), background: view(broker.background) }
}
