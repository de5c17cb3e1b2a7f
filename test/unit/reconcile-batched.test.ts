import { describe, expect, it } from 'vitest'
import { batched } from '../../src/store/batched.ts'

describe('batched', () => {
  it('sends together what is asked while a batch is under way, and gives each its own answer', async () => {
    const batches: number[][] = []
    const double = batched<number, number>(async (inputs) => {
      batches.push([...inputs])
      await Promise.resolve()
      return inputs.map((input) => input * 2)
    })
    const first = [1, 2, 3].map(double)
    expect(await Promise.all(first)).toEqual([2, 4, 6])
    expect(await double(4)).toBe(8)
    expect(batches).toEqual([[1, 2, 3], [4]])
  })

  it('bounds a batch', async () => {
    const sizes: number[] = []
    const echo = batched<number, number>(async (inputs) => {
      sizes.push(inputs.length)
      return inputs
    }, 2)
    expect(await Promise.all([1, 2, 3, 4, 5].map(echo))).toEqual([1, 2, 3, 4, 5])
    expect(sizes).toEqual([2, 2, 1])
  })

  it('lets one bad item fail alone', async () => {
    const work = batched<number, number>(async (inputs) => {
      if (inputs.includes(2)) throw new Error('not 2')
      return inputs
    })
    const results = await Promise.allSettled([1, 2, 3].map(work))
    expect(results).toMatchObject([{ value: 1 }, { status: 'rejected', reason: { message: 'not 2' } }, { value: 3 }])
    expect(await work(4)).toBe(4)
  })

  it('takes a null answer for an answer, and too few answers for a fault', async () => {
    expect(await batched<number, null>(async (inputs) => inputs.map(() => null))(1)).toBeNull()
    await expect(batched<number, number>(async () => [])(1)).rejects.toThrow('too few')
  })
})
