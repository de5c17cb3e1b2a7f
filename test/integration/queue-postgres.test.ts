import { describe, expect, it } from 'vitest'
import { openQueueBackend } from '../../src/queue/queue-backend.ts'
import { withDatabase } from '../helpers/database.ts'

const observer = { onError: () => undefined, onJobFailed: () => undefined }

describe('the queue in the database of the service', () => {
  const database = withDatabase({ migrated: false })

  it('makes its own schema once when several replicas start together, and nothing outside it', async () => {
    const { connectionString, pool } = database()
    const replicas = await Promise.all([1, 2, 3, 4].map(() => openQueueBackend({ connectionString, observer })))
    for (const replica of replicas) await replica.queue('catalogue').add([{ name: 'poll-catalogue', payload: {} }])
    expect(await replicas[0]?.queue('catalogue').counts()).toMatchObject({ waiting: 4 })
    await Promise.all(replicas.map((replica) => replica.close()))
    const { rows } = await pool.query(
      `select distinct table_schema from information_schema.tables
        where table_schema not in ('pg_catalog', 'information_schema')`,
    )
    expect(rows).toEqual([{ table_schema: 'bullmq' }])
  })

  it('keeps options that the address already has', async () => {
    const url = new URL(database().connectionString)
    url.searchParams.set('options', '-c statement_timeout=12345')
    const backend = await openQueueBackend({ connectionString: url.href, observer })
    await backend.queue('catalogue').add([{ name: 'poll-catalogue', payload: {} }])
    await backend.close()
  })

  it.each([
    'postgres:///keymesh',
    'postgres:///keymesh?host=/var/run/postgresql',
    'postgres://%2Fvar%2Frun%2Fpostgresql/keymesh',
    'host=localhost dbname=keymesh',
  ])('is refused over a unix socket: %s', async (connectionString) => {
    await expect(openQueueBackend({ connectionString, observer })).rejects.toMatchObject({
      code: 'QUEUE_ADDRESS',
      fate: 'stop',
    })
  })
})
