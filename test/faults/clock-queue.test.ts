import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { engineCases } from '../helpers/queue-engines.ts'
import { until } from '../helpers/service.ts'
import { ShiftedClock } from '../helpers/shifted-clock.ts'

const HOUR_MS = 3_600_000

describe.each(engineCases())('a queue on $engine', ({ skip, start }) => {
  it.skipIf(skip)('does not wait for a time of the clock before it was set back', async () => {
    using clock = new ShiftedClock()
    const engine = await start()
    const backend = await engine.open({ now: () => Date.now() })
    const ran: string[] = []
    const sick = new KeymeshError({ code: 'BROKER_UNAVAILABLE', fate: 'wait', message: 'sick' })
    const held = backend.worker(
      'held',
      async () => {
        ran.push('held')
        if (ran.length === 1) throw sick
        return { status: 'done' }
      },
      { concurrency: 1 },
    )
    const delayed = backend.worker(
      'delayed',
      async () => {
        ran.push('delayed')
        return { status: 'done' }
      },
      { concurrency: 1 },
    )
    await backend.queue('delayed').add([{ name: 'prune-records', payload: {}, delayMs: 30_000 }])
    await backend.queue('held').add([{ name: 'prune-records', payload: {} }])
    await until('the queue is held', () => (engine.failures.length > 0 ? true : null))
    expect(ran).toEqual(['held'])
    clock.setAhead(-HOUR_MS)
    await until('both ran', () => (ran.includes('delayed') && ran.length === 3 ? true : null))
    await Promise.all([held.close(5_000), delayed.close(5_000)])
    await backend.close()
    await engine.stop()
  })
})
