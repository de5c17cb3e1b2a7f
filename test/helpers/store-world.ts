import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { registrationId } from '../../src/domain/ids.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal } from '../integration/reconcile-fixtures.ts'
import type { FaultProxy } from './fault-proxy.ts'
import type { TestRedis } from './redis.ts'
import type { RunningMesh } from './running-mesh.ts'
import { until } from './service.ts'

const SOME_MS = 2_500
/** Long enough that some of it is under way at any moment of a fault. */
const CLIENTS_PER_FAULT = 6

export const forSome = (ms = SOME_MS): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export interface StoreFault {
  readonly what: string
  /** Makes the fault and ends it. */
  readonly happen: (proxy: FaultProxy, world: RunningMesh) => Promise<void>
}

export const NETWORK: readonly StoreFault[] = [
  { what: 'resets all connections once', happen: async (proxy) => proxy.resetAll() },
  {
    what: 'resets all connections, again and again for some seconds',
    happen: async (proxy) => {
      for (let round = 0; round < 25; round += 1) {
        proxy.resetAll()
        await forSome(SOME_MS / 25)
      }
    },
  },
  {
    what: 'refuses connections for some seconds',
    happen: async (proxy) => {
      await proxy.set({ kind: 'refuse' })
      await forSome()
    },
  },
  {
    what: 'is silent for some seconds and then goes on',
    happen: async (proxy) => {
      await proxy.set({ kind: 'silent' })
      await forSome()
    },
  },
  {
    what: 'is silent for some seconds and then gone',
    happen: async (proxy) => {
      await proxy.set({ kind: 'silent' })
      await forSome()
      proxy.resetAll()
    },
  },
  {
    what: 'breaks off in the middle of answers',
    happen: async (proxy) => {
      await proxy.set({ kind: 'cut', direction: 'down', afterBytes: 700 })
      await forSome()
    },
  },
  {
    what: 'says goodbye to all clients',
    happen: async (proxy) => {
      await proxy.set({ kind: 'half-close', direction: 'down' })
      await forSome(200)
    },
  },
  {
    what: 'answers late for some seconds',
    happen: async (proxy) => {
      await proxy.set({ kind: 'late', delayMs: 150 })
      await forSome()
    },
  },
]

export const works = (world: RunningMesh, id: string): boolean =>
  world.mesh.sandbox.brokers.every(({ state }) => state.checkLogin(keyOf(id), givenSecretOf(id)) === 'accepted')

/** One worker lives through all faults of a store, with new work for each. */
export class StoreWorld {
  readonly world: RunningMesh
  readonly #clients: PortalRegistration[] = [client('first')]
  #enqueue: Awaited<ReturnType<RunningMesh['start']>>['enqueue'] | undefined

  constructor(world: RunningMesh) {
    this.world = world
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.world.import(ordersPortal(this.world.brokers, this.#clients))
    this.#enqueue = (await this.world.start(env)).enqueue
    await this.world.settled([0, 1])
  }

  async addClients(count: number): Promise<readonly string[]> {
    const ids = Array.from({ length: count }, (_, index) => `app-${this.#clients.length + index}`)
    this.#clients.push(...ids.map((id) => client(id)))
    await this.world.import({ registrations: this.#clients })
    return ids
  }

  async ask(ids: readonly string[]): Promise<void> {
    const { accountId } = this.world.mesh.context
    await Promise.all(ids.map((id) => this.#enqueue?.registration(accountId, registrationId(id))))
  }

  /** Writes are under way on the brokers when the fault comes. */
  async inTheMiddle(): Promise<readonly string[]> {
    for (const broker of this.world.mesh.sandbox.brokers) {
      broker.requests.reset()
      broker.setLatencyMs(25)
    }
    const ids = await this.addClients(CLIENTS_PER_FAULT)
    const asked = this.ask(ids)
    await until('work is under way', () => (this.world.mesh.writes() > 10 ? true : null))
    await asked
    return ids
  }

  async expectAllDone(ids: readonly string[]): Promise<void> {
    const { world } = this
    for (const broker of world.mesh.sandbox.brokers) broker.setLatencyMs(0)
    await world.settled([0, 1])
    expect(ids.filter((id) => !works(world, id))).toEqual([])
    for (const broker of world.mesh.sandbox.brokers) {
      expect(broker.state.queues.size).toBe(this.#clients.length)
      for (const id of ids) {
        expect(broker.state.queues.members(objectsOf(broker, id).queue, 'subscriptions')).toHaveLength(3)
      }
    }
    expect((await world.mesh.drift()).filter(({ kind }) => kind === 'conflict')).toEqual([])
  }
}

/** All that the queue keeps on Redis, and nothing of others on the server. */
export async function deleteKeys({ url }: TestRedis): Promise<void> {
  const direct = new Redis(url)
  const keys = await direct.keys('keymesh:*')
  expect(keys.length).toBeGreaterThan(0)
  await direct.del(...keys)
  await direct.quit()
}
