import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { PROTOCOLS, type Protocol } from '../../src/domain/catalogue.ts'
import type { PortalBroker } from '../../src/domain/portal-file.ts'
import { notVerified, type Verdict } from '../../src/domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget } from '../../src/reconcile/login-port.ts'
import { ALL_LOGIN_PORTS } from '../../src/sandbox/login/login-listeners.ts'
import { type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { DAY_MS } from '../helpers/sample.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from './reconcile-fixtures.ts'

const APP = 'app-a'

const mqttMesh = (options: MeshOptions = {}) =>
  withMesh({
    sandbox: { logins: { mqtt: 0 } },
    portal: (brokers) => ordersPortal(brokers, [client(APP)]),
    ...options,
  })

const reconcile = (mesh: TestMesh, id = APP) =>
  mesh.context.engine.reconcilePair(mesh.pair(id), { trigger: 'on-demand' })

interface VerdictRow {
  readonly protocol: Protocol
  readonly outcome: string
  readonly reason: string | null
}

async function verdicts(mesh: TestMesh): Promise<readonly VerdictRow[]> {
  const { rows } = await sql<VerdictRow>`
    select protocol, outcome, reason from login_verdicts order by consumer_key, protocol`.execute(mesh.context.db)
  return rows
}

async function controls(mesh: TestMesh) {
  const { rows } = await sql<{ protocol: Protocol; outcome: string }>`
    select protocol, outcome from login_controls order by protocol`.execute(mesh.context.db)
  return rows
}

async function requestState(mesh: TestMesh) {
  const { rows } = await sql<{ state: string; reason: string | null }>`
    select state, reason from access_requests order by id limit 1`.execute(mesh.context.db)
  return rows[0]
}

/** Says what it is told to, and counts. */
function scripted(answer: (target: LoginTarget, attempt: LoginAttempt) => Verdict) {
  const attempts: { readonly protocol: Protocol; readonly username: string; readonly right: boolean }[] = []
  const login: LoginPort = {
    async probe(target, attempt) {
      const right = attempt.password.reveal() === givenSecretOf(attempt.username.replace('key-of-', ''))
      attempts.push({ protocol: target.protocol, username: attempt.username, right })
      return answer(target, attempt)
    },
  }
  return { login, attempts }
}

const ACCEPTED: Verdict = { outcome: 'accepted' }
const REJECTED: Verdict = { outcome: 'rejected', detail: 'wrong password' }
const isRight = ({ username, password }: LoginAttempt): boolean =>
  password.reveal() === givenSecretOf(username.replace('key-of-', ''))
const honest = (_: unknown, attempt: LoginAttempt): Verdict => (isRight(attempt) ? ACCEPTED : REJECTED)

describe('with real clients on a broker that exposes everything', () => {
  it('a credential is proved over all eleven protocols, each of which refuses a wrong password', async () => {
    await using mesh = await mqttMesh({ sandbox: { logins: ALL_LOGIN_PORTS } })
    await reconcile(mesh)
    // The publish of a REST probe goes to a topic that the derived ACL does not allow: the login is good.
    const denied = new Set<Protocol>(['http', 'https'])
    const expected = PROTOCOLS.map((protocol) => ({
      protocol,
      outcome: denied.has(protocol) ? 'denied' : 'accepted',
      reason: null,
    }))
    expect(new Set(await verdicts(mesh))).toEqual(new Set(expected))
    expect(await controls(mesh)).toHaveLength(PROTOCOLS.length)
    expect(new Set((await controls(mesh)).map(({ outcome }) => outcome))).toEqual(new Set(['refused']))
    expect(await requestState(mesh)).toEqual({ state: 'LIVE', reason: null })
    expect(mesh.broker().state.accounts.clients()).toEqual([])
  })

  it('a password that somebody changed is found by a login, healed, and on record with both verdicts', async () => {
    let nowMs = Date.now()
    await using mesh = await mqttMesh({ now: () => nowMs })
    await reconcile(mesh)
    mesh.broker().state.setPassword(keyOf(APP), 'changed-by-hand')
    expect(await mesh.sweep()).toMatchObject({ changed: 0 })
    nowMs += DAY_MS
    expect(await mesh.sweep()).toMatchObject({ loginsProbed: 1, loginsRefused: 1, changed: 1 })
    expect(mesh.broker().state.passwordOf(keyOf(APP))).toBe(givenSecretOf(APP))
    expect(await mesh.drift()).toMatchObject([
      {
        kind: 'password',
        objectName: keyOf(APP),
        action: 'repaired',
        before: { 'login over mqtt': expect.stringContaining('rejected') },
        after: { 'login over mqtt': 'accepted' },
      },
    ])
    expect(await requestState(mesh)).toMatchObject({ state: 'LIVE' })
    nowMs += DAY_MS
    expect(await mesh.sweep()).toMatchObject({ loginsProbed: 1, loginsRefused: 0, changed: 0 })
  })

  it('a withdrawn credential no longer logs in, and nobody tries', async () => {
    await using mesh = await mqttMesh()
    await reconcile(mesh)
    await mesh.import(ordersPortal(mesh.brokers, [client(APP, { credentials: [] })]), { prune: true })
    await reconcile(mesh)
    expect(mesh.broker().state.checkLogin(keyOf(APP), givenSecretOf(APP))).toBe('shutdown')
  })
})

describe('what cannot be verified', () => {
  it('writes nothing and does not hold back LIVE, and its reason is on record', async () => {
    await using mesh = await mqttMesh()
    const dead = (broker: PortalBroker): PortalBroker => ({
      ...broker,
      messaging: { host: 'localhost', protocols: [{ protocol: 'mqtt', port: 1 }] },
    })
    await mesh.import({ brokers: mesh.brokers.map(dead) })
    await reconcile(mesh)
    expect(await verdicts(mesh)).toEqual([{ protocol: 'mqtt', outcome: 'not-verified', reason: 'refused' }])
    expect(await requestState(mesh)).toMatchObject({ state: 'LIVE' })
    expect(await mesh.plans()).toEqual([])
  })

  it.each<[string, Readonly<Record<string, string | boolean>>]>([
    ['none', { authenticationBasicType: 'none' }],
    ['RADIUS', { authenticationBasicType: 'radius' }],
    ['LDAP', { authenticationBasicType: 'ldap' }],
    ['off', { authenticationBasicEnabled: false }],
  ])('is a login on a message VPN whose basic authentication is %s: nobody logs in', async (_, msgVpn) => {
    const { login, attempts } = scripted(() => ACCEPTED)
    await using mesh = await mqttMesh({ sandbox: { logins: { mqtt: 0 }, msgVpn }, login })
    await reconcile(mesh)
    expect(await verdicts(mesh)).toEqual([{ protocol: 'mqtt', outcome: 'not-verified', reason: 'authentication-type' }])
    expect(attempts).toEqual([])
    expect(await requestState(mesh)).toMatchObject({ state: 'LIVE' })
  })

  it('is not tried where logins are switched off', async () => {
    const { login, attempts } = scripted(honest)
    await using mesh = await mqttMesh({ sandbox: { logins: { mqtt: 0, amqp: 0 } }, login })
    const quiet = (broker: PortalBroker): PortalBroker => ({
      ...broker,
      messaging: broker.messaging && {
        ...broker.messaging,
        logins: { off: ['amqp'], maxPerSecond: 100, maxConcurrent: 4 },
      },
    })
    await mesh.import({ brokers: mesh.brokers.map(quiet) })
    await reconcile(mesh)
    expect(new Set(attempts.map(({ protocol }) => protocol))).toEqual(new Set(['mqtt']))
  })

  it('is asked of an endpoint that does not answer once, not once for each credential', async () => {
    const { login, attempts } = scripted(() => notVerified('timeout', 'no answer'))
    const apps = Array.from({ length: 20 }, (_unused, index) => `app-${index}`)
    await using mesh = await mqttMesh({
      login,
      portal: (brokers) =>
        ordersPortal(
          brokers,
          apps.map((id) => client(id)),
        ),
    })
    for (const id of apps) await reconcile(mesh, id)
    expect(attempts).toHaveLength(1)
    expect(await verdicts(mesh)).toHaveLength(20)
  })
})

describe('the negative control', () => {
  it('tries a wrong password once in a period, after a right one was accepted', async () => {
    let nowMs = Date.now()
    const { login, attempts } = scripted(honest)
    await using mesh = await mqttMesh({ login, now: () => nowMs })
    await reconcile(mesh)
    expect(attempts.map(({ right }) => right)).toEqual([true, false])
    // The credential's turns begin at some time of the day, so one of these sweeps finds nothing to do.
    for (let halfDays = 1; halfDays <= 3; halfDays += 1) {
      nowMs += DAY_MS / 2
      await mesh.sweep()
    }
    expect(attempts.filter(({ right }) => !right)).toHaveLength(2)
  })

  it('says of a message VPN that takes any password that it does', async () => {
    const { login } = scripted(() => ACCEPTED)
    await using mesh = await mqttMesh({ login })
    await reconcile(mesh)
    expect(await controls(mesh)).toEqual([{ protocol: 'mqtt', outcome: 'accepts-anything' }])
  })
})

describe('a login that stays refused', () => {
  it('makes an access request ERROR with a reason, after one more write; LIVE when it is taken again', async () => {
    let refuse = true
    const { login, attempts } = scripted((target, attempt) => (refuse ? REJECTED : honest(target, attempt)))
    await using mesh = await mqttMesh({ login })
    await reconcile(mesh)
    expect(attempts).toHaveLength(2)
    expect(await requestState(mesh)).toMatchObject({
      state: 'ERROR',
      reason: expect.stringContaining('though the password was written again'),
    })
    expect(await mesh.pairs()).toMatchObject([{ state: 'error' }])
    const writes = mesh.writes()
    await mesh.sweep()
    await reconcile(mesh)
    expect(mesh.writes()).toBe(writes)
    refuse = false
    await mesh.sweep()
    expect(await requestState(mesh)).toEqual({ state: 'LIVE', reason: null })
    expect(await mesh.pairs()).toMatchObject([{ state: 'in-sync' }])
  })
})
