import { describe, expect, it } from 'vitest'
import { ConnectionSlots } from '../../src/reconcile/connection-slots.ts'
import { OneAtATime } from '../../src/reconcile/one-at-a-time.ts'

/** A client username whose connections change while one looks. */
function counted(open: number, limit: number) {
  const state = { open, limit, counts: 0, nowMs: 0 }
  const slots = ConnectionSlots.open({
    count: async () => {
      state.counts += 1
      return { open: state.open, limit: state.limit }
    },
    now: () => state.nowMs,
  })
  return { state, slots }
}

describe('connection slots', () => {
  it.each([
    [0, 0, false],
    [0, 1, false],
    [0, 2, true],
    [1, 2, false],
    [1, 3, true],
    [2, 3, false],
    [9, 1000, true],
  ])('with %i of %i open: a probe may log in is %s', async (open, limit, may) => {
    const refusal = await (await counted(open, limit).slots)?.refusal()
    if (may) expect(refusal).toBeNull()
    else expect(refusal).toMatchObject({ outcome: 'not-verified', reason: 'connection-limit' })
  })

  it('are not there where nothing limits them', async () => {
    expect(await ConnectionSlots.open({ count: async () => null, now: () => 0 })).toBeNull()
  })

  it('are counted once for logins that follow each other closely, and again for later ones', async () => {
    const { state, slots } = counted(0, 2)
    const opened = await slots
    for (let login = 0; login < 11; login += 1) expect(await opened?.refusal()).toBeNull()
    expect(state.counts).toBe(1)
    state.open = 1
    state.nowMs = 2001
    expect(await opened?.refusal()).toMatchObject({ reason: 'connection-limit' })
    expect(state.counts).toBe(2)
  })
})

describe('one at a time', () => {
  /** Work that runs until it is told to end, and the order of what happened. */
  function work() {
    const events: string[] = []
    const ends = new Map<string, () => void>()
    const start = (name: string) => () =>
      new Promise<string>((resolve) => {
        events.push(`${name} begins`)
        ends.set(name, () => {
          events.push(`${name} ends`)
          resolve(name)
        })
      })
    return { events, start, end: (name: string) => ends.get(name)?.() }
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  it('work of one name waits for the one before it, also for one that fails; of another name it does not', async () => {
    const { events, start, end } = work()
    const line = new OneAtATime()
    const failing = line.run('a', () => Promise.reject(new Error('broken')))
    const first = line.run('a', start('first'))
    const second = line.run('a', start('second'))
    const other = line.run('b', start('other'))
    await expect(failing).rejects.toThrow('broken')
    await turn()
    expect(events.toSorted()).toEqual(['first begins', 'other begins'])
    end('first')
    expect(await first).toBe('first')
    await turn()
    expect(events.at(-1)).toBe('second begins')
    end('second')
    end('other')
    expect([await second, await other]).toEqual(['second', 'other'])
  })
})
