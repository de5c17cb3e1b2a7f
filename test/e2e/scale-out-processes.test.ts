import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Disposer } from '../../src/disposer.ts'
import { startPostgresTap } from '../helpers/postgres-tap.ts'
import { Service, until } from '../helpers/service.ts'
import { suppliedCredential } from '../integration/import-fixtures.ts'
import { client, keyOf } from '../integration/reconcile-fixtures.ts'
import { Replicas } from '../integration/scale-out-fixtures.ts'
import { farCron } from './crash-world.ts'

const APP = 'app'
const [FIRST, SECOND, THIRD] = ['first-secret-Lw58', 'second-secret-Lw58', 'third-secret-Lw58'] as const
const withSecret = (secret: string) => client(APP, { credentials: [suppliedCredential('main', keyOf(APP), secret)] })

const opened = new Disposer()
afterEach(() => opened.dispose())

describe('a process that stands still for longer than its lease', { timeout: 180_000 }, () => {
  it('is overtaken by another, and the old password that it sends when it goes on is replaced', async () => {
    const replicas = await Replicas.open([withSecret(FIRST)])
    opened.defer(() => replicas[Symbol.asyncDispose]())
    const { mesh, writes } = replicas
    const { state } = mesh.broker()
    await mesh.context.engine.reconcilePair(mesh.pair(APP), { trigger: 'on-demand' })
    const tap = await startPostgresTap(mesh.database.connectionString)
    opened.defer(() => tap[Symbol.asyncDispose]())
    const start = async (name: string, connectionString: string): Promise<Service> => {
      const dataDirectory = await mkdtemp(join(tmpdir(), `keymesh-${name}-`))
      opened.defer(() => rm(dataDirectory, { recursive: true, force: true }))
      const env = {
        ...mesh.env,
        DATABASE_URL: connectionString,
        KEYMESH_LOG_LEVEL: 'info',
        KEYMESH_ROLES: 'worker,scheduler',
        KEYMESH_POLL_CRON: '* * * * * *',
        // No sweep comes to its help.
        KEYMESH_SWEEP_CRON: farCron(),
        KEYMESH_LEASE: '3s',
      }
      const service = await Service.start({ dataDirectory, env })
      opened.defer(() => service.kill())
      return service
    }
    const passwords: string[] = []
    const seen = () => {
      const password = state.passwordOf(keyOf(APP))
      if (password !== null && passwords.at(-1) !== password) passwords.push(password)
    }
    replicas.onAnswer(seen)
    seen()

    const still = await start('still', tap.connectionString)
    // It is told that it may write, and hears of it when others have done so.
    const permission = tap.hold({ statement: /p\.generation = w\.generation/, about: [APP], moment: 'after' })
    await mesh.import({ registrations: [withSecret(SECOND)] })
    await until('it may write', () => (permission.isReached() ? true : null))
    still.pause()
    await mesh.import({ registrations: [withSecret(THIRD)] })
    const other = await start('other', mesh.database.connectionString)
    await until('the other took over', async () => {
      const isDone = state.passwordOf(keyOf(APP)) === THIRD && (await isAtRest())
      return isDone ? true : null
    })
    expect(passwords).toEqual([FIRST, THIRD])
    const before = writes.length

    permission.release()
    still.resume()
    await until('the old password came and went', async () =>
      passwords.length >= 4 && (await isAtRest()) ? true : null,
    )
    expect(passwords).toEqual([FIRST, THIRD, SECOND, THIRD])
    expect(writes.slice(before).map(({ method }) => method)).toEqual(['PATCH', 'PATCH'])
    expect(await mesh.secretOf(keyOf(APP))).toBe(THIRD)
    expect(await replicas.requestState(APP)).toBe('LIVE')
    expect(await Promise.all([still.stop(), other.stop()])).toEqual([0, 0])

    async function isAtRest(): Promise<boolean> {
      const { rows } = await mesh.database.pool.query(
        'select 1 from pairs where reached_generation < generation or lease_holder is not null or state <> $1',
        ['in-sync'],
      )
      return rows.length === 0
    }
  })
})
