import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { emptyPortalFile, portalBroker } from '../helpers/mesh.ts'
import { Service, until } from '../helpers/service.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

/** Room for a cluster and its first segments of the log, and little more. */
const SIZE = '256m'
const mountPoint = mkdtempSync(join(tmpdir(), 'keymesh-disk-'))
const mount = (): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=711`, 'tmpfs', mountPoint]).status === 0
const unmount = (): boolean => spawnSync('umount', [mountPoint]).status === 0
const canMount = mount() && unmount()
if (!canMount) process.stderr.write('skipped: a disk that is full (a tmpfs cannot be mounted here)\n')

const dataDirectory = join(mountPoint, 'data')
const ballast = join(mountPoint, 'ballast')
const settings = {
  KEYMESH_ROLES: 'worker,scheduler',
  KEYMESH_POLL_CRON: '* * * * * *',
  KEYMESH_LEASE: '2s',
  KEYMESH_LOGINS: 'false',
}

async function fillDisk(): Promise<void> {
  const file = await open(ballast, 'a')
  try {
    // The last bytes by themselves: what a file system rounds down is room for a page of the database.
    for (const size of [1 << 20, 4_096]) {
      const block = Buffer.alloc(size)
      const full = (error: unknown): void => expect(String(error)).toContain('ENOSPC')
      for (let written = size; written === size; ) {
        written = await file.write(block).then(
          ({ bytesWritten }) => bytesWritten,
          (error: unknown) => {
            full(error)
            return 0
          },
        )
      }
    }
  } finally {
    await file.close()
  }
}

const emptyDisk = (): Promise<void> => rm(ballast, { force: true })

afterAll(() => rm(mountPoint, { recursive: true, force: true }))

describe.skipIf(!canMount)('a service whose disk is full', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    expect(mount()).toBe(true)
    await mkdir(dataDirectory, { recursive: true, mode: 0o711 })
    sandbox = await startSandbox({ brokers: 2 })
  })
  afterAll(async () => {
    await sandbox.close()
    expect(unmount()).toBe(true)
  })

  /** As a command does: joins the database of the running service. */
  async function withContext<Result>(work: (context: Context) => Promise<Result>): Promise<Result> {
    const env = { KEYMESH_DATA_DIR: dataDirectory, KEYMESH_LOG_LEVEL: 'silent' }
    await using context = await openContext(toConfig({ env, pid: process.pid, hostname: 'command' }))
    return await work(context)
  }

  const importClients = async ({ db, sealer, accountId }: Context, count: number): Promise<void> => {
    const brokers = sandbox.brokers.map(portalBroker)
    const clients = Array.from({ length: count }, (_, index) => client(`app-${index}`))
    const file = { ...emptyPortalFile(brokers), ...ordersPortal(brokers, clients) }
    await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, file)
  }

  const allWork = (count: number): Promise<boolean> =>
    until(`${count} clients are on every broker`, () => {
      const missing = sandbox.brokers.some(({ state }) =>
        Array.from({ length: count }, (_, index) => `app-${index}`).some(
          (id) => state.checkLogin(keyOf(id), givenSecretOf(id)) !== 'accepted',
        ),
      )
      return missing ? null : true
    })

  it('says so, refuses what it cannot keep, and goes on by itself when there is space again', async () => {
    await using service = await Service.start({ dataDirectory, env: settings })
    await withContext(async (context) => {
      await importClients(context, 3)
      await allWork(3)
      await fillDisk()
      await expect(importClients(context, 400)).rejects.toThrow(/No space left on device/)
      const told = await until('the service says it', () => {
        const lines = service.log.filter((line) =>
          String(line.error ?? line.message).includes('No space left on device'),
        )
        return lines.length > 0 ? lines : null
      })
      expect(told.length).toBeGreaterThan(0)
      await emptyDisk()
      await importClients(context, 40)
      await allWork(40)
      const { rows } = await sql<{ count: number }>`select count(*) as count from registrations`.execute(context.db)
      expect(rows).toEqual([{ count: 40 }])
    })
    // An outage is told, and not many times a second.
    const repeated = service.log.filter(({ event }) => event === 'queue.error')
    expect(repeated.length).toBeLessThan(30)
    expect(await service.stop()).toBe(0)
    await service.databaseGone()
  }, 120_000)

  it('and cannot take the log of the database any more: ends, says why, and goes on after a start with space', async () => {
    {
      await using service = await Service.start({ dataDirectory, env: settings })
      const outcomes: string[] = []
      const ending = withContext(({ db }) =>
        until('the service ends', async () => {
          await fillDisk()
          // Fills up a segment of the log, so that a new one is needed; what was freed meanwhile is filled, too.
          const statements = [
            sql`select pg_logical_emit_message(true, 'keymesh', repeat('x', 100000))`,
            sql`select pg_switch_wal()`,
          ]
          for (const statement of statements) outcomes.push(await statement.execute(db).then(() => 'done', String))
          return service.log.some(({ event }) => event === 'service.stopping') ? true : null
        }),
      )
      await ending.catch((error: unknown) => {
        throw new Error(`${String(error)}: ${outcomes.slice(-20).join('; ')}\n${service.printed.slice(-4_000)}`)
      })
      expect(await service.stop()).toBe(1)
      expect(service.printed).toMatch(/The embedded database ended by itself \(there is no space left on its disk\)/)
      expect(service.printed).toMatch(/Free some disk space and start Keymesh again; what was committed is kept/)
      await service.databaseGone()
    }
    await expect(Service.start({ dataDirectory, env: settings })).rejects.toThrow(
      /Free some disk space and start again/,
    )

    await emptyDisk()
    await using service = await Service.start({ dataDirectory, env: settings })
    await withContext(async (context) => {
      const { rows } = await sql<{ count: number }>`select count(*) as count from registrations`.execute(context.db)
      expect(rows).toEqual([{ count: 40 }])
      await importClients(context, 45)
      await allWork(45)
    })
    expect(await service.stop()).toBe(0)
    expect(service.printed).not.toMatch(/secret-of/)
    await service.databaseGone()
  }, 120_000)
})
