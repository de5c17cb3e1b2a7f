import { expect, it, vi } from 'vitest'
import { UrgentRuns } from '../../src/urgent-runs.ts'

const gate = (): { readonly open: () => void; readonly opened: Promise<void> } => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

it('is urgent while a run is under way, for a second at most, however it ends', async () => {
  let nowMs = 0
  const urgent = new UrgentRuns(() => nowMs)
  const [slow, quick] = [gate(), gate()]
  expect(urgent.any()).toBe(false)

  const slowRun = urgent.during(() => slow.opened)
  nowMs = 999
  expect(urgent.any()).toBe(true)
  nowMs = 1_000
  expect(urgent.any()).toBe(false)

  const quickRun = urgent.during(() => quick.opened.then(() => Promise.reject(new Error('refused'))))
  expect(urgent.any()).toBe(true)
  quick.open()
  await expect(quickRun).rejects.toThrow('refused')
  expect(urgent.any()).toBe(false)

  slow.open()
  await slowRun
  expect(urgent.any()).toBe(false)
})

it('stands back until no run is urgent, and half a second where one always is', async () => {
  let nowMs = 0
  let looks = 0
  const urgent = new UrgentRuns(() => {
    looks += 1
    return nowMs
  })
  await urgent.standBack()

  const { open, opened } = gate()
  const run = urgent.during(() => opened)
  let isOver = false
  const standing = urgent.standBack().then(() => {
    isOver = true
  })
  nowMs = 499
  const before = looks
  await vi.waitFor(() => expect(looks).toBeGreaterThan(before + 3))
  expect(isOver).toBe(false)
  open()
  await run
  await standing

  const another = urgent.during(() => new Promise<void>(() => undefined))
  const patient = urgent.standBack()
  nowMs = 999
  await patient
  expect(urgent.any()).toBe(true)
  void another
})
