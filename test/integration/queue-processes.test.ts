import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { createEnqueuer, type Enqueuer } from '../../src/queue/enqueue.ts'
import type { QueueBackend } from '../../src/queue/job-queue.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import { engineCases, type TestEngine } from '../helpers/queue-engines.ts'

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0 }
const eventually = (check: () => unknown | Promise<unknown>): Promise<unknown> =>
  vi.waitFor(check, { timeout: 20_000, interval: 20 })

interface Child {
  readonly lines: string[]
  readonly process: ChildProcess
  readonly exited: Promise<number | null>
}

describe.each(engineCases())('worker processes on $engine', ({ skip, start }) => {
  describe.skipIf(skip)('that share a queue', () => {
    let engine: TestEngine
    let backend: QueueBackend
    let enqueue: Enqueuer
    const children: Child[] = []

    beforeAll(async () => {
      engine = await start()
      backend = await engine.open()
      enqueue = createEnqueuer({ backend, now: Date.now, onMissed: (_what, error) => expect.fail(String(error)) })
    })
    afterEach(async () => {
      for (const child of children.splice(0)) {
        child.process.kill('SIGKILL')
        await child.exited
      }
    })
    afterAll(async () => {
      await backend?.close()
      await engine?.stop()
    })

    const spawnChild = async (broker: string, patienceMs = 10_000): Promise<Child> => {
      const program = join(import.meta.dirname, '../helpers/queue-child.ts')
      const settings = JSON.stringify({ connection: engine.connection, broker, patienceMs })
      const child = spawn(process.execPath, ['--import', 'tsx', program, settings], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const lines: string[] = []
      createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
      const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
      const started = { lines, process: child, exited }
      children.push(started)
      await eventually(() => expect(lines).toContain('ready'))
      return started
    }
    const pairsOf = (broker: string, names: readonly string[]) =>
      names.map((name) => ({
        accountId: accountId('acme'),
        brokerId: brokerId(broker),
        registrationId: registrationId(name),
      }))
    const countsOf = (broker: string) =>
      backend.queue(brokerQueue({ accountId: accountId('acme'), brokerId: brokerId(broker) })).counts()

    it('run each job exactly once', async () => {
      const both = await Promise.all([spawnChild('shared'), spawnChild('shared')])
      const names = Array.from({ length: 200 }, (_, index) => `r${index}`)
      await enqueue.pairs(pairsOf('shared', names), 'on-demand')
      await eventually(async () => expect(await countsOf('shared')).toEqual(EMPTY))
      const done = (): string[] => both.flatMap(({ lines }) => lines.filter((line) => line.startsWith('done ')))
      await eventually(() => expect(done()).toHaveLength(200))
      expect(new Set(done()).size).toBe(200)
    })

    it('finish what runs when they are told to stop, and hand back what takes too long', async () => {
      const first = await spawnChild('stops', 100)
      await enqueue.pairs(pairsOf('stops', ['slow']), 'on-demand')
      await eventually(() => expect(first.lines).toContain('start slow'))
      await enqueue.pairs(pairsOf('stops', ['slow']), 'on-demand')
      first.process.kill('SIGTERM')
      expect(await first.exited).toBe(0)
      expect(first.lines).toContain('closed true')
      expect(first.lines).not.toContain('done slow')
      expect(first.lines.filter((line) => /^(failed|error)/.test(line))).toEqual([])

      const second = await spawnChild('stops')
      await eventually(() => expect(second.lines).toContain('start slow'))
    })

    it('leave their jobs to others when they are killed', async () => {
      const first = await spawnChild('dies')
      await enqueue.pairs(pairsOf('dies', ['slow']), 'on-demand')
      await eventually(() => expect(first.lines).toContain('start slow'))
      first.process.kill('SIGKILL')
      await first.exited
      const second = await spawnChild('dies')
      await eventually(() => expect(second.lines).toContain('start slow'))
    })
  })
})
