// Reads the JSON report of a test run, says what was skipped and why, and ends with the counts alone on the last line.
// Exit status: 0 all passed and every skip has a reason that holds on this machine, 1 otherwise.
// Usage: node scripts/report-skips.mjs REPORT.json
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../', import.meta.url))

const runs = (program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0

/** Only a privileged user may, and not in every container. */
function canMount() {
  const directory = mkdtempSync(join(tmpdir(), 'keymesh-mount-'))
  try {
    const mounts = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', directory], { stdio: 'ignore' }).status === 0
    if (mounts) spawnSync('umount', [directory], { stdio: 'ignore' })
    return mounts
  } finally {
    rmdirSync(directory)
  }
}
const sourceOf = (file) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')

/** Where the tests in a browser look for it. */
const CHROMIUMS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Why a test may be skipped: when the reason holds on this machine, and for which tests. */
const REASONS = [
  {
    reason: '../shared is not here',
    holds: () => !existsSync(new URL('../../shared', import.meta.url)),
    explains: ({ file }) => /\bshared\/spec\b/.test(sourceOf(file)),
  },
  {
    reason: 'REDIS_URL is not set and there is no redis-server',
    holds: () => process.env.REDIS_URL === undefined && !runs('redis-server') && !runs('valkey-server'),
    explains: ({ name }) => /redis/i.test(name),
  },
  {
    reason: 'a tmpfs cannot be mounted, so no disk can be full',
    holds: () => !canMount(),
    explains: ({ name }) => /disk is full/.test(name),
  },
  {
    reason: 'KEYMESH_TEST_SEMP_URL is not set',
    holds: () => (process.env.KEYMESH_TEST_SEMP_URL ?? '') === '',
    explains: ({ file }) => file === 'test/contract/given-broker-port.test.ts',
  },
  {
    reason: 'mosquitto-clients are not installed',
    holds: () => spawnSync('mosquitto_pub', ['--help'], { stdio: 'ignore' }).error !== undefined,
    explains: ({ file }) => file === 'test/e2e/mosquitto.test.ts',
  },
  {
    reason: 'chromium is not installed',
    holds: () => !CHROMIUMS.some(existsSync),
    explains: ({ file }) => file.startsWith('test/browser/'),
  },
]

/** Docker, its image, or both are not here; the suite itself says on standard error which. */
const lacksImage = (variable, usual) =>
  spawnSync('docker', ['image', 'inspect', process.env[variable] || usual], { stdio: 'ignore' }).status !== 0

for (const [file, variable, usual] of [
  ['test/containers/postgresql.test.ts', 'KEYMESH_TEST_POSTGRES_IMAGE', 'postgres:16-alpine'],
  ['test/containers/redis.test.ts', 'KEYMESH_TEST_REDIS_IMAGE', 'redis:7-alpine'],
  ['test/containers/broker.test.ts', 'KEYMESH_TEST_BROKER_IMAGE', 'solace/solace-pubsub-standard:latest'],
]) {
  REASONS.push({
    reason: `Docker does not have the image of ${variable} (${usual})`,
    holds: () => lacksImage(variable, usual),
    explains: (test) => test.file === file,
  })
}

function summarise(report) {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const expected = new Map()
  const unexpected = []
  const holding = REASONS.filter(({ holds }) => holds())
  for (const suite of report.testResults) {
    const file = relative(repository, suite.name).split(sep).join('/')
    const broken = suite.assertionResults.every(({ status }) => status !== 'failed') && suite.status === 'failed'
    // A file that could not be loaded has no tests that failed, and is no success.
    if (broken) counts.failed += 1
    for (const { status, fullName: name } of suite.assertionResults) {
      if (status === 'passed') counts.passed += 1
      else if (status === 'failed') counts.failed += 1
      else {
        counts.skipped += 1
        const found = holding.find(({ explains }) => explains({ file, name }))
        if (found === undefined) unexpected.push(`${file}: ${name}`)
        else expected.set(found.reason, (expected.get(found.reason) ?? 0) + 1)
      }
    }
  }
  return { counts, expected, unexpected }
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    process.stdout.write('The tests left no report: they did not run to their end.\n')
    return { success: false, testResults: [] }
  }
}

function main(path) {
  const report = readReport(path)
  const { counts, expected, unexpected } = summarise(report)
  for (const [reason, count] of expected) process.stdout.write(`skipped ${count}: ${reason}\n`)
  for (const test of unexpected) process.stdout.write(`skipped without a reason that is known: ${test}\n`)
  if (!report.success && counts.failed === 0) process.stdout.write('The test run failed outside of its tests.\n')
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
  process.exitCode = report.success && counts.failed === 0 && unexpected.length === 0 ? 0 : 1
}

main(process.argv[2])
