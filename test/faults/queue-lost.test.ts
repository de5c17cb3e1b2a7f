import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { redisAvailable, startTestRedis } from '../helpers/redis.ts'
import { type RunningMesh, startRunningMesh } from '../helpers/running-mesh.ts'
import { until } from '../helpers/service.ts'
import { deleteKeys, StoreWorld, works } from '../helpers/store-world.ts'

const NEVER = '0 0 29 2 *'
const DEADLOCK = '40P01'
const redis = redisAvailable()

describe('a queue whose data is lost while work waits', () => {
  const lost: readonly { readonly engine: string; readonly skip: boolean }[] = [
    { engine: 'PostgreSQL', skip: false },
    { engine: 'Redis', skip: !redis.available },
  ]
  it.each(lost)(
    'on $engine: the poll finds the work',
    async ({ engine, skip }) => {
      if (skip) return
      const server = engine === 'Redis' ? await startTestRedis() : null
      await using world = await startRunningMesh({
        brokers: 2,
        // Only the poll is to find it, and most of the work has to wait for its turn.
        env: { KEYMESH_SWEEP_CRON: NEVER, KEYMESH_CONCURRENCY: '2', ...(server && { REDIS_URL: server.url }) },
      })
      const store = new StoreWorld(world)
      await store.start()
      await world.proxy(0).set({ kind: 'silent' })
      const ids = await store.addClients(20)
      await store.ask(ids)
      const { db } = world.mesh.context
      await until('one failed', async () => {
        const failed = await db.selectFrom('pairs').select('state').where('state', '=', 'error').execute()
        return failed.length > 0 ? true : null
      })
      if (server === null) await until('the queue is empty', () => truncateQueue(world))
      else await deleteKeys(server)
      await world.proxy(0).set({ kind: 'none' })
      // What failed is due again after a minute, which passes.
      await until('the rest is done', async () => {
        await sql`update pairs set due_at = now() where state = 'error'`.execute(db)
        return ids.every((id) => works(world, id)) ? true : null
      })
      await store.expectAllDone(ids)
      await world.expectSecretsInPlace()
      await world.stop()
      await server?.stop()
    },
    90_000,
  )
})

/** Null when the work of the moment stood in the way: its transactions and this one waited for each other. */
async function truncateQueue({ mesh }: RunningMesh): Promise<true | null> {
  const { rows } = await sql<{ name: string }>`
    select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables
    where schemaname = 'bullmq' and tablename not like '%migration%'`.execute(mesh.context.db)
  expect(rows.map(({ name }) => name)).toContain('bullmq.job')
  const truncate = sql`truncate ${sql.raw(rows.map(({ name }) => name).join(', '))}`
  return truncate.execute(mesh.context.db).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === DEADLOCK) return null
      throw error
    },
  )
}
