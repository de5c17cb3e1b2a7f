import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { createEnqueuer, type Enqueuer } from '../../src/queue/enqueue.ts'
import type { JobOutcome, JobQueue, QueueBackend, RunningJob } from '../../src/queue/job-queue.ts'
import { brokerQueue } from '../../src/queue/queue-names.ts'
import type { Pair, RunTrigger } from '../../src/reconcile/store-port.ts'
import { engineCases, type TestEngine } from '../helpers/queue-engines.ts'

const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0 }
const DONE: JobOutcome = { status: 'done' }
const eventually = (check: () => unknown | Promise<unknown>): Promise<unknown> =>
  vi.waitFor(check, { timeout: 30_000, interval: 10 })

describe.each(engineCases())('the queue on $engine', ({ skip, start }) => {
  describe.skipIf(skip)('with a worker', () => {
    let engine: TestEngine
    let backend: QueueBackend
    let enqueue: Enqueuer
    let broker = 0
    let pairs: (...names: string[]) => Pair[]
    let queue: JobQueue
    const missed: unknown[] = []

    beforeAll(async () => {
      engine = await start()
      backend = await engine.open({
        retry: { attempts: 3, baseMs: 60_000, capMs: 60_000 },
        wait: { baseMs: 100, capMs: 200 },
      })
      enqueue = createEnqueuer({ backend, now: Date.now, onMissed: (_what, error) => missed.push(error) })
    })
    afterAll(async () => {
      await backend?.close()
      await engine?.stop()
    })
    beforeEach(() => {
      broker += 1
      const key = { accountId: accountId('acme'), brokerId: brokerId(`b${broker}`) }
      pairs = (...names) => names.map((name) => ({ ...key, registrationId: registrationId(name) }))
      queue = backend.queue(brokerQueue(key))
      engine.failures.length = 0
    })
    afterEach(() => expect(missed).toEqual([]))

    interface Recorder {
      readonly ran: string[]
      readonly jobs: RunningJob[]
      close(): Promise<unknown>
    }
    /** Runs jobs of this test's broker; `act` says what a job does. */
    const work = (
      act: (name: string, job: RunningJob) => Promise<JobOutcome> | JobOutcome,
      concurrency = 1,
    ): Recorder => {
      const ran: string[] = []
      const jobs: RunningJob[] = []
      const worker = backend.worker(
        queue.name,
        async (job) => {
          const data = job.data as { registrationId?: string; trigger: RunTrigger }
          const name = `${data.registrationId ?? job.name}:${data.trigger}`
          ran.push(name)
          jobs.push(job)
          return act(name, job)
        },
        { concurrency },
      )
      return { ran, jobs, close: () => worker.close(5_000) }
    }

    it('runs jobs on demand before those of the poll, and the sweep last', async () => {
      await enqueue.sweep({ accountId: accountId('acme'), brokerId: brokerId(`b${broker}`) }, 'sweep')
      await enqueue.pairs(pairs('p1', 'p2'), 'poll')
      await enqueue.pairs(pairs('d1', 'd2'), 'on-demand')
      const recorder = work(() => DONE)
      await eventually(() => expect(recorder.ran).toHaveLength(5))
      expect(recorder.ran).toEqual(['d1:on-demand', 'd2:on-demand', 'p1:poll', 'p2:poll', 'sweep-broker:sweep'])
      await recorder.close()
    })

    it('runs a revocation before hundreds of jobs that people wait for, those of its own pair among them', async () => {
      const crowd = Array.from({ length: 200 }, (_, index) => `d${index}`)
      await enqueue.pairs(pairs(...crowd), 'on-demand')
      await enqueue.pairs(pairs('d150', 'r1'), 'revocation')
      await enqueue.pairs(pairs('d150'), 'on-demand')
      await enqueue.pairs(pairs('r1'), 'revocation')
      expect(await queue.counts()).toMatchObject({ waiting: 202 })
      const recorder = work(() => DONE)
      await eventually(() => expect(recorder.ran).toHaveLength(202))
      expect(recorder.ran.slice(0, 2)).toEqual(['d150:revocation', 'r1:revocation'])
      expect(recorder.ran.slice(2)).toEqual(crowd.map((name) => `${name}:on-demand`))
      await recorder.close()
    })

    it('runs a revocation while another job of its pair is at work, and again when it is asked for again', async () => {
      let open = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const recorder = work(async () => {
        await gate
        return DONE
      }, 2)
      await enqueue.pairs(pairs('p1'), 'on-demand')
      await eventually(() => expect(recorder.ran).toEqual(['p1:on-demand']))
      await enqueue.pairs(pairs('p1'), 'revocation')
      await eventually(() => expect(recorder.ran).toEqual(['p1:on-demand', 'p1:revocation']))
      await enqueue.pairs(pairs('d1', 'd2', 'd3'), 'on-demand')
      await enqueue.pairs(pairs('p1'), 'revocation')
      open()
      await eventually(() => expect(recorder.ran).toHaveLength(6))
      expect(recorder.ran.filter((name) => name === 'p1:revocation')).toHaveLength(2)
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      await recorder.close()
    })

    it('keeps one waiting job per pair, and moves it forward when somebody asks', async () => {
      await enqueue.pairs(pairs('p1', 'p2', 'p2', 'p2'), 'poll')
      await enqueue.pairs(pairs('p2'), 'on-demand')
      expect(await queue.counts()).toMatchObject({ waiting: 2 })
      const recorder = work(() => DONE)
      await eventually(() => expect(recorder.ran).toHaveLength(2))
      expect(recorder.ran).toEqual(['p2:poll', 'p1:poll'])
      await recorder.close()
    })

    it('tells how much waits in several queues, and since when', async () => {
      const fromMs = Date.now()
      const key = { accountId: accountId('acme'), brokerId: brokerId(`b${broker}`) }
      await enqueue.sweep(key, 'sweep', 60_000)
      const backlogOf = async (name: string) =>
        (await backend.backlog([name, 'nothing-here'])).find((each) => each.queue === name)
      expect(await backlogOf(queue.name)).toMatchObject({ waiting: 0, delayed: 1, waitingSinceMs: null })
      await enqueue.pairs(pairs('p1', 'p2'), 'on-demand')
      const { waitingSinceMs, ...counts } = (await backlogOf(queue.name)) ?? { waitingSinceMs: null }
      expect(counts).toEqual({ queue: queue.name, waiting: 2, active: 0, delayed: 1, failed: 0 })
      expect(waitingSinceMs).toBeGreaterThanOrEqual(fromMs)
      expect(waitingSinceMs).toBeLessThanOrEqual(Date.now())
      await enqueue.sweep(key, 'operator')
      const recorder = work(() => DONE)
      await eventually(() => expect(recorder.ran).toHaveLength(3))
      await eventually(async () => expect((await backlogOf(queue.name))?.waitingSinceMs ?? null).toBeNull())
      await recorder.close()
    })

    it('carries the trace of who asks in the job, and nothing that is none', async () => {
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
      const asking = (current: string) =>
        createEnqueuer({ backend, now: Date.now, onMissed: (_what, error) => missed.push(error), trace: () => current })
      await asking(trace).pairs(pairs('p1'), 'on-demand')
      await asking('p1 and its secret').pairs(pairs('p2'), 'on-demand')
      expect(missed.splice(0)).toMatchObject([{ code: 'JOB_PAYLOAD' }])
      const recorder = work(() => DONE)
      await eventually(() => expect(recorder.jobs.map(({ data }) => data)).toMatchObject([{ trace }]))
      await recorder.close()
    })

    it('runs once more after a run during which the pair was asked for, however often', async () => {
      let open = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const recorder = work(async () => {
        if (recorder.ran.length === 1) await gate
        return DONE
      }, 4)
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(() => expect(recorder.ran).toHaveLength(1))
      for (let times = 0; times < 5; times += 1) await enqueue.pairs(pairs('p1'), 'on-demand')
      expect(recorder.ran).toHaveLength(1)
      open()
      await eventually(() => expect(recorder.ran).toHaveLength(2))
      // A later job of another pair shows that no third run was in front of it.
      await enqueue.pairs(pairs('p2'), 'poll')
      await eventually(() => expect(recorder.ran).toEqual(['p1:poll', 'p1:on-demand', 'p2:poll']))
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      await recorder.close()
    })

    it('backs off after a transient error, and runs at once when somebody asks', async () => {
      const recorder = work(() => {
        if (recorder.ran.length === 1) throw new KeymeshError({ code: 'T', fate: 'retry', message: 'try again' })
        return DONE
      })
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(async () => expect(await queue.counts()).toMatchObject({ delayed: 1 }))
      await enqueue.pairs(pairs('p1'), 'poll')
      expect(await queue.counts()).toMatchObject({ delayed: 1, waiting: 0 })
      await enqueue.pairs(pairs('p1'), 'on-demand')
      await eventually(() => expect(recorder.jobs.map(({ attempt }) => attempt)).toEqual([1, 2]))
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      await recorder.close()
    })

    it('does not back off when somebody asked during the attempt that failed', async () => {
      let open = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const recorder = work(async () => {
        if (recorder.ran.length > 1) return DONE
        await gate
        throw new KeymeshError({ code: 'T', fate: 'retry', message: 'try again' })
      })
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(() => expect(recorder.ran).toHaveLength(1))
      await enqueue.pairs(pairs('p1'), 'operator')
      open()
      await eventually(() => expect(recorder.ran).toEqual(['p1:poll', 'p1:poll', 'p1:operator']))
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      await recorder.close()
    })

    it('fails for good at once on a permanent error, with a clean line and no stack', async () => {
      const recorder = work(() => {
        throw new KeymeshError({ code: 'BAD', fate: 'stop', message: 'no\u0000such \ud800thing' })
      })
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(async () => expect(await queue.counts()).toMatchObject({ failed: 1, active: 0, delayed: 0 }))
      expect(recorder.ran).toHaveLength(1)
      expect(engine.failures).toMatchObject([{ fate: 'stop', code: 'BAD', message: 'no such \ufffdthing' }])
      const rows = await engine.dump()
      expect(rows).toContain('no such \ufffdthing')
      expect(rows).not.toMatch(/queue\.test|KeymeshError/)
      // What failed does not stand in the way of the next.
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(() => expect(recorder.ran).toHaveLength(2))
      await recorder.close()
    })

    it('holds the queue while the broker cannot take work, without losing an attempt, and lets one try at a time', async () => {
      let sick = true
      const startedAtMs: number[] = []
      const recorder = work(async () => {
        startedAtMs.push(performance.now())
        await new Promise((resolve) => setImmediate(resolve))
        if (sick) throw new KeymeshError({ code: 'W', fate: 'wait', message: 'the broker is away' })
        return DONE
      }, 3)
      await enqueue.pairs(pairs('p1', 'p2', 'p3', 'p4', 'p5'), 'on-demand')
      await eventually(() => expect(engine.failures.length).toBeGreaterThanOrEqual(6))
      sick = false
      const tries = startedAtMs.slice(2, engine.failures.length)
      for (const [index, atMs] of tries.slice(1).entries()) expect(atMs - (tries[index] ?? 0)).toBeGreaterThan(60)
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      expect(new Set(recorder.jobs.map(({ attempt }) => attempt))).toEqual(new Set([1]))
      expect(recorder.jobs.length - engine.failures.length).toBe(5)
      expect(engine.failures.every(({ fate }) => fate === 'wait')).toBe(true)
      await recorder.close()
    })

    it('lets one try at a time after a rest whose end is known, and all others once that one is done', async () => {
      const broker = { rests: true }
      await enqueue.pairs(pairs('p1', 'p2', 'p3', 'p4', 'p5', 'p6'), 'poll')
      let together = 0
      let mostTogether = 0
      const recorder = work(async () => {
        const restedAtItsStart = broker.rests
        // The first six were taken before anybody knew.
        if (recorder.ran.length <= 6) await eventually(() => expect(recorder.ran.length).toBeGreaterThanOrEqual(6))
        else together += 1
        mostTogether = Math.max(mostTogether, together)
        await new Promise((resolve) => setTimeout(resolve, 30))
        together = Math.max(0, together - 1)
        if (restedAtItsStart) {
          throw new KeymeshError({ code: 'W', fate: 'wait', message: 'the broker rests', retryAfterMs: 150 })
        }
        return DONE
      }, 6)
      await eventually(() => expect(recorder.ran.length).toBeGreaterThanOrEqual(10))
      expect(mostTogether).toBe(1)
      broker.rests = false
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      expect(new Set(recorder.jobs.map(({ attempt }) => attempt))).toEqual(new Set([1]))
      await recorder.close()
    })

    it.each([
      ['whose end is known', 100],
      ['whose end nobody knows', undefined],
    ])('runs the others after a rest %s though the one that goes first takes its time', async (_rest, retryAfterMs) => {
      let end = (): void => undefined
      const ended = new Promise<void>((resolve) => {
        end = resolve
      })
      const recorder = work(async () => {
        if (recorder.ran.length <= 3) {
          await eventually(() => expect(recorder.ran.length).toBeGreaterThanOrEqual(3))
          throw new KeymeshError({ code: 'W', fate: 'wait', message: 'the broker rests', retryAfterMs })
        }
        if (recorder.ran.length === 4) await ended
        return DONE
      }, 3)
      await enqueue.pairs(pairs('p1', 'p2', 'p3', 'p4', 'p5'), 'poll')
      try {
        await eventually(async () => expect(await queue.counts()).toEqual({ ...EMPTY, active: 1 }))
      } finally {
        end()
      }
      await eventually(async () => expect(await queue.counts()).toEqual(EMPTY))
      expect(recorder.ran).toHaveLength(3 + 5)
      await recorder.close()
    })

    it('tries a job again that was not its turn, without losing an attempt', async () => {
      const recorder = work(() => (recorder.ran.length < 4 ? { status: 'again', afterMs: 5 } : DONE))
      await enqueue.pairs(pairs('p1'), 'poll')
      await eventually(() => expect(recorder.jobs.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1]))
      expect(engine.failures).toEqual([])
      await recorder.close()
    })

    it('takes no job of a paused queue, and all of them afterwards', async () => {
      await queue.setPaused(true)
      await enqueue.pairs(pairs('p1'), 'on-demand')
      const recorder = work(() => DONE)
      expect(await queue.counts()).toMatchObject({ waiting: 1 })
      expect(recorder.ran).toEqual([])
      await queue.setPaused(false)
      await eventually(() => expect(recorder.ran).toHaveLength(1))
      await recorder.close()
    })
  })
})
