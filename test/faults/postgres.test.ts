import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { startRunningMesh } from '../helpers/running-mesh.ts'
import { NETWORK, type StoreFault, StoreWorld } from '../helpers/store-world.ts'

describe('a worker whose PostgreSQL', () => {
  let store: StoreWorld
  beforeAll(async () => {
    store = new StoreWorld(await startRunningMesh({ brokers: 2, requestTimeoutMs: 5_000 }))
    await store.start()
  })
  afterAll(() => store.world[Symbol.asyncDispose]())
  afterEach(() => store.world.database.set({ kind: 'none' }))

  const faults: readonly StoreFault[] = [
    ...NETWORK,
    {
      what: 'ends all sessions, as an administrator does',
      happen: async (_proxy, { mesh }) => {
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()
            and application_name in ('keymesh', 'keymesh-queue')`.execute(mesh.context.db)
      },
    },
  ]
  it.each(faults)(
    '$what: goes on by itself where it was',
    async ({ happen }) => {
      const ids = await store.inTheMiddle()
      await happen(store.world.database, store.world)
      await store.world.database.set({ kind: 'none' })
      await store.expectAllDone(ids)
    },
    90_000,
  )

  it('after all that: no secret is anywhere but on its own username', () => store.world.expectSecretsInPlace())
})
