import { expect, it } from 'vitest'
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
