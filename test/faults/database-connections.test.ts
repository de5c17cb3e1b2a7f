import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { openQueueBackend } from '../../src/queue/queue-backend.ts'
import { openDatabase } from '../../src/store/database.ts'
import { withDatabase } from '../helpers/database.ts'
import { type FaultProxy, startFaultProxy } from '../helpers/fault-proxy.ts'
import { until } from '../helpers/service.ts'

const database = withDatabase()

async function proxied(): Promise<{ readonly proxy: FaultProxy; readonly connectionString: string }> {
  const url = new URL(database().connectionString)
  const proxy = await startFaultProxy(Number(url.port))
  url.port = String(proxy.port)
  return { proxy, connectionString: url.href }
}

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )

/** Its server goes on with a query whose client is gone. */
const SLEEPERS = `from pg_stat_activity where query like 'select pg_sleep%' and datname = current_database()`

/** An error that nobody listens to fails the run, whatever these tests say. */
describe('connections to a database that is silent', () => {
  it('do not hold up those who want to end', async () => {
    const { proxy, connectionString } = await proxied()
    await using _ = proxy
    const { db, close } = openDatabase({ connectionString, maxConnections: 2, onIdleError: () => undefined })
    const observer = { onError: () => undefined, onJobFailed: () => undefined }
    const backend = await openQueueBackend({ connectionString, observer })
    await sql`select 1`.execute(db)
    const worker = backend.worker('some-queue', async () => ({ status: 'done' }), { concurrency: 1 })
    await backend.queue('some-queue').counts()
    await proxy.set({ kind: 'silent' })
    const query = errorOf(sql`select 1`.execute(db))
    const counts = errorOf(backend.queue('some-queue').counts())
    await worker.close(100)
    await Promise.all([backend.close(), close()])
    proxy.resetAll()
    expect(await query).toBeInstanceOf(Error)
    expect(await counts).toBeInstanceOf(Error)
  })
})

describe('connections of a queue that was closed', () => {
  it('are no error when the server stops before it has read their goodbye', async () => {
    const { proxy, connectionString } = await proxied()
    await using _ = proxy
    const errors: string[] = []
    const observer = {
      onError: (_queue: string, { message }: Error) => void errors.push(message),
      onJobFailed: () => undefined,
    }
    const backend = await openQueueBackend({ connectionString, observer })
    await backend.queue('some-queue').counts()
    const { pool } = database()
    const OURS = `from pg_stat_activity where application_name = 'keymesh-queue' and datname = current_database()`
    const ours = async (also = ''): Promise<number | null> => (await pool.query(`select 1 ${OURS} ${also}`)).rowCount
    // A new queue has more to say than what it was asked.
    await until('all is said', async () => ((await ours(`and state = 'idle'`)) === proxy.open ? true : null))
    await proxy.set({ kind: 'silent', direction: 'up' })
    await backend.close()
    expect((await pool.query(`select pg_terminate_backend(pid) ${OURS}`)).rowCount).toBeGreaterThan(0)
    await until('the server let them go', async () => ((await ours()) === 0 ? true : null))
    await proxy.set({ kind: 'none' })
    await until('they are closed', () => (proxy.open === 0 ? true : null))
    expect(errors).toEqual([])
  })
})

describe('a database connection that breaks', () => {
  it('under a query fails the query, and the next one works', async () => {
    const { proxy, connectionString } = await proxied()
    await using _ = proxy
    const idle: Error[] = []
    const { db, close } = openDatabase({
      connectionString,
      maxConnections: 2,
      onIdleError: (error) => idle.push(error),
    })
    const query = errorOf(sql`select pg_sleep(60)`.execute(db))
    const { pool } = database()
    await until('it runs', async () => ((await pool.query(`select ${SLEEPERS}`)).rows.length > 0 ? true : null))
    proxy.resetAll()
    expect(await query).toBeInstanceOf(Error)
    expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
    expect(idle).toEqual([])
    await pool.query(`select pg_terminate_backend(pid) ${SLEEPERS}`)
    await close()
  })

  it('between two queries of a transaction rolls it back, and the next one works', async () => {
    const { proxy, connectionString } = await proxied()
    await using _ = proxy
    const { db, close } = openDatabase({ connectionString, maxConnections: 2, onIdleError: () => undefined })
    await sql`create table if not exists broken (id integer)`.execute(db)
    const transaction = db.transaction().execute(async (trx) => {
      await sql`insert into broken values (1)`.execute(trx)
      proxy.resetAll()
      await until('the reset is here', () => (proxy.open === 0 ? true : null))
      await sql`insert into broken values (2)`.execute(trx)
    })
    expect(await errorOf(transaction)).toBeInstanceOf(Error)
    expect((await sql`select * from broken`.execute(db)).rows).toEqual([])
    await close()
  })

  it('of the queue, lent out or not, is reported at most and replaced', async () => {
    const { proxy, connectionString } = await proxied()
    await using _ = proxy
    const observer = { onError: () => undefined, onJobFailed: () => undefined }
    const backend = await openQueueBackend({ connectionString, observer })
    const ran: string[] = []
    const worker = backend.worker(
      'some-queue',
      async ({ name }) => {
        ran.push(name)
        return { status: 'done' }
      },
      { concurrency: 2 },
    )
    const add = () => backend.queue('some-queue').add([{ name: 'prune-records', payload: {} }])
    await add()
    await until('it works', () => (ran.length === 1 ? true : null))
    for (let round = 0; round < 5; round += 1) {
      const added = add().catch(() => undefined)
      proxy.resetAll()
      await added
    }
    const before = ran.length
    // An idle connection may not know yet that it is gone.
    await until('a job is taken', () =>
      add().then(
        () => true,
        () => null,
      ),
    )
    await until('it works again', () => (ran.length > before ? true : null))
    await worker.close(5_000)
    await backend.close()
  })
})

describe('a queue whose engine refuses', () => {
  it('is not asked many times a second, and works again when it does', async () => {
    const { pool, connectionString } = database()
    const errors: string[] = []
    const observer = {
      onError: (_queue: string, { message }: Error) => void errors.push(message),
      onJobFailed: () => undefined,
    }
    const backend = await openQueueBackend({ connectionString, observer })
    const ran: string[] = []
    const worker = backend.worker(
      'refused',
      async ({ name }) => {
        ran.push(name)
        return { status: 'done' }
      },
      { concurrency: 2 },
    )
    await backend.queue('refused').add([{ name: 'prune-records', payload: {} }])
    await until('it works', () => (ran.length === 1 ? true : null))
    await pool.query(`
      create function bullmq.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
      create trigger refuse before update on bullmq.job for each row execute function bullmq.refuse()`)
    await backend.queue('refused').add([{ name: 'prune-records', payload: {} }])
    try {
      await until('it is refused', () => (errors.length >= 2 ? true : null))
      const before = errors.length
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      expect(errors.length - before).toBeLessThanOrEqual(8)
    } finally {
      await pool.query('drop trigger refuse on bullmq.job')
    }
    await until('it works again', () => (ran.length === 2 ? true : null))
    await worker.close(5_000)
    await backend.close()
  })
})
