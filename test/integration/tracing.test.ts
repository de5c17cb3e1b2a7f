import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { openTracing } from '../../src/observability/tracing.ts'
import { openQueue, startApi, startWorkerRole } from '../../src/roles.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { peopleOf } from '../helpers/http.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { until } from '../helpers/service.ts'
import { type CollectedSpan, TraceCollector } from '../helpers/trace-collector.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from './reconcile-fixtures.ts'

const APP = 'app-a'
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }

/** One process with the API and one with the worker, on the brokers and the database of the mesh. */
async function traced(mesh: TestMesh, collector: TraceCollector, work: (url: string, token: string) => Promise<void>) {
  const running = new Disposer()
  try {
    const open = async (name: string) => {
      const env = {
        ...mesh.env,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-token=hunter-2',
        OTEL_SERVICE_NAME: name,
        PORT: '0',
        KEYMESH_HOST: '127.0.0.1',
      }
      const context = await openContext(toConfig({ env, pid: process.pid, hostname: name }))
      running.defer(() => context[Symbol.asyncDispose]())
      const queue = await openQueue(context)
      running.defer(() => queue.backend.close())
      return { context, queue }
    }
    const worker = await open('worker')
    running.defer(await startWorkerRole(worker.context, worker.queue))
    const api = await open('api')
    const server = await startApi(api.context, api.queue)
    running.defer(server.stop)
    const { apiToken } = await peopleOf({ ...api.context, random: cryptoRandom }).addUser({ name: 'operator' })
    await work(server.url, apiToken)
  } finally {
    // The end of a process sends what was not sent yet.
    await running.dispose()
  }
}

describe('a trace', () => {
  it('leads from the caller through the request and the queue to every SEMP request and login, and names nobody', async () => {
    await using collector = await TraceCollector.start()
    await using mesh = await withMesh({
      sandbox: { logins: { mqtt: 0 } },
      portal: (brokers) => ordersPortal(brokers, [client(APP)]),
    })
    const { brokerId } = mesh.key()
    await traced(mesh, collector, async (url, token) => {
      const answer = await fetch(`${url}/api/v2/operations/reconcile`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01`,
        },
        body: JSON.stringify({ registrationId: APP }),
      })
      expect(answer.status).toBe(202)
      await until('the registration is in sync', async () =>
        (await mesh.pairs()).every(({ state, reached }) => state === 'in-sync' && reached > 0) ? true : null,
      )
    })
    const spans = collector.spans.filter(({ traceId }) => traceId === CALLER.traceId)
    const byId = new Map(spans.map((span) => [span.spanId, span]))
    const pathOf = (span: CollectedSpan): readonly string[] => {
      const parent = byId.get(span.parentSpanId ?? '')
      return [...(parent === undefined ? [String(span.parentSpanId)] : pathOf(parent)), `${span.service}: ${span.name}`]
    }
    const run = [
      CALLER.spanId,
      'api: POST /api/v2/operations/reconcile',
      'api: enqueue reconcile-pair',
      'worker: job reconcile-pair',
      'worker: reconcile',
    ]
    const leaf = (name: string) => spans.find((span) => span.name === name)
    for (const name of ['semp GET msgVpn', 'semp POST clientUsername', 'semp POST aclProfile', 'login mqtt']) {
      const span = leaf(name)
      expect([name, span === undefined ? null : pathOf(span)]).toEqual([name, [...run, `worker: ${name}`]])
    }
    expect(leaf('semp POST clientUsername')?.attributes).toEqual({
      'keymesh.broker': brokerId,
      'http.request.method': 'POST',
      'keymesh.semp.kind': 'clientUsername',
      'http.response.status_code': 200,
    })
    expect(leaf('login mqtt')?.attributes).toMatchObject({ 'keymesh.protocol': 'mqtt', 'keymesh.outcome': 'accepted' })
    expect(leaf('job reconcile-pair')?.attributes).toMatchObject({
      'keymesh.job.attempt': 1,
      'keymesh.outcome': 'done',
    })
    expect(leaf('reconcile')?.attributes['keymesh.run.id']).toMatch(/^[0-9a-f-]{36}$/)
    // That an object is not there yet is an answer.
    expect(leaf('semp GET clientUsername')?.attributes['keymesh.semp.code']).toBe('NOT_FOUND')
    expect(spans.filter(({ failed }) => failed)).toEqual([])

    for (const secret of [APP, keyOf(APP), givenSecretOf(APP), 'orders'])
      expect(collector.received).not.toContain(secret)
    expect(collector.headers.every((headers) => headers['x-collector-token'] === 'hunter-2')).toBe(true)
  }, 60_000)
})

describe('a collector', () => {
  it('that takes connections and never answers does not hold up the end of a process', async () => {
    const sockets = new Set<{ destroy(): void }>()
    const silent = createServer((socket) => void sockets.add(socket.on('error', () => undefined)))
    const port = await new Promise<number>((resolve) => {
      silent.listen(0, '127.0.0.1', () => resolve((silent.address() as { port: number }).port))
    })
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
    const { traces } = toConfig({ env, pid: 1, hostname: 'test' })
    const tracing = await openTracing(traces, { closePatienceMs: 100 })
    await tracing.span({ name: 'something', kind: 'internal' }, async () => undefined)
    // The exporter's own patience is ten seconds.
    await tracing.close()
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  }, 8_000)
})
