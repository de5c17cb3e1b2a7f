import type { ServerResponse } from 'node:http'
import { Pool } from 'undici'
import { expect, it, vi } from 'vitest'
import { exchange } from '../../src/brokers/solace/http-exchange.ts'
import { sendData, startDouble } from '../contract/semp-double.ts'

it('never sends a request that gave up while it waited for a connection', async () => {
  const held: ServerResponse[] = []
  await using double = await startDouble(({ url }, response) => {
    if (url === '/held') held.push(response)
    else sendData(response, {})
  })
  const pool = new Pool(double.url, { connections: 1 })
  const timedOut = new Error('timed out')
  try {
    const first = exchange(pool, { path: '/held', method: 'GET', headers: {} }, { timeoutMs: 5_000, timedOut })
    await vi.waitFor(() => expect(held).toHaveLength(1))
    const late = exchange(pool, { path: '/late', method: 'DELETE', headers: {} }, { timeoutMs: 20, timedOut })
    await expect(late).rejects.toBe(timedOut)
    const next = exchange(pool, { path: '/next', method: 'GET', headers: {} }, { timeoutMs: 5_000, timedOut })
    for (const response of held) sendData(response, {})
    await Promise.all([first, next])
    expect(double.requests.map(({ url }) => url)).toEqual(['/held', '/next'])
  } finally {
    await pool.close()
  }
})
