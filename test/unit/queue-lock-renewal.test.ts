import { EventEmitter } from 'node:events'
import type { Job } from 'bullmq'
import { describe, expect, it } from 'vitest'
import type { BullEngine, BullProcessor, BullQueue, BullWorker } from '../../src/queue/bullmq-engine.ts'
import { BullmqQueue } from '../../src/queue/bullmq-queue.ts'
import { BullmqWorker } from '../../src/queue/bullmq-worker.ts'
import { DEFAULT_RETRY } from '../../src/queue/job-options.ts'
import type { JobOutcome } from '../../src/queue/job-queue.ts'
import { DEFAULT_WAIT } from '../../src/queue/queue-wait.ts'

/** A worker whose library is the test: it runs jobs and raises errors when told. */
function workerOf(process: () => Promise<JobOutcome>) {
  const told: string[] = []
  const library = new EventEmitter()
  let run: BullProcessor = () => Promise.reject(new Error('no worker was made'))
  const bull = { name: 'q', on: library.on.bind(library), concurrency: 1 }
  const engine: Partial<BullEngine> = {
    newWorker: (_name, processor) => {
      run = processor
      return bull as unknown as BullWorker
    },
  }
  const worker = new BullmqWorker(
    {
      engine: engine as BullEngine,
      observer: { onError: (_queue, { message }) => void told.push(message), onJobFailed: () => undefined },
      retry: DEFAULT_RETRY,
      wait: DEFAULT_WAIT,
      stalledIntervalMs: 1_000,
      now: () => 0,
      random: () => 0,
    },
    new BullmqQueue(bull as unknown as BullQueue, 1, () => 0),
    process,
    { concurrency: 1 },
  )
  return {
    worker,
    told,
    raise: (message: string) => library.emit('error', new Error(message)),
    run: (id: string, job: Partial<Job> = {}) => run({ id, name: 'n', data: {}, attemptsMade: 0, ...job } as Job, 't'),
  }
}

const lost = (id: string): string => `could not renew lock for job ${id}`

describe('a lock that could not be renewed', () => {
  it('is told of a job that runs', async () => {
    let raise = (_message: string): unknown => undefined
    const { run, told, ...library } = workerOf(async () => {
      raise(lost('j-1'))
      return { status: 'done' }
    })
    raise = library.raise
    await run('j-1')
    expect(told).toEqual([lost('j-1')])
  })

  it.each([
    ['was done', async () => ({ status: 'done' as const }), 'j-1'],
    ['failed', () => Promise.reject(new Error('no')), 'j-1'],
  ])('is not told of a job that %s meanwhile', async (_how, process, id) => {
    const { run, raise, told } = workerOf(process)
    await run(id).catch(() => undefined)
    raise(lost(id))
    expect(told).toEqual([])
  })

  it('is not told of a job that is on its way back to the queue', async () => {
    const { run, raise, told } = workerOf(async () => ({ status: 'again', afterMs: 5 }))
    const moved: unknown[] = []
    const moveToDelayed: Job['moveToDelayed'] = async (atMs) => {
      moved.push(atMs)
      raise(lost('j-1'))
    }
    await run('j-1', { moveToDelayed }).catch(() => undefined)
    expect(moved).toEqual([5])
    expect(told).toEqual([])
  })

  it('does not hide another error', () => {
    const { raise, told } = workerOf(async () => ({ status: 'done' }))
    raise('the engine is away')
    expect(told).toEqual(['the engine is away'])
  })
})
