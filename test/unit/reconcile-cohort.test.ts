import { describe, expect, it } from 'vitest'
import { Cohort } from '../../src/reconcile/cohort.ts'

describe('a cohort', () => {
  it('lets nobody pass before all have arrived, and can be met again', async () => {
    const cohort = new Cohort(3)
    const passed: string[] = []
    const member = async (name: string): Promise<void> => {
      await cohort.arrive()
      passed.push(`${name} 1`)
      await cohort.arrive()
      passed.push(`${name} 2`)
    }
    const first = [member('a'), member('b')]
    await Promise.resolve()
    expect(passed).toEqual([])
    await Promise.all([...first, member('c')])
    expect(passed.slice(0, 3).sort()).toEqual(['a 1', 'b 1', 'c 1'])
    expect(passed.slice(3).sort()).toEqual(['a 2', 'b 2', 'c 2'])
  })

  it('does not wait for who left', async () => {
    const cohort = new Cohort(2)
    const arrived = cohort.arrive()
    cohort.leave()
    await arrived
    await cohort.arrive()
  })
})
