import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnose } from '../../src/doctor/doctor.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import { checkNode, checkSmfClient } from '../../src/doctor/host-checks.ts'
import { Secret } from '../../src/domain/secret.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { keyRingPath, writeKeyRingFile } from '../../src/secrets/key-ring-file.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { redisAvailable, startTestRedis } from '../helpers/redis.ts'

const WRONG_PASSWORD = 'not-the-password-Rw31'
const NEVER = new AbortController().signal

async function examine(env: Readonly<Record<string, string>>): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const process = { env, pid: 1, hostname: 'test' }
  for await (const finding of diagnose({ process, nodeVersion: 'v22.1.0', now: Date.now, signal: NEVER })) {
    findings.push(finding)
  }
  return findings
}

const lookUp = (findings: readonly Finding[], check: string): Finding => {
  const found = findings.filter((finding) => finding.check === check)
  expect(found.map((finding) => finding.check)).toEqual([check])
  return found[0] as Finding
}
const outcomes = (findings: readonly Finding[], prefix: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    findings
      .filter(({ check }) => check.startsWith(prefix))
      .map((each) => [each.check.slice(prefix.length), each.outcome]),
  )

const GOOD = {
  reach: 'ok',
  TLS: 'ok',
  login: 'ok',
  'message VPN': 'ok',
  authentication: 'ok',
  'SEMP version': 'ok',
  reading: 'ok',
  writing: 'ok',
  'client profiles': 'ok',
  mqtt: 'ok',
  'secure-mqtt': 'ok',
}
const SKIPPED_SCOPES = { reading: 'skipped', writing: 'skipped', 'client profiles': 'skipped' }
const NAMES = ['good', 'wrong-password', 'no-vpn', 'read-only', 'vpn-user', 'radius', 'silent', 'old', 'gone'] as const

describe('the doctor, of a mesh with everything that can be wrong with a broker', () => {
  let mesh: TestMesh
  let findings: readonly Finding[]

  beforeAll(async () => {
    const logins = { mqtt: 0, 'secure-mqtt': 0 }
    mesh = await withMesh({
      brokers: [
        { name: 'good', logins },
        { name: 'wrong-password' },
        { name: 'no-vpn' },
        { name: 'read-only', sempScope: 'read-only' },
        { name: 'vpn-user', sempScope: 'vpn' },
        { name: 'radius', msgVpn: { authenticationBasicType: 'radius' } },
        { name: 'silent', faults: [{ fault: 'http-503', match: { path: '/about/user' } }] },
        { name: 'old', sempVersion: '2.30', logins: { mqtt: 0 } },
        { name: 'gone', logins: { mqtt: 0 } },
      ],
    })
    const declared = mesh.brokers.map((broker) => {
      if (broker.id === 'wrong-password') return { ...broker, managementPassword: new Secret(WRONG_PASSWORD) }
      if (broker.id !== 'no-vpn' || broker.management === null) return broker
      return { ...broker, management: { ...broker.management, msgVpnName: 'elsewhere' } }
    })
    await mesh.import({ brokers: declared })
    await mesh.broker(NAMES.indexOf('gone')).stop()
    findings = await examine(mesh.env)
  })
  afterAll(() => mesh?.[Symbol.asyncDispose]())

  it('looks at everything, and says of each finding what to do', () => {
    expect(outcomes(findings, '')).toMatchObject({
      settings: 'ok',
      node: 'ok',
      database: 'ok',
      'key ring': 'ok',
      migrations: 'ok',
      clock: 'ok',
      'sealed secrets': 'ok',
      queue: 'ok',
      'queue eviction': 'skipped',
      'remote catalogue': 'skipped',
    })
    const wrong = findings.filter(({ outcome }) => outcome === 'warning' || outcome === 'problem')
    expect(wrong.filter(({ fix }) => fix === null)).toEqual([])
  })

  it.each<readonly [string, (typeof NAMES)[number], Readonly<Record<string, string>>, string, RegExp]>([
    ['finds nothing', 'good', GOOD, 'writing', /read-write access/],
    [
      'finds a wrong password',
      'wrong-password',
      { reach: 'ok', TLS: 'ok', login: 'problem', 'message VPN': 'skipped', ...SKIPPED_SCOPES },
      'login',
      /refused the SEMP login/,
    ],
    [
      'finds a message VPN that is missing',
      'no-vpn',
      { login: 'ok', 'message VPN': 'problem' },
      'message VPN',
      /elsewhere/,
    ],
    [
      'finds a user who may not write, without writing',
      'read-only',
      { reading: 'ok', writing: 'problem', 'client profiles': 'warning' },
      'writing',
      /read-only access/,
    ],
    [
      'does not know whether a user of the message VPN may create client profiles',
      'vpn-user',
      { writing: 'ok', 'client profiles': 'warning' },
      'client profiles',
      /cannot be known without trying; these are missing: keymesh-direct/,
    ],
    ['finds another authority', 'radius', { authentication: 'warning' }, 'authentication', /radius/],
    [
      'says when a broker does not tell what its user may do',
      'silent',
      { writing: 'skipped' },
      'writing',
      /without doing it/,
    ],
    ['finds an old broker', 'old', { 'SEMP version': 'warning', mqtt: 'ok' }, 'SEMP version', /2\.30/],
    [
      'finds a broker that is away',
      'gone',
      { reach: 'problem', TLS: 'skipped', mqtt: 'problem' },
      'reach',
      /nothing can be reached/,
    ],
  ])('%s: %s', (_what, name, expected, part, says) => {
    const prefix = `broker ${name}: `
    expect(outcomes(findings, prefix)).toMatchObject(expected)
    expect(lookUp(findings, `${prefix}${part}`).found).toMatch(says)
  })

  it('wrote to no broker, and shows no password', () => {
    expect(mesh.writes()).toBe(0)
    expect(JSON.stringify(findings)).not.toContain(WRONG_PASSWORD)
  })

  it('finds a key that is missing, and tells it of every broker', async () => {
    const others = await examine({ ...mesh.env, KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal() })
    expect(lookUp(others, 'sealed secrets')).toMatchObject({
      outcome: 'problem',
      found: expect.stringMatching(/keys that the ring lacks: k-/),
    })
    expect(lookUp(others, 'broker good: password').outcome).toBe('problem')
    expect(lookUp(others, 'broker good: writing').outcome).toBe('skipped')
  })
})

