import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { concurrently } from '../../src/reconcile/concurrently.ts'

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

describe('concurrently', () => {
  it('runs each item once, never more than the limit at a time', async () => {
    const seen: number[] = []
    let running = 0
    let most = 0
    await concurrently(range(20), 3, async (item) => {
      running += 1
      most = Math.max(most, running)
      await turn()
      seen.push(item)
      running -= 1
    })
    expect(seen.toSorted((a, b) => a - b)).toEqual(range(20))
    expect(most).toBe(3)
  })

  it('takes no further item after a failure, and tells the first one when all have ended', async () => {
    const started: number[] = []
    const ended: number[] = []
    const work = concurrently(range(50), 2, async (item) => {
      started.push(item)
      await turn()
      if (item === 3) throw new Error('item 3')
      await turn()
      ended.push(item)
    })
    await expect(work).rejects.toThrow('item 3')
    expect(started.length).toBeLessThan(8)
    expect(ended).toHaveLength(started.length - 1)
  })

  it('lets nothing run on when the items themselves fail', async () => {
    let running = 0
    async function* items(): AsyncGenerator<number> {
      yield 1
      yield 2
      throw new Error('no more items')
    }
    const work = concurrently(items(), 5, async () => {
      running += 1
      for (let turns = 0; turns < 5; turns += 1) await turn()
      running -= 1
    })
    await expect(work).rejects.toThrow('no more items')
    expect(running).toBe(0)
  })
})
