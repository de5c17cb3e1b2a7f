import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { consumerKey } from '../../src/domain/ids.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { emptyPortalFile, portalBroker, storedSecrets } from '../helpers/mesh.ts'
import { parseMetrics, sumOf } from '../helpers/metrics-text.ts'
import { Service, until } from '../helpers/service.ts'
import { credential, suppliedCredential } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

let sandbox: Sandbox
let dataDirectory: string
const settings = {
  KEYMESH_ROLES: 'worker,scheduler',
  KEYMESH_POLL_CRON: '* * * * * *',
  // What a killed process held is free after this.
  KEYMESH_LEASE: '3s',
  KEYMESH_METRICS_PORT: '0',
  KEYMESH_HOST: '127.0.0.1',
}

beforeAll(async () => {
  sandbox = await startSandbox({ brokers: 2 })
  dataDirectory = await mkdtemp(join(tmpdir(), 'keymesh-service-'))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(dataDirectory, 0o711)
})
afterAll(async () => {
  await sandbox.close()
  await rm(dataDirectory, { recursive: true, force: true })
})

/** As a command does: joins the database of the running service, or starts it for a moment. */
async function withContext<Result>(work: (context: Context) => Promise<Result>): Promise<Result> {
  const env = { KEYMESH_DATA_DIR: dataDirectory, KEYMESH_LOG_LEVEL: 'silent' }
  const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'command' }))
  try {
    return await work(context)
  } finally {
    await context[Symbol.asyncDispose]()
  }
}

const imported: { file: PortalFile | null } = { file: null }

async function importParts(context: Context, registrations: PortalFile['registrations']): Promise<void> {
  const { db, sealer, accountId } = context
  const brokers = sandbox.brokers.map(portalBroker)
  imported.file ??= { ...emptyPortalFile(brokers), ...ordersPortal(brokers, []) }
  const file = { ...imported.file, registrations }
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, file)
}

/** Resolves when this client works on every broker, with this password. */
async function atWork(id: string, secret = givenSecretOf(id)): Promise<void> {
  await until(`${id} is on every broker`, () => {
    const works = sandbox.brokers.every(({ state }) => state.checkLogin(keyOf(id), secret) === 'accepted')
    return works ? true : null
  })
}

async function settled(context: Context): Promise<void> {
  await until('every registration is in sync', async () => {
    const rows = await context.db.selectFrom('pairs').select(['state', 'generation', 'reached_generation']).execute()
    const lagging = rows.filter((row) => row.state !== 'in-sync' || row.reached_generation < row.generation)
    return lagging.length === 0 ? true : null
  })
}

describe('the service', { timeout: 120_000 }, () => {
  it('brings what is imported to the brokers by itself, and ends in order', async () => {
    await withContext((context) => importParts(context, [client('first')]))
    await using service = await Service.start({ dataDirectory, env: settings })
    await atWork('first')

    await withContext(async (context) => {
      await importParts(context, [client('first'), client('second')])
      await atWork('second')
      const rotated = suppliedCredential('main', keyOf('first'), 'the-next-secret-of-first')
      await importParts(context, [client('first', { credentials: [rotated] }), client('second')])
      await atWork('first', 'the-next-secret-of-first')
      await settled(context)
    })

    const { url } = await service.logged('health.listening')
    expect(await (await fetch(`${String(url)}/readyz`)).json()).toEqual({ status: 'ok' })
    const samples = parseMetrics(await (await fetch(`${String(url)}/metrics`)).text())
    expect(sumOf(samples, 'keymesh_build_info', { roles: 'worker,scheduler' })).toBe(1)
    expect(sumOf(samples, 'keymesh_jobs_total', { job: 'reconcile-pair', outcome: 'done' })).toBeGreaterThan(0)
    expect(sumOf(samples, 'keymesh_pairs', { state: 'in-sync' })).toBe(4)
    expect(await service.logged('run.finished')).toMatchObject({ jobId: expect.anything(), runId: expect.anything() })

    expect(await service.databaseServers()).not.toEqual([])
    const stoppedAtMs = performance.now()
    expect(await service.stop()).toBe(0)
    expect(performance.now() - stoppedAtMs).toBeLessThan(20_000)
    await service.databaseGone()
    expect(service.log.filter(({ level }) => Number(level) >= 40)).toEqual([])
    expect(service.printed).not.toMatch(/secret-of/)
  })

  it('killed in the middle of its work, goes on after the next start, with the same secrets', async () => {
    const ids = ['first', 'second', ...Array.from({ length: 60 }, (_, index) => `app-${index}`)]
    // Their secrets are generated: only the store knows them.
    const generated = ids
      .slice(2)
      .map((id) => client(id, { credentials: [credential('main', { consumerKey: consumerKey(keyOf(id)) })] }))
    const registrations = [client('first'), client('second'), ...generated]
    const before = await withContext(async (context) => {
      await importParts(context, registrations)
      return storedSecrets(context)
    })
    for (const broker of sandbox.brokers) {
      broker.requests.reset()
      broker.setLatencyMs(10)
    }
    {
      await using service = await Service.start({ dataDirectory, env: settings })
      await until('it is in the middle', () => (writes() > 250 ? true : null))
      await service.kill()
    }
    const written = writes()
    for (const broker of sandbox.brokers) broker.setLatencyMs(0)

    await using service = await Service.start({ dataDirectory, env: settings })
    await withContext(async (context) => {
      await settled(context)
      expect(await storedSecrets(context)).toEqual(before)
      const drift = await context.db.selectFrom('drift').select(['kind', 'object_name']).execute()
      expect(drift).toEqual([])
    })
    // It was killed before the end, or this test says nothing.
    expect(writes()).toBeGreaterThan(written)
    for (const broker of sandbox.brokers) {
      const wrong = ids.filter((id) => broker.state.passwordOf(keyOf(id)) !== before.get(keyOf(id)))
      expect(wrong).toEqual([])
      for (const id of ids)
        expect(broker.state.queues.members(objectsOf(broker, id).queue, 'subscriptions').length).toBe(3)
      expect(broker.state.queues.size).toBe(ids.length)
    }
    expect(await service.stop()).toBe(0)
    await service.databaseGone()
  })
})

const writes = (): number => sandbox.brokers.reduce((sum, { requests }) => sum + requests.writes, 0)
