import { afterEach, describe, expect, it } from 'vitest'
import { Disposer } from '../../src/disposer.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { Secret } from '../../src/domain/secret.ts'
import { apiTokenHash, apiTokenText } from '../../src/http/authentication.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import { openQueue, startApi, startWorkerRole } from '../../src/roles.ts'
import { createApiToken } from '../../src/store/api-tokens.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { insertUser } from '../../src/store/users.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { redisAvailable, startTestRedis } from '../helpers/redis.ts'
import { until } from '../helpers/service.ts'
import { suppliedCredential } from '../integration/import-fixtures.ts'
import { client, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

const CROWD = Array.from({ length: 200 }, (_, index) => `waits-${index}`)
const LEAKED = 'leaked-consumer-key'

describe.each(['PostgreSQL', 'Redis'])('a revoked credential, with the queue on %s', (engine) => {
  const opened = new Disposer()
  afterEach(() => opened.dispose())

  /** The service on a slow broker: one registration in effect, 200 more wait in the queue. */
  async function busyService(): Promise<{ mesh: TestMesh; url: string; token: string; waiting(): Promise<number> }> {
    const redis = engine === 'Redis' ? await startTestRedis() : null
    if (redis !== null) opened.defer(() => redis.stop())
    const credentials = ['main', LEAKED].map((name) =>
      suppliedCredential(name, name === LEAKED ? LEAKED : keyOf('app'), `the-secret-of-${name}-4711`),
    )
    const mesh = await withMesh({
      sandbox: { latencyMs: 10 },
      env: {
        KEYMESH_CONCURRENCY: '2',
        KEYMESH_HOST: '127.0.0.1',
        PORT: '0',
        ...(redis === null ? {} : { REDIS_URL: redis.url }),
      },
      portal: (brokers) => ordersPortal(brokers, [client('app', { credentials }), ...CROWD.map((id) => client(id))]),
    })
    opened.defer(() => mesh[Symbol.asyncDispose]())
    const { context } = mesh
    await context.engine.reconcilePair(mesh.pair('app'), { trigger: 'on-demand' })
    const queue = await openQueue(context)
    opened.defer(() => queue.backend.close())
    await queue.enqueue.pairs(
      CROWD.map((id) => mesh.pair(id)),
      'on-demand',
    )
    const { url, stop } = await startApi(context, queue)
    opened.defer(stop)
    opened.defer(await startWorkerRole(context, queue))
    const waiting = async () => (await queue.backend.queue(brokerQueue(mesh.key())).counts()).waiting
    return { mesh, url, token: await administratorToken(mesh), waiting }
  }

  it.skipIf(engine === 'Redis' && !redisAvailable().available)(
    'is off on the broker while hundreds of jobs that people wait for stand in line',
    async () => {
      const { mesh, url, token, waiting } = await busyService()
      const { clientUsernames } = mesh.broker().state
      expect(clientUsernames.get(LEAKED)?.enabled).toBe(true)
      await until('the crowd is at work', async () => ((await waiting()) < CROWD.length ? true : null))
      const answer = await fetch(`${url}/api/v2/apim/appRegistrations/app/credentials/${LEAKED}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}` },
      })
      expect(answer.status).toBe(204)
      await until('the username is off', () => (clientUsernames.get(LEAKED)?.enabled === false ? true : null))
      expect(await waiting()).toBeGreaterThan(100)
      expect(clientUsernames.get(keyOf('app'))?.enabled).toBe(true)
      const runs = mesh.context.db.selectFrom('runs').select(['outcome', 'steps']).where('trigger', '=', 'revocation')
      const found = await until('the run is on record', async () => {
        const rows = await runs.execute()
        return rows.length > 0 ? rows : null
      })
      expect(found).toEqual([{ outcome: 'in-sync', steps: 1 }])
    },
  )
})

async function administratorToken({ context: { db, accountId, passwords, now } }: TestMesh): Promise<string> {
  const [userId, id, secret] = [cryptoRandom.token(11), cryptoRandom.token(11), cryptoRandom.token(43)]
  const passwordHash = await passwords.hash(new Secret('correct horse battery'))
  await insertUser(db, { id: userId, name: 'admin', passwordHash, accountId, roles: ['administrator'] })
  const times = { createdAtMs: now(), expiresAtMs: null }
  const secretHash = apiTokenHash(secret)
  await createApiToken(db, { id, accountId, userId, name: 'test', secretHash, permissions: PERMISSIONS, ...times })
  return apiTokenText(id, secret)
}
