import { expect, it } from 'vitest'
import { ErrorRepeats } from '../../src/queue/error-repeats.ts'

it('errors that repeat are told at once, then once a minute with how many there were', () => {
  let nowMs = 0
  const repeats = new ErrorRepeats(60_000, () => nowMs)
  expect(repeats.tell('refused')).toBe(0)
  expect(repeats.tell('reset')).toBe(0)
  for (let time = 0; time < 500; time += 1) {
    nowMs += 100
    expect(repeats.tell('refused')).toBeNull()
  }
  nowMs += 10_000
  expect(repeats.tell('refused')).toBe(500)
  expect(repeats.tell('refused')).toBeNull()
  expect(repeats.tell('reset')).toBe(0)
})

it('errors that are all different do not pile up', () => {
  const repeats = new ErrorRepeats(60_000, () => 0)
  for (let id = 0; id < 5_000; id += 1) expect(repeats.tell(`job ${id}`)).toBe(0)
})
