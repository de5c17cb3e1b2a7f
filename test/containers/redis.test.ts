import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { accountId, registrationId } from '../../src/domain/ids.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { openQueueBackend } from '../../src/queue/queue-backend.ts'
import { REGISTRATIONS_QUEUE } from '../../src/queue/queue-names.ts'
import { imageCase } from '../helpers/containers.ts'

const PORT = 6379
const STARTUP_MS = 60_000
const NOTHING = { waiting: 0, active: 0, delayed: 0, failed: 0 }

const { image, skip } = await imageCase('redis')

describe.skipIf(skip)('the queue on Redis in a container', () => {
  let redisUrl = ''
  let stop = async (): Promise<unknown> => undefined
  beforeAll(async () => {
    const { GenericContainer } = await import('testcontainers')
    const container = await new GenericContainer(image)
      .withExposedPorts(PORT)
      .withCommand(['--appendonly', 'yes', '--maxmemory-policy', 'noeviction'])
      .withStartupTimeout(STARTUP_MS)
      .start()
    stop = () => container.stop()
    redisUrl = `redis://${container.getHost()}:${container.getMappedPort(PORT)}`
  }, STARTUP_MS)
  afterAll(() => stop())

  it('runs each job once, those of one registration never side by side', async () => {
    const failures: unknown[] = []
    const observer = { onError: () => undefined, onJobFailed: (failure: unknown) => void failures.push(failure) }
    const backend = await openQueueBackend({ connectionString: '', redisUrl, prefix: 'test', observer })
    try {
      expect(backend.engine).toBe('redis')
      const missed: unknown[] = []
      const enqueue = createEnqueuer({ backend, now: Date.now, onMissed: (_what, error) => missed.push(error) })
      const names = Array.from({ length: 20 }, (_, index) => `app-${index}`)
      for (const name of [...names, ...names]) await enqueue.registration(accountId('acme'), registrationId(name))
      const ran: string[] = []
      backend.worker(
        REGISTRATIONS_QUEUE,
        async ({ data }) => {
          ran.push((data as { readonly registrationId: string }).registrationId)
          return { status: 'done' }
        },
        { concurrency: 4 },
      )
      await vi.waitFor(() => expect([...ran].sort()).toEqual([...names].sort()), { timeout: 10_000 })
      await vi.waitFor(async () => expect(await backend.queue(REGISTRATIONS_QUEUE).counts()).toEqual(NOTHING))
      expect({ missed, failures }).toEqual({ missed: [], failures: [] })
    } finally {
      await backend.close()
    }
  })
})
