import { expect, it } from 'vitest'
import { withMesh } from '../helpers/mesh.ts'
import { until } from '../helpers/service.ts'
import { client, ordersPortal } from './reconcile-fixtures.ts'

const APPS = Array.from({ length: 100 }, (_, index) => `app-${index}`)

it('invariant 12, on demand first: a run overtakes the requests of a sweep in its process', async () => {
  await using mesh = await withMesh({
    brokers: [{ latencyMs: 20 }],
    portal: (brokers) =>
      ordersPortal(
        brokers.map(({ management, ...broker }) => {
          if (management === null) throw new Error('a broker without management')
          return { ...broker, management: { ...management, maxConcurrentRequests: 1 } }
        }),
        APPS.map((id) => client(id)),
      ),
  })
  const { engine } = mesh.context
  const run = async (app: string): Promise<number> => {
    const before = mesh.broker().requests.total
    expect(await engine.reconcilePair(mesh.pair(app), { trigger: 'on-demand' })).toMatchObject({ status: 'done' })
    return mesh.broker().requests.total - before
  }
  const alone = await run('app-98')
  const aborted = new AbortController()
  const sweep = mesh.sweep(0, { signal: aborted.signal })
  await until('the sweep reconciles', () => (mesh.broker().state.aclProfiles.names().length > 5 ? true : null))
  // A sweep that stood in the same line would be served ten times for each request of the run: it has ten pairs under way.
  expect(await run('app-99')).toBeLessThan(8 * alone)
  aborted.abort()
  await sweep.catch(() => undefined)
})
