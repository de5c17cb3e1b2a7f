import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { until } from './login-fixtures.ts'

const GROWTH_LIMIT_BYTES = 8_000_000
/** What a client may leave behind; pipes and servers belong to the test itself. */
const RESOURCES = /^(?:TCPSocketWrap|TCPConnectWrap|TLSWrap|Timeout|Immediate|GetAddrInfoReqWrap|HTTP.*)$/

/** Runs a probe over and over, some at the same time, and expects that nothing of it stays. */
export async function expectNoLeaks(probe: (index: number) => Promise<unknown>, { rounds = 500, atOnce = 50 } = {}) {
  const run = async (from: number, to: number): Promise<void> => {
    for (let index = from; index < to; index += atOnce) {
      await Promise.all(Array.from({ length: Math.min(atOnce, to - index) }, (_, offset) => probe(index + offset)))
    }
  }
  // What is made once, such as compiled code and buffers that are kept for reuse.
  await run(0, 2 * atOnce)
  const heldBefore = await held()
  const usedBefore = heapUsed()
  await run(0, rounds)
  await until(() => resources().length <= heldBefore.length)
  expect(heapUsed() - usedBefore).toBeLessThan(GROWTH_LIMIT_BYTES)
}

async function held(): Promise<string[]> {
  let before = resources()
  await until(() => {
    const now = resources()
    const isSettled = now.length >= before.length
    before = now
    return isSettled
  })
  return before
}

const resources = (): string[] => process.getActiveResourcesInfo().filter((name) => RESOURCES.test(name))

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
  return process.memoryUsage().heapUsed
}
