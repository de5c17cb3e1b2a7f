import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../helpers/fault-proxy.ts'
import { redisAvailable, startTestRedis, type TestRedis } from '../helpers/redis.ts'
import { startRunningMesh } from '../helpers/running-mesh.ts'
import { deleteKeys, forSome, NETWORK, type StoreFault, StoreWorld } from '../helpers/store-world.ts'

const redis = redisAvailable()

describe.skipIf(!redis.available)('a worker whose Redis', () => {
  let store: StoreWorld
  let server: TestRedis
  let proxy: FaultProxy
  beforeAll(async () => {
    server = await startTestRedis()
    proxy = await startFaultProxy(Number(new URL(server.url).port))
    store = new StoreWorld(await startRunningMesh({ brokers: 2, requestTimeoutMs: 5_000 }))
    await store.start({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` })
  })
  afterAll(async () => {
    await store?.world[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await server?.stop()
  })
  afterEach(() => proxy.set({ kind: 'none' }))

  const faults: readonly StoreFault[] = [
    ...NETWORK,
    {
      what: 'is stopped, and started with nothing kept',
      happen: async () => {
        await proxy.set({ kind: 'refuse' })
        await deleteKeys(server)
        await forSome()
      },
    },
  ]
  it.each(faults)(
    '$what: goes on by itself where it was',
    async ({ happen }) => {
      const ids = await store.inTheMiddle()
      await happen(proxy, store.world)
      await proxy.set({ kind: 'none' })
      await store.expectAllDone(ids)
    },
    90_000,
  )

  it.each([{ kind: 'refuse' }, { kind: 'silent' }] as const)(
    'is away ($kind): ends when it is told, and goes on after the next start',
    async (fault) => {
      const ids = await store.inTheMiddle()
      await proxy.set(fault)
      await store.world.stop()
      await proxy.set({ kind: 'none' })
      await store.start({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` })
      await store.expectAllDone(ids)
    },
    90_000,
  )

  it('after all that: no secret is anywhere but on its own username', () => store.world.expectSecretsInPlace())
})
