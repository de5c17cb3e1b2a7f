import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { brokerId, registrationId } from '../../src/domain/ids.ts'
import { openQueue, startWorkerRole } from '../../src/roles.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { readDrift } from '../../src/store/drift-view.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { imageCase } from '../helpers/containers.ts'
import { emptyPortalFile, portalBroker } from '../helpers/mesh.ts'
import { until } from '../helpers/service.ts'
import { client, ordersPortal } from '../integration/reconcile-fixtures.ts'

const PORT = 5432
const STARTUP_MS = 60_000
const PASSWORD = 'password-of-the-test'

const { image, skip } = await imageCase('postgresql')

describe.skipIf(skip)('the service on PostgreSQL in a container', () => {
  let databaseUrl = ''
  let stop = async (): Promise<unknown> => undefined
  beforeAll(async () => {
    const { GenericContainer, Wait } = await import('testcontainers')
    const container = await new GenericContainer(image)
      .withExposedPorts(PORT)
      .withEnvironment({ POSTGRES_PASSWORD: PASSWORD })
      // It starts once to make its cluster, and once more to stay.
      .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
      .withStartupTimeout(STARTUP_MS)
      .start()
    stop = () => container.stop()
    databaseUrl = `postgresql://postgres:${PASSWORD}@${container.getHost()}:${container.getMappedPort(PORT)}/postgres`
  }, STARTUP_MS)
  afterAll(() => stop())

  it('migrates, imports, reconciles over its queue, and finds drift', async () => {
    const sandbox = await startSandbox({ brokers: 1 })
    const env = {
      DATABASE_URL: databaseUrl,
      KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal(),
      KEYMESH_LOG_LEVEL: 'silent',
      KEYMESH_LOGINS: 'false',
    }
    const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'test' }))
    const { db, sealer, accountId, now, engine } = context
    try {
      const brokers = sandbox.brokers.map(portalBroker)
      const file = { ...emptyPortalFile(brokers), ...ordersPortal(brokers, [client('app-a')]) }
      await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, file)
      const queue = await openQueue(context)
      const stopWorkers = await startWorkerRole(context, queue)
      await queue.enqueue.registration(accountId, registrationId('app-a'))
      const { state } = sandbox.broker()
      await until('its queue is there', () => (state.queues.names().length > 0 ? true : null))
      await stopWorkers()
      await queue.backend.close()
      const key = { accountId, brokerId: brokerId('broker-1') }
      await engine.sweep(key, { trigger: 'operator' })
      for (const name of state.queues.names()) state.queues.remove(name)
      await engine.sweep(key, { trigger: 'operator' })
      expect(await readDrift(db, { accountId, limit: 10 })).toMatchObject([
        { objectKind: 'queue', kind: 'missing', action: 'repaired' },
      ])
    } finally {
      await context[Symbol.asyncDispose]()
      await sandbox.close()
    }
  })
})
