import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Lane, RequestLimiter } from '../../src/brokers/solace/request-limiter.ts'

describe('the request limiter', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

  it('serves in the order of arrival, and nobody overtakes', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 2 })
    const served: string[] = []
    const come = (name: string): void => void limiter.acquire().then(() => served.push(name))
    for (const name of ['a', 'b', 'c', 'd']) come(name)
    await settle()
    expect(served).toEqual(['a', 'b'])
    expect(limiter.tryAcquire()).toBe(false)
    limiter.release()
    // The slot belongs to `c` already, although `c` has not run yet.
    expect(limiter.tryAcquire()).toBe(false)
    await settle()
    expect(served).toEqual(['a', 'b', 'c'])
    limiter.release()
    limiter.release()
    limiter.release()
    await settle()
    expect(served).toEqual(['a', 'b', 'c', 'd'])
    expect(limiter.waiting).toBe(0)
  })

  it('forgets whoever aborts and gives the slot to the next', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 1 })
    await limiter.acquire()
    const abort = new AbortController()
    const gone = limiter.acquire(abort.signal)
    const next = limiter.acquire()
    abort.abort(new Error('no longer'))
    await expect(gone).rejects.toThrow('no longer')
    expect(limiter.waiting).toBe(1)
    limiter.release()
    await next
  })

  it('refuses a signal that was aborted before', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 1 })
    await expect(limiter.acquire(AbortSignal.abort(new Error('early')))).rejects.toThrow('early')
    expect(limiter.tryAcquire()).toBe(true)
  })

  it.each([10, 200, 2_000])('keeps a rate of %i per second over time', async (maxPerSecond) => {
    const limiter = new RequestLimiter({ maxConcurrent: 50, maxPerSecond })
    let started = 0
    let isOver = false
    const worker = async (): Promise<void> => {
      while (!isOver) {
        await limiter.acquire()
        started += 1
        limiter.release()
      }
    }
    const workers = Array.from({ length: 5 }, worker)
    await vi.advanceTimersByTimeAsync(2_000)
    isOver = true
    expect(started).toBeGreaterThan(maxPerSecond * 2 * 0.9)
    expect(started).toBeLessThanOrEqual(maxPerSecond * 2 + 0.02 * maxPerSecond + 1)
    await vi.advanceTimersByTimeAsync(1_000)
    await Promise.all(workers)
  })

  it('does not save up a burst while nothing runs', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 50, maxPerSecond: 10 })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(limiter.tryAcquire()).toBe(true)
    expect(limiter.tryAcquire()).toBe(false)
  })

  it('rejects those who wait when it is closed, and leaves no timer', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 5, maxPerSecond: 1 })
    await limiter.acquire()
    const waiting = limiter.acquire()
    limiter.rejectWaiting(new Error('closed'))
    await expect(waiting).rejects.toThrow('closed')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('lets the foreground go first, and the background every fourth time', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 1 })
    await limiter.acquire()
    const served: string[] = []
    const come = (name: string, lane: 'foreground' | 'background'): void =>
      void limiter.acquire(undefined, lane).then(() => served.push(name))
    for (const name of ['b1', 'b2', 'b3']) come(name, 'background')
    for (const name of ['f1', 'f2', 'f3', 'f4', 'f5']) come(name, 'foreground')
    expect(limiter.waiting).toBe(8)
    for (let turn = 0; turn < 8; turn += 1) {
      limiter.release()
      await Promise.resolve()
    }
    await vi.waitFor(() => expect(served).toEqual(['f1', 'f2', 'f3', 'b1', 'f4', 'f5', 'b2', 'b3']))
  })

  it('rejects who waits in either lane', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 1 })
    await limiter.acquire()
    const waits = [limiter.acquire(), limiter.acquire(undefined, 'background')]
    limiter.rejectWaiting(new Error('closed'))
    expect(await Promise.allSettled(waits)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
    expect(limiter.waiting).toBe(0)
  })

  it('leaves the background one slot in five while it is urgent elsewhere, and all of them afterwards', async () => {
    let isUrgent = true
    const limiter = new RequestLimiter({ maxConcurrent: 10, isUrgent: () => isUrgent })
    const served: string[] = []
    const come = (lane: 'foreground' | 'background'): void =>
      void limiter.acquire(undefined, lane).then(() => served.push(lane))
    for (let count = 0; count < 20; count += 1) come('background')
    await settle()
    expect(served).toHaveLength(2)
    for (let count = 0; count < 3; count += 1) come('foreground')
    await settle()
    expect(served.slice(2)).toEqual(['foreground', 'foreground', 'foreground'])
    isUrgent = false
    limiter.release('background')
    await settle()
    expect(served).toHaveLength(2 + 3 + 6)
    expect(limiter.waiting).toBe(20 - 8)
  })

  it('leaves the background one slot where there are few', async () => {
    const limiter = new RequestLimiter({ maxConcurrent: 2, isUrgent: () => true })
    expect(limiter.tryAcquire('background')).toBe(true)
    expect(limiter.tryAcquire('background')).toBe(false)
    expect(limiter.tryAcquire()).toBe(true)
  })

  it('serves everyone, whatever comes, goes and is urgent, and never more at a time than it may', async () => {
    const lane = fc.constantFrom('foreground' as const, 'background' as const)
    const step = fc.oneof(
      fc.record({ do: fc.constant('come' as const), lane }),
      fc.record({ do: fc.constant('go' as const), which: fc.nat() }),
      fc.record({ do: fc.constant('urgent' as const), is: fc.boolean() }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(step, { maxLength: 80 }),
        async (maxConcurrent, steps) => {
          let isUrgent = false
          const limiter = new RequestLimiter({ maxConcurrent, isUrgent: () => isUrgent })
          const running: Lane[] = []
          let came = 0
          let served = 0
          const go = async (which: number): Promise<void> => {
            const [gone] = running.splice(which % running.length, 1)
            if (gone !== undefined) limiter.release(gone)
            await Promise.resolve()
          }
          for (const next of steps) {
            if (next.do === 'urgent') isUrgent = next.is
            else if (next.do === 'go') await go(next.which)
            else {
              came += 1
              void limiter.acquire(undefined, next.lane).then(() => {
                served += 1
                running.push(next.lane)
              })
            }
            await settle()
            expect(running.length).toBeLessThanOrEqual(maxConcurrent)
          }
          while (running.length > 0) {
            await go(0)
            await settle()
          }
          expect(served).toBe(came)
          expect(limiter.waiting).toBe(0)
        },
      ),
    )
  })
})
