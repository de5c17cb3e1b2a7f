import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { JobServices, UsableBroker } from '../../jobs/job-services.ts'
import { startWorkers, type Workers } from '../../jobs/start-workers.ts'
import { accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { createEnqueuer, type Enqueuer } from '../../src/queue/enqueue.ts'
import type { JobOutcome, QueueBackend } from '../../src/queue/job-queue.ts'
import { brokerQueue, CATALOGUE_QUEUE, NOTIFICATIONS_QUEUE, REGISTRATIONS_QUEUE } from '../../src/queue/queue-names.ts'
import { createScheduler, type ScheduleName, type Scheduler, type TickStore } from '../../src/queue/schedules.ts'
import type { Pair } from '../../src/reconcile/store-port.ts'
import { engineCases, type TestEngine } from '../helpers/queue-engines.ts'

const DONE: JobOutcome = { status: 'done' }
const NEVER = '0 0 29 2 *'
const eventually = (check: () => unknown | Promise<unknown>): Promise<unknown> =>
  vi.waitFor(check, { timeout: 30_000, interval: 10 })
const acme = accountId('acme')
const usable = (name: string, paused = false): UsableBroker => ({ accountId: acme, brokerId: brokerId(name), paused })
const pairOf = (broker: string, name: string): Pair => ({
  accountId: acme,
  brokerId: brokerId(broker),
  registrationId: registrationId(name),
})

/** A store of ticks and the services, in memory. */
function memoryTicks(): TickStore & { readonly ticks: Map<ScheduleName, number> } {
  const ticks = new Map<ScheduleName, number>()
  return {
    ticks,
    lastTick: async (schedule) => ticks.get(schedule) ?? null,
    recordTick: async (schedule, tickMs) => void ticks.set(schedule, Math.max(tickMs, ticks.get(schedule) ?? 0)),
  }
}

function recordingServices(overrides: Partial<JobServices> = {}): JobServices & { readonly calls: string[] } {
  const calls: string[] = []
  const call = async <Result>(name: string, result: Result): Promise<Result> => {
    calls.push(name)
    return result
  }
  return {
    calls,
    laggingPairs: () => call('laggingPairs', []),
    revokedPairs: () => call('revokedPairs', []),
    pairsOfRegistration: (_account, id) => call(`pairsOf ${id}`, []),
    reconcilePair: (pair, trigger) => call(`reconcile ${pair.brokerId} ${pair.registrationId} ${trigger}`, 'done'),
    sweepBroker: (broker, trigger) => call(`sweep ${broker.brokerId} ${trigger}`, undefined),
    verifyBroker: (broker) => call(`verify ${broker.brokerId}`, undefined),
    usableBrokers: async () => [],
    followRemoteCatalogue: async () => false,
    retireExpired: () => call('retireExpired', 0),
    pruneRecords: () => call('pruneRecords', 0),
    dueEndpoints: () => call('dueEndpoints', []),
    deliverNotifications: () => call('deliverNotifications', 0),
    ...overrides,
  }
}

describe.each(engineCases())('schedules and jobs on $engine', ({ skip, start }) => {
  describe.skipIf(skip)('over replicas', () => {
    let engine: TestEngine
    let backend: QueueBackend
    let enqueue: Enqueuer
    const open: { close(): Promise<unknown> }[] = []
    const fail = (what: unknown, error: unknown): void => expect.fail(`${String(what)}: ${String(error)}`)

    beforeAll(async () => {
      engine = await start()
      backend = await engine.open()
      enqueue = createEnqueuer({ backend, now: Date.now, onMissed: fail })
    })
    afterEach(async () => {
      for (const each of open.splice(0)) await each.close()
    })
    afterAll(async () => {
      await backend?.close()
      await engine?.stop()
    })

    const workersFor = async (services: JobServices, on = backend): Promise<Workers> => {
      const workers = await startWorkers({ backend: on, services, enqueue, sweepSpreadMs: 1, onError: fail })
      open.push({ close: () => workers.close(5_000) })
      return workers
    }
    const schedulerOn = (
      on: QueueBackend,
      ticks: TickStore,
      expressions: Partial<Record<ScheduleName, string>>,
      now: () => number = Date.now,
    ): Scheduler => {
      const scheduler = createScheduler({
        backend: on,
        ticks,
        expressions,
        now,
        onError: fail,
      })
      open.push({ close: () => scheduler.stop() })
      return scheduler
    }
    const noneButPrune = {
      'poll-catalogue': NEVER,
      'poll-registrations': NEVER,
      'sweep-brokers': NEVER,
      'retire-expired': NEVER,
      'poll-notifications': NEVER,
    }

    it('three schedulers make one job per tick', async () => {
      const ran: string[] = []
      const worker = backend.worker(
        CATALOGUE_QUEUE,
        async ({ id }) => {
          ran.push(id)
          return DONE
        },
        { concurrency: 1 },
      )
      open.push({ close: () => worker.close(5_000) })
      const replicas = [backend, await engine.open(), await engine.open()]
      for (const replica of replicas.slice(1)) open.push(replica)
      const fired: string[] = []
      const schedulers = replicas.map((replica) => {
        const ticks = memoryTicks()
        return schedulerOn(
          replica,
          {
            lastTick: async () => Date.now(),
            async recordTick(schedule, tickMs) {
              fired.push(`${schedule}-${tickMs / 1_000}`)
              await ticks.recordTick(schedule, tickMs)
            },
          },
          { ...noneButPrune, 'prune-records': '* * * * * *' },
        )
      })
      await Promise.all(schedulers.map((scheduler) => scheduler.start()))
      await eventually(() => expect(new Set(fired).size).toBeGreaterThanOrEqual(3))
      await Promise.all(schedulers.map((scheduler) => scheduler.stop()))
      expect(fired.length).toBeGreaterThanOrEqual(6)
      await eventually(() => expect([...ran].sort()).toEqual([...new Set(fired)].sort()))
    })

    it('what was due while nobody was there runs once at the start', async () => {
      const services = recordingServices()
      const ticks = memoryTicks()
      const nowMs = Date.UTC(2026, 0, 10, 12)
      ticks.ticks.set('prune-records', nowMs - 3 * 86_400_000)
      ticks.ticks.set('retire-expired', nowMs)
      const expressions = { ...noneButPrune, 'prune-records': '0 3 * * *', 'retire-expired': '0 12 * * *' }
      await Promise.all(
        [1, 2, 3].map(() =>
          schedulerOn(
            backend,
            { ...ticks, lastTick: async (schedule) => ticks.ticks.get(schedule) ?? nowMs },
            expressions,
            () => nowMs,
          ).start(),
        ),
      )
      await workersFor(services)
      await enqueue.registration(acme, registrationId('marker'))
      await eventually(() => expect(services.calls).toContain('pairsOf marker'))
      await eventually(() => expect(services.calls).toContain('pruneRecords'))
      await eventually(async () =>
        expect(await backend.queue(CATALOGUE_QUEUE).counts()).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 }),
      )
      expect(services.calls.filter((name) => !name.startsWith('pairsOf'))).toEqual(['pruneRecords'])
      expect(ticks.ticks.get('prune-records')).toBe(Date.UTC(2026, 0, 10, 3))
    })

    it('a tick sweeps each broker once, however many replicas fire it', async () => {
      const services = recordingServices({ usableBrokers: async () => [usable('swept-1'), usable('swept-2')] })
      const tickMs = Math.floor(Date.now() / 60_000) * 60_000
      await Promise.all([1, 2, 3].map(() => schedulerOn(backend, memoryTicks(), {}).fire('sweep-brokers', tickMs)))
      await workersFor(services)
      await eventually(() => expect([...services.calls].sort()).toEqual(['sweep swept-1 sweep', 'sweep swept-2 sweep']))
      await schedulerOn(backend, memoryTicks(), {}).fire('sweep-brokers', tickMs)
      await enqueue.sweep(usable('swept-1'), 'operator')
      await eventually(() => expect(services.calls.slice(2)).toEqual(['sweep swept-1 operator']))
    })

    it('a registration fans out to its brokers, and the poll finds a pair whose job was lost', async () => {
      const lagging: Pair[] = []
      const services = recordingServices({
        usableBrokers: async () => [usable('fan-1'), usable('fan-2')],
        pairsOfRegistration: async (_account, id) => [pairOf('fan-1', id), pairOf('fan-2', id)],
        laggingPairs: async () => lagging,
      })
      await workersFor(services)
      await enqueue.registration(acme, registrationId('r1'))
      await eventually(() =>
        expect([...services.calls].sort()).toEqual(['reconcile fan-1 r1 on-demand', 'reconcile fan-2 r1 on-demand']),
      )
      // Committed, and the process died before it enqueued anything.
      lagging.push(pairOf('fan-1', 'lost'))
      await backend.queue(REGISTRATIONS_QUEUE).add([{ name: 'poll-registrations', payload: {} }])
      await eventually(() => expect(services.calls).toContain('reconcile fan-1 lost poll'))
    })

    it('a pair whose lease another holds is tried again until it is free', async () => {
      let busy = 2
      const services = recordingServices({
        usableBrokers: async () => [usable('busy')],
        reconcilePair: async () => {
          services.calls.push('reconcile')
          busy -= 1
          return busy > 0 ? 'busy' : 'done'
        },
      })
      await workersFor(services)
      await enqueue.pairs([pairOf('busy', 'r1')], 'on-demand')
      await eventually(() => expect(services.calls).toEqual(['reconcile', 'reconcile']))
      expect(engine.failures).toEqual([])
    })

    it('workers follow the list of brokers, and a paused broker waits', async () => {
      let brokers = [usable('first')]
      const services = recordingServices({ usableBrokers: async () => brokers })
      const workers = await workersFor(services)
      const before = backend.maxConnections()
      const queueOf = (name: string): string => brokerQueue(usable(name))
      expect(workers.queues()).toEqual([CATALOGUE_QUEUE, REGISTRATIONS_QUEUE, NOTIFICATIONS_QUEUE, queueOf('first')])

      brokers = [usable('second', true), usable('third')]
      await backend.queue(CATALOGUE_QUEUE).add([{ name: 'poll-catalogue', payload: {} }])
      const expected = [CATALOGUE_QUEUE, REGISTRATIONS_QUEUE, NOTIFICATIONS_QUEUE, queueOf('second'), queueOf('third')]
      await eventually(() => expect(workers.queues()).toEqual(expected))
      await eventually(() => expect(backend.maxConnections()).toBe(before + 1))
      await enqueue.pairs([pairOf('second', 'r1'), pairOf('third', 'r1')], 'on-demand')
      await eventually(() => expect(services.calls).toEqual(['reconcile third r1 on-demand']))

      brokers = [usable('second'), usable('third')]
      await workers.followBrokers()
      await eventually(() => expect(services.calls).toContain('reconcile second r1 on-demand'))
    })

    it('a sweep leaves the other slots of its broker to pairs', async () => {
      const services = recordingServices({
        usableBrokers: async () => [usable('slots')],
        sweepBroker: (_broker, _trigger, signal, onProgress) => {
          services.calls.push('sweep')
          onProgress(1, 2)
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
          })
        },
      })
      const workers = await startWorkers({ backend, services, enqueue, brokerConcurrency: 2, onError: fail })
      await enqueue.sweep(usable('slots'), 'sweep')
      await eventually(() => expect(services.calls).toEqual(['sweep']))
      await enqueue.sweep(usable('slots'), 'operator')
      await enqueue.pairs([pairOf('slots', 'r1'), pairOf('slots', 'r2')], 'poll')
      await eventually(() => expect(services.calls).toHaveLength(3))
      expect(services.calls).toEqual(['sweep', 'reconcile slots r1 poll', 'reconcile slots r2 poll'])
      await eventually(async () => expect(await engine.dump()).toMatch(/"?progress\\?"?.{1,6}done.{1,6}1/))
      expect(await workers.close(50)).toBe(true)
      expect(engine.failures).toEqual([])
    })

    it('logins and a sweep leave a slot of their broker to pairs; the same logins asked for while they wait are one job', async () => {
      let mayEnd = (): void => undefined
      const held = new Promise<void>((resolve) => {
        mayEnd = resolve
      })
      const hold = (call: string) => {
        services.calls.push(call)
        return held
      }
      const services = recordingServices({
        usableBrokers: async () => [usable('logins')],
        sweepBroker: () => hold('sweep'),
        verifyBroker: (_broker, { registrationId: id = 'all', protocol = 'all' }) => hold(`verify ${id} ${protocol}`),
      })
      const workers = await startWorkers({ backend, services, enqueue, brokerConcurrency: 1, onError: fail })
      open.push({ close: () => workers.close(5_000) })
      const r1 = registrationId('r1')
      await enqueue.sweep(usable('logins'), 'sweep')
      await enqueue.verify(usable('logins'), {})
      await eventually(() => expect(services.calls.toSorted()).toEqual(['sweep', 'verify all all']))
      for (let count = 0; count < 3; count += 1) await enqueue.verify(usable('logins'), {})
      await enqueue.pairs([pairOf('logins', 'r1')], 'poll')
      await eventually(() => expect(services.calls).toContain('reconcile logins r1 poll'))
      await enqueue.verify(usable('logins'), { registrationId: r1, protocol: 'mqtt' })
      mayEnd()
      await eventually(() => expect(services.calls.slice(3).toSorted()).toEqual(['verify all all', 'verify r1 mqtt']))
    })

    it('many brokers work over few connections, which are counted', async () => {
      const small = await engine.open({ baseConnections: 1 })
      open.push(small)
      const names = Array.from({ length: 12 }, (_, index) => `many-${index}`)
      const services = recordingServices({ usableBrokers: async () => names.map((name) => usable(name)) })
      await workersFor(services, small)
      expect(small.maxConnections()).toBe(1 + 12 + 3)
      await enqueue.pairs(
        names.flatMap((name) => [pairOf(name, 'r1'), pairOf(name, 'r2')]),
        'poll',
      )
      await eventually(() => expect(services.calls).toHaveLength(24))
    })

    it('no row of the queue holds more than names, and other fields are refused', async () => {
      await enqueue.pairs([pairOf('rows', 'r1')], 'on-demand')
      const smuggled = { ...pairOf('rows', 'r2'), trigger: 'poll', consumerSecret: 'hunter2' } as const
      await expect(
        backend.queue(brokerQueue(usable('rows'))).add([{ name: 'reconcile-pair', payload: smuggled }]),
      ).rejects.toThrow('payload (unrecognized_keys)')
      const rows = await engine.dump()
      expect(rows).toContain('r1')
      expect(rows).not.toContain('hunter2')
    })
  })
})
