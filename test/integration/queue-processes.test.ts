import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { createEnqueuer, type Enqueuer } from '../../src/queue/enqueue.ts'
import type { JobWorker, QueueBackend } from '../../src/queue/job-queue.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import { engineCases, type TestEngine } from '../helpers/queue-engines.ts'

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0 }
const eventually = (check: () => unknown | Promise<unknown>): Promise<unknown> =>
  vi.waitFor(check, { timeout: 40_000, interval: 20 })

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
    const workers: JobWorker[] = []

    beforeAll(async () => {
      engine = await start()
      backend = await engine.open({ stalledIntervalMs: 1_000 })
      enqueue = createEnqueuer({ backend, now: Date.now, onMissed: (_what, error) => expect.fail(String(error)) })
    })
    afterEach(async () => {
      for (const worker of workers.splice(0)) await worker.close(5_000)
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
      const program = join(inject('testProgramsDirectory'), 'test/helpers/queue-child.js')
      const settings = JSON.stringify({ connection: engine.connection, broker, patienceMs })
      const child = spawn(process.execPath, [program, settings], {
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

    /** This process is the other worker. */
    const workHere = (broker: string): string[] => {
      const done: string[] = []
      const worker = backend.worker(
        brokerQueue({ accountId: accountId('acme'), brokerId: brokerId(broker) }),
        async (job) => {
          done.push(`done ${(job.data as { registrationId: string }).registrationId}`)
          return { status: 'done' }
        },
        { concurrency: 4 },
      )
      workers.push(worker)
      return done
    }

    it('run each job exactly once', async () => {
      const child = await spawnChild('shared')
      const here = workHere('shared')
      const there = (): string[] => child.lines.filter((line) => line.startsWith('done '))
      let added = 0
      while (added < 200 || (added < 5_000 && (here.length === 0 || there().length === 0))) {
        const names = Array.from({ length: 50 }, (_, index) => `r${added + index}`)
        await enqueue.pairs(pairsOf('shared', names), 'on-demand')
        added += names.length
      }
      await eventually(async () => expect(await countsOf('shared')).toEqual(EMPTY))
      await eventually(() => expect(there().length + here.length).toBe(added))
      expect(new Set([...here, ...there()]).size).toBe(added)
      expect([there().length > 0, here.length > 0]).toEqual([true, true])
    })

    it('finish what runs when they are told to stop, and hand back what takes too long', async () => {
      const child = await spawnChild('stops', 100)
      await enqueue.pairs(pairsOf('stops', ['slow', 'next']), 'on-demand')
      await eventually(() => expect(child.lines).toEqual(expect.arrayContaining(['start slow', 'done next'])))
      child.process.kill('SIGTERM')
      expect(await child.exited).toBe(0)
      expect(child.lines).toContain('closed true')
      expect(child.lines).not.toContain('done slow')
      expect(child.lines.filter((line) => /^(failed|error)/.test(line))).toEqual([])
      const here = workHere('stops')
      await eventually(() => expect(here).toEqual(['done slow']))
    })

    it('leave their jobs to others when they are killed', async () => {
      const child = await spawnChild('dies')
      await enqueue.pairs(pairsOf('dies', ['slow']), 'on-demand')
      await eventually(() => expect(child.lines).toContain('start slow'))
      child.process.kill('SIGKILL')
      await child.exited
      const here = workHere('dies')
      await eventually(() => expect(here).toEqual(['done slow']))
    })
  })
})
