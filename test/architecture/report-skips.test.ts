import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const script = join(repository, 'scripts/report-skips.mjs')

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'keymesh-report-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

interface Suite {
  readonly file?: string
  readonly status?: string
  readonly tests: readonly (readonly [status: string, fullName: string])[]
}

function report(suites: readonly Suite[], success: boolean) {
  const path = join(directory, 'report.json')
  const testResults = suites.map(({ status = 'passed', tests, file = 'test/integration/queue.test.ts' }) => ({
    name: join(repository, file),
    status,
    assertionResults: tests.map(([result, fullName]) => ({ status: result, fullName })),
  }))
  writeFileSync(path, JSON.stringify({ success, testResults }))
  return run(path)
}

/** No program is found on the path, so there is no redis-server whatever the machine has. */
function run(path: string) {
  const { status, stdout } = spawnSync(process.execPath, [script, path], { encoding: 'utf8', env: { PATH: '' } })
  const lines = stdout.trimEnd().split('\n')
  return { status, last: lines.at(-1), before: lines.slice(0, -1).join('\n') }
}

const passed = ['passed', 'one'] as const

describe('the report of a test run', () => {
  it('ends with the counts and passes when all passed', () => {
    expect(report([{ tests: [passed, passed] }], true)).toEqual({
      status: 0,
      last: '2 passed, 0 failed, 0 skipped',
      before: '',
    })
  })

  it('says why a test was skipped when the reason holds here', () => {
    expect(report([{ tests: [passed, ['skipped', 'the queue on Redis runs jobs']] }], true)).toEqual({
      status: 0,
      last: '1 passed, 0 failed, 1 skipped',
      before: 'skipped 1: REDIS_URL is not set and there is no redis-server',
    })
  })

  it('says why no disk could be full', () => {
    const { status, before } = report([{ tests: [passed, ['skipped', 'a service whose disk is full goes on']] }], true)
    expect([status, before]).toEqual([0, 'skipped 1: a tmpfs cannot be mounted, so no disk can be full'])
  })

  it.each([
    ['test/contract/given-broker-port.test.ts', 'KEYMESH_TEST_SEMP_URL is not set'],
    ['test/containers/broker.test.ts', 'Docker does not have the image of KEYMESH_TEST_BROKER_IMAGE'],
    ['test/containers/redis.test.ts', 'Docker does not have the image of KEYMESH_TEST_REDIS_IMAGE'],
    ['test/containers/postgresql.test.ts', 'Docker does not have the image of KEYMESH_TEST_POSTGRES_IMAGE'],
  ])('says why %s was skipped', (file, reason) => {
    const { status, before } = report([{ tests: [passed] }, { file, tests: [['skipped', 'one']] }], true)
    expect([status, before]).toEqual([0, expect.stringContaining(`skipped 1: ${reason}`)])
  })

  it('fails on a skip without a known reason', () => {
    const { status, last, before } = report([{ tests: [passed, ['pending', 'the queue runs jobs']] }], true)
    expect([status, last]).toEqual([1, '1 passed, 0 failed, 1 skipped'])
    expect(before).toContain('test/integration/queue.test.ts: the queue runs jobs')
  })

  it('fails on a test that failed', () => {
    const result = report([{ status: 'failed', tests: [passed, ['failed', 'two']] }], false)
    expect([result.status, result.last]).toEqual([1, '1 passed, 1 failed, 0 skipped'])
  })

  it('counts a file that could not be loaded', () => {
    const result = report([{ tests: [passed] }, { status: 'failed', tests: [] }], false)
    expect([result.status, result.last]).toEqual([1, '1 passed, 1 failed, 0 skipped'])
  })

  it('fails when the run failed outside of its tests', () => {
    const { status, before } = report([{ tests: [passed] }], false)
    expect([status, before]).toEqual([1, 'The test run failed outside of its tests.'])
  })

  it('fails when there is no report', () => {
    const result = run(join(directory, 'absent.json'))
    expect([result.status, result.last]).toEqual([1, '0 passed, 0 failed, 0 skipped'])
  })
})