describe('the doctor', () => {
  it('does what can be done without a database, and with a setting that is wrong', async () => {
    const findings = await examine({
      DATABASE_URL: 'postgres://keymesh:secret-of-the-database@127.0.0.1:1/keymesh',
      KEYMESH_CONCURRENCY: 'many',
    })
    expect(outcomes(findings, '')).toMatchObject({
      settings: 'problem',
      node: 'ok',
      database: 'problem',
      'key ring': 'skipped',
      migrations: 'skipped',
      clock: 'skipped',
      'sealed secrets': 'skipped',
      brokers: 'skipped',
      queue: 'ok',
    })
    const settings = findings.filter(({ check }) => check === 'settings').map(({ found }) => found)
    expect(settings).toEqual([
      expect.stringContaining('KEYMESH_CONCURRENCY must be a whole number'),
      expect.stringContaining('KEYMESH_KEYS must be given with DATABASE_URL'),
    ])
    expect(JSON.stringify(findings)).not.toContain('secret-of-the-database')
  })

  it('does not make a database where there is none', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'keymesh-doctor-'))
    try {
      await writeKeyRingFile(keyRingPath(directory), newKeyRing())
      const first = await examine({ KEYMESH_DATA_DIR: directory })
      expect(outcomes(first, '')).toMatchObject({
        database: 'skipped',
        'key ring': 'ok',
        'data directory': 'ok',
        disk: 'ok',
      })
      await chmod(keyRingPath(directory), 0o644)
      await chmod(directory, 0o777)
      const second = await examine({ KEYMESH_DATA_DIR: directory })
      expect(outcomes(second, '')).toMatchObject({ 'key ring': 'problem', 'data directory': 'problem' })
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  it('finds a queue that is away, and goes on', async () => {
    const findings = await examine({ KEYMESH_DATA_DIR: '/nowhere', REDIS_URL: 'redis://user:queue-secret@127.0.0.1:1' })
    expect(lookUp(findings, 'queue')).toMatchObject({
      outcome: 'problem',
      found: expect.stringMatching(/at 127\.0\.0\.1:1 .*ECONNREFUSED/),
    })
    expect(lookUp(findings, 'solclientjs').check).toBe('solclientjs')
    expect(JSON.stringify(findings)).not.toContain('queue-secret')
  })

  it.each([
    ['v20.18.3', 'problem'],
    ['v20.19.0', 'ok'],
    ['v24.0.0', 'ok'],
  ])('calls Node.js %s %s', (version, outcome) => {
    expect(checkNode(version).outcome).toBe(outcome)
  })

  it.each([
    [null, ['east'], 'warning'],
    [null, null, 'warning'],
    [null, [], 'ok'],
    ['10.18.3', ['east'], 'ok'],
  ])('calls solclientjs %s with SMF on %s %s', (version, exposedOn, outcome) => {
    expect(checkSmfClient(version, exposedOn).outcome).toBe(outcome)
  })
})

const redis = redisAvailable()
describe.skipIf(!redis.available)('the doctor, of a queue on Redis', () => {
  it('finds a server that throws jobs away', async () => {
    const server = await startTestRedis()
    const client = new Redis(server.url)
    const env = { KEYMESH_DATA_DIR: '/nowhere', REDIS_URL: server.url }
    try {
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
      expect(lookUp(await examine(env), 'queue eviction')).toMatchObject({
        outcome: 'problem',
        found: expect.stringMatching(/allkeys-lru/),
      })
      await client.config('SET', 'maxmemory-policy', 'noeviction')
      expect(outcomes(await examine(env), 'queue')).toEqual({ '': 'ok', ' eviction': 'ok' })
    } finally {
      client.disconnect()
      await server.stop()
    }
  })
})
