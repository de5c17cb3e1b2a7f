import { describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { withEmbedded } from '../helpers/embedded-postgres.ts'
import { startFaultProxy } from '../helpers/fault-proxy.ts'
import { emptyPortalFile, portalBroker } from '../helpers/mesh.ts'
import { Service, until } from '../helpers/service.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

const embedded = withEmbedded()
const CLIENTS = Array.from({ length: 30 }, (_, index) => client(`app-${index}`))

describe('a service whose PostgreSQL is stopped and started', () => {
  it('in the middle of its work: the same process goes on, and ends in order', async () => {
    const first = await embedded().start()
    await using proxy = await startFaultProxy(first.port)
    await using sandbox = await startSandbox({ brokers: 2, common: { latencyMs: 25 } })
    const url = new URL(first.connectionString)
    url.port = String(proxy.port)
    const env = {
      DATABASE_URL: url.href,
      KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal(),
      KEYMESH_ROLES: 'worker,scheduler',
      KEYMESH_POLL_CRON: '* * * * * *',
      KEYMESH_SWEEP_CRON: '* * * * * *',
      KEYMESH_LEASE: '2s',
      KEYMESH_LOGINS: 'false',
    }
    await using context = await openContext(
      toConfig({ env: { ...env, KEYMESH_LOG_LEVEL: 'silent' }, pid: process.pid, hostname: 'test' }),
    )
    const { db, sealer, accountId } = context
    const brokers = sandbox.brokers.map(portalBroker)
    const file = { ...emptyPortalFile(brokers), ...ordersPortal(brokers, CLIENTS) }
    await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, file)
    const writes = (): number => sandbox.brokers.reduce((sum, { requests }) => sum + requests.writes, 0)

    await using service = await Service.start({ dataDirectory: embedded().directory, env })
    await until('it is in the middle', () => (writes() > 100 ? true : null))
    await first.stop()
    const written = writes()
    await service.logged('database.connection-lost')
    const second = await embedded().start()
    proxy.targetPort = second.port
    for (const broker of sandbox.brokers) broker.setLatencyMs(0)
    await until('every registration is in sync', async () => {
      const query = db.selectFrom('pairs').select(['state', 'generation', 'reached_generation'])
      const pairs = await query.execute().catch(() => null)
      return pairs?.every((row) => row.state === 'in-sync' && row.reached_generation === row.generation) ? true : null
    })
    // It was stopped before the end, or this test says nothing.
    expect(writes()).toBeGreaterThan(written)
    for (const broker of sandbox.brokers) {
      expect(broker.state.queues.size).toBe(CLIENTS.length)
      for (const { id } of CLIENTS) {
        expect(broker.state.checkLogin(keyOf(id), givenSecretOf(id))).toBe('accepted')
        expect(broker.state.queues.members(objectsOf(broker, id).queue, 'subscriptions')).toHaveLength(3)
      }
    }
    expect(await db.selectFrom('drift').selectAll().execute()).toEqual([])
    expect(await service.stop()).toBe(0)
    expect(service.printed).not.toMatch(/secret-of/)
  }, 120_000)
})
