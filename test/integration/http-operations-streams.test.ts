import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunOptions } from '../../src/engine.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { noEngine, type TestApi, withApi } from '../helpers/http.ts'
import { until } from '../helpers/service.ts'
import { broker, portalFile } from './import-fixtures.ts'

let api: TestApi
let url: string
/** Sweeps that run, and last until somebody ends them. */
const sweeps: { ended: boolean }[] = []

beforeAll(async () => {
  api = await withApi({
    dependencies: {
      engine: {
        ...noEngine,
        sweep: (_broker, { signal, ...options }: RunOptions & { onProgress?: (progress: never) => void }) => {
          const sweep = { ended: false }
          sweeps.push(sweep)
          options.onProgress?.({ phase: 'reading the broker', done: 7 } as never)
          return new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => {
              sweep.ended = true
              reject(signal.reason)
            })
          })
        },
        orphans: async () => {
          throw new Error('what only the log may say')
        },
      },
    },
  })
  const { db, sealer } = api.dependencies
  const file = portalFile({ brokers: [broker('broker-1')] })
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, api.accountId, file)
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}/api/v2/operations`
})
afterAll(() => api?.[Symbol.asyncDispose]())

/** The lines as they come. */
async function* lines(response: Response): AsyncGenerator<unknown> {
  let rest = ''
  for await (const chunk of response.body ?? []) {
    const parts = (rest + Buffer.from(chunk).toString()).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') yield JSON.parse(part)
  }
}

async function allLines(response: Response): Promise<readonly unknown[]> {
  const all: unknown[] = []
  for await (const line of lines(response)) all.push(line)
  return all
}

const begin = (signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/reconcile/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.token}` },
    ...(signal && { signal }),
  })

describe('a stream of what is done', () => {
  it('begins at once, is in the audit trail, and ends the work when the caller leaves', async () => {
    const caller = new AbortController()
    const response = await begin(caller.signal)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    const { value } = await lines(response).next()
    expect(value).toEqual({
      type: 'event',
      event: { type: 'progress', brokerId: 'broker-1', progress: { phase: 'reading the broker', done: 7 } },
    })
    const { rows } = await sql`select action, subject from audit where action = 'reconcile'`.execute(api.db)
    expect(rows).toEqual([{ action: 'reconcile', subject: 'all brokers' }])
    expect(sweeps.at(-1)).toEqual({ ended: false })
    caller.abort()
    await until('the work ended', () => (sweeps.at(-1)?.ended === true ? true : null))
  })

  it('shows nothing of an error that is for the log', async () => {
    const response = await fetch(`${url}/orphans/stream`, { headers: { authorization: `Bearer ${api.token}` } })
    const [line] = await allLines(response)
    expect(line).toMatchObject({ type: 'error', code: 'UNEXPECTED' })
    expect(JSON.stringify(line)).not.toContain('only the log')
  })

  it('has a status of its own for a request that cannot be done', async () => {
    expect(await api.call('POST', '/api/v2/operations/reconcile/stream', { body: { brokerId: 'x' } })).toMatchObject({
      status: 400,
      body: { validationDetails: { brokerId: [expect.stringContaining('known: broker-1')] } },
    })
  })

  it('is told when the service stops, which does not wait for the work', async () => {
    const response = await begin()
    const seen = allLines(response)
    await until('the work began', () => (sweeps.length === 2 ? true : null))
    await api.app.close()
    expect(sweeps.at(-1)).toEqual({ ended: true })
    expect((await seen).at(-1)).toMatchObject({ type: 'error', code: 'STOPPING' })
  })
})
