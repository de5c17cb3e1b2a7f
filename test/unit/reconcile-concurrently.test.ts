import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { concurrently, inOrder } from '../../src/reconcile/concurrently.ts'

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

describe('in order', () => {
  async function* items(count: number): AsyncGenerator<number> {
    yield* range(count)
  }

  it('gives results as the items came, with as many at work as the limit', async () => {
    let running = 0
    let most = 0
    const results: number[] = []
    const work = inOrder(items(12), 4, async (item) => {
      running += 1
      most = Math.max(most, running)
      // The first of each few is the slowest.
      for (let turns = 0; turns < (item % 4 === 0 ? 20 : 1); turns += 1) await turn()
      running -= 1
      return item
    })
    for await (const result of work) results.push(result)
    expect(results).toEqual(range(12))
    expect(most).toBe(4)
  })

  it('tells the failure in its turn, when all that runs has ended', async () => {
    let running = 0
    const results: number[] = []
    const work = async () => {
      for await (const result of inOrder(items(50), 3, async (item) => {
        running += 1
        for (let turns = 0; turns < 5; turns += 1) await turn()
        running -= 1
        if (item === 4) throw new Error('item 4')
        return item
      })) {
        results.push(result)
      }
    }
    await expect(work()).rejects.toThrow('item 4')
    expect([results, running]).toEqual([[0, 1, 2, 3], 0])
  })

  it('lets nothing run on when nobody takes further results', async () => {
    let running = 0
    for await (const _ of inOrder(items(50), 3, async () => {
      running += 1
      for (let turns = 0; turns < 5; turns += 1) await turn()
      running -= 1
    })) {
      break
    }
    expect(running).toBe(0)
  })
})
