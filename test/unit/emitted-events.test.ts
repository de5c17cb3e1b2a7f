import { describe, expect, it } from 'vitest'
import { emittedEvents } from '../../src/operations/emitted-events.ts'

const NEVER = new AbortController().signal

describe('the events of work', () => {
  it('come in order, and then what it failed with', async () => {
    const seen: number[] = []
    const events = emittedEvents<number>(NEVER, async ({ emit }) => {
      for (const event of [1, 2, 3]) await emit(event)
      throw new Error('over')
    })
    const reading = (async () => {
      for await (const event of events) seen.push(event)
    })()
    await expect(reading).rejects.toThrow('over')
    expect(seen).toEqual([1, 2, 3])
  })

  it('make the work wait for a reader that is slow', async () => {
    let emitted = 0
    const events = emittedEvents<number>(NEVER, async ({ emit }) => {
      for (; emitted < 1000; emitted += 1) await emit(emitted)
    })
    await events.next()
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(emitted).toBeLessThan(100)
    let read = 1
    for await (const _event of events) read += 1
    expect(read).toBe(1000)
  })

  it('are dropped when they are only progress and nobody reads', async () => {
    const events = emittedEvents<string>(NEVER, async ({ emit, mention }) => {
      for (let done = 0; done < 1000; done += 1) mention(`${done}`)
      await emit('end')
    })
    const seen: string[] = []
    for await (const event of events) seen.push(event)
    expect(seen).toEqual(['0', 'end'])
  })

  it('end the work when the reader leaves, and let the reader go when it has ended', async () => {
    let ended = false
    const events = emittedEvents<number>(NEVER, async ({ emit }, signal) => {
      await emit(1)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      await emit(2)
      ended = true
    })
    for await (const _event of events) break
    expect(ended).toBe(true)
  })

  it('end the work when the caller aborts', async () => {
    const controller = new AbortController()
    const events = emittedEvents<number>(controller.signal, async (_emitter, signal) => {
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      )
    })
    const reading = events.next()
    controller.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })
})
