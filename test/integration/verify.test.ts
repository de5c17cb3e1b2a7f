import { afterEach, describe, expect, it } from 'vitest'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { createOutput } from '../../src/cli/output.ts'
import { createProgram } from '../../src/cli/program.ts'
import type { Protocol } from '../../src/domain/catalogue.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { notVerified, type Verdict } from '../../src/domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget } from '../../src/reconcile/login-port.ts'
import type { VerifyBrokerRequest, VerifyFinding } from '../../src/reconcile/verify-broker.ts'
import { VerifySummary } from '../../src/reconcile/verify-summary.ts'
import type { SandboxBroker, SandboxBrokerOptions } from '../../src/sandbox/sandbox-broker.ts'
import { createJobServices } from '../../src/services.ts'
import { laggingPairs } from '../../src/store/pairs.ts'
import { setBrokerPaused } from '../../src/store/pause.ts'
import { type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { suppliedCredential } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from './reconcile-fixtures.ts'

const APP = 'app-a'
const OTHER = 'app-b'

/** Logs in to the accounts of simulated brokers without a socket, and sees how many do so at once. */
class AccountLogins implements LoginPort {
  readonly attempts: (LoginAttempt & { readonly protocol: Protocol })[] = []
  /** Instead of what the broker's accounts say. */
  answer: (target: LoginTarget, attempt: LoginAttempt) => Verdict | null = () => null
  mostAtOnce = 0
  brokers: readonly SandboxBroker[] = []

  async probe(target: LoginTarget, attempt: LoginAttempt): Promise<Verdict> {
    this.attempts.push({ ...attempt, protocol: target.protocol })
    const told = this.answer(target, attempt)
    if (told !== null) return told
    const broker = this.brokers.find(({ endpoints }) => endpoints.some(({ port }) => port === target.port))
    if (broker === undefined) throw new Error(`no broker listens on ${target.port}`)
    const { accounts } = broker.state
    const outcome = accounts.checkLogin(attempt.username, attempt.password.reveal())
    if (outcome !== 'accepted') return { outcome: 'rejected', detail: outcome }
    const connected = accounts.connect(attempt.username)
    this.mostAtOnce = Math.max(this.mostAtOnce, accounts.connectionsOf(attempt.username))
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    accounts.disconnect(connected)
    return { outcome: 'accepted' }
  }

  /** Whether a login with the client's own password was tried. */
  tried(id: string): readonly Protocol[] {
    return this.attempts
      .filter(({ username, password }) => username === keyOf(id) && password.reveal() === givenSecretOf(id))
      .map(({ protocol }) => protocol)
  }
}

const PORTS = { smf: 0, mqtt: 0, amqp: 0 } as const
const PROTOCOLS_OF_BROKER = ['smf', 'amqp', 'mqtt']

interface Setup extends AsyncDisposable {
  readonly mesh: TestMesh
  readonly login: AccountLogins
}

/** Everything in sync; the logins of the runs are forgotten. */
async function setUp(
  registrations: readonly PortalRegistration[] = [client(APP), client(OTHER)],
  { sandbox, ...options }: MeshOptions & { readonly sandbox?: SandboxBrokerOptions } = {},
  prepare: (broker: SandboxBroker) => void = () => undefined,
): Promise<Setup> {
  const login = new AccountLogins()
  const mesh = await withMesh({ sandbox: { logins: PORTS, ...sandbox }, login, ...options })
  login.brokers = mesh.sandbox.brokers
  for (const broker of mesh.sandbox.brokers) prepare(broker)
  await mesh.import(ordersPortal(mesh.brokers, registrations))
  await mesh.sweepAll()
  login.attempts.length = 0
  login.mostAtOnce = 0
  return { mesh, login, [Symbol.asyncDispose]: () => mesh[Symbol.asyncDispose]() }
}

async function verify(mesh: TestMesh, options: Omit<VerifyBrokerRequest, 'broker'> = {}, index = 0) {
  const findings: VerifyFinding[] = []
  for await (const finding of mesh.context.engine.verify(mesh.key(index), options)) findings.push(finding)
  const summary = new VerifySummary()
  for (const finding of findings) summary.add(finding)
  const logins = findings.flatMap((finding) => (finding.type === 'login' ? [finding.login] : []))
  const verdicts = logins.map(({ consumerKey, protocol, verdict }) => `${consumerKey} ${protocol} ${verdict.outcome}`)
  return { findings, summary, logins, verdicts: verdicts.sort() }
}

const WRONG = 'changed-by-hand'
const controlsOf = ({ summary }: Awaited<ReturnType<typeof verify>>) =>
  Object.fromEntries(summary.protocols.map(({ protocol, control }) => [protocol, control?.outcome ?? null]))

describe('verify', () => {
  it('logs in with every confirmed credential over every protocol, and tries a wrong password over each, now', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    const writes = mesh.writes()
    const first = await verify(mesh)
    const expected = [APP, OTHER].flatMap((id) => PROTOCOLS_OF_BROKER.map((each) => `${keyOf(id)} ${each} accepted`))
    expect(first.verdicts).toEqual(expected.sort())
    expect(controlsOf(first)).toEqual({ smf: 'refused', amqp: 'refused', mqtt: 'refused' })
    expect(first.summary.isGood({ strict: true })).toBe(true)
    expect(login.attempts).toHaveLength(9)
    await verify(mesh)
    expect(login.attempts).toHaveLength(18)
    expect(mesh.writes()).toBe(writes)
  })

  it('of one registration, over one protocol', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    const { registrationId } = mesh.pair(OTHER)
    expect((await verify(mesh, { registrationId, protocol: 'mqtt' })).verdicts).toEqual([
      `${keyOf(OTHER)} mqtt accepted`,
    ])
    expect(login.tried(APP)).toEqual([])
    const elsewhere = await verify(mesh, { protocol: 'https' })
    expect(elsewhere.findings).toEqual([{ type: 'protocols', protocols: [] }])
  })

  it('keeps what it found, and makes a rejected password due: the next run writes it again', async () => {
    await using setup = await setUp()
    const { mesh } = setup
    mesh.broker().state.setPassword(keyOf(APP), WRONG)
    const { summary, verdicts } = await verify(mesh)
    expect(verdicts.filter((each) => each.endsWith('rejected'))).toHaveLength(3)
    expect(summary.isGood({ strict: false })).toBe(false)
    expect(summary.rejected.map(({ login: { consumerKey } }) => consumerKey)).toEqual(Array(3).fill(keyOf(APP)))
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([mesh.pair(APP)])
    await mesh.context.engine.reconcilePair(mesh.pair(APP), { trigger: 'poll' })
    expect(mesh.broker().state.passwordOf(keyOf(APP))).toBe(givenSecretOf(APP))
    expect(await mesh.drift()).toMatchObject([{ kind: 'password', objectName: keyOf(APP), action: 'repaired' }])
    expect((await verify(mesh)).summary.isGood({ strict: true })).toBe(true)
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([])
  })

  it('does not ask again for a password that was written again already', async () => {
    await using setup = await setUp([client(APP)])
    const { mesh, login } = setup
    login.answer = () => ({ outcome: 'rejected', detail: 'whatever the password' })
    await verify(mesh)
    await mesh.context.engine.reconcilePair(mesh.pair(APP), { trigger: 'poll' })
    expect(await mesh.pairs()).toMatchObject([{ state: 'error' }])
    await verify(mesh)
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([])
  })

  it('leaves alone what no broker has confirmed yet, and what is withdrawn', async () => {
    await using setup = await setUp()
    const { mesh } = setup
    const newer = suppliedCredential('second', 'key-of-second', 'given-secret-of-second')
    const first = client(APP).credentials
    await mesh.import(ordersPortal(mesh.brokers, [client(APP, { credentials: [...first, newer] })]), { prune: true })
    expect((await verify(mesh)).verdicts).toEqual(
      PROTOCOLS_OF_BROKER.map((each) => `${keyOf(APP)} ${each} accepted`).sort(),
    )
  })

  it('says that a broker takes any password', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    login.answer = ({ protocol }) => (protocol === 'amqp' ? { outcome: 'accepted' } : null)
    const found = await verify(mesh)
    expect(controlsOf(found)).toEqual({ smf: 'refused', amqp: 'accepts-anything', mqtt: 'refused' })
    expect(found.summary.isGood({ strict: false })).toBe(false)
  })

  it('tries the wrong password of a credential that is accepted, if there is one', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    mesh.broker().state.setPassword(keyOf(APP), WRONG)
    await verify(mesh, { protocol: 'mqtt' })
    const wrong = login.attempts.filter(
      ({ username, password }) => password.reveal() !== `given-secret-of-${username.slice('key-of-'.length)}-Zk41`,
    )
    expect(wrong.map(({ username }) => username)).toEqual([keyOf(OTHER)])
  })

  it('only reads a paused broker, and does', async () => {
    await using setup = await setUp([client(APP)])
    const { mesh } = setup
    await setBrokerPaused(mesh.context.db, mesh.key(), true)
    expect((await verify(mesh)).verdicts).toHaveLength(3)
  })

  it('does not log in where the message VPN asks somebody else for passwords, and says so', async () => {
    await using setup = await setUp([client(APP)])
    const { mesh, login } = setup
    mesh.broker().state.changeMsgVpn({ authenticationBasicType: 'ldap' })
    const another = await mesh.another('second')
    const summary = new VerifySummary()
    for await (const finding of another.engine.verify(mesh.key())) summary.add(finding)
    expect(login.attempts).toEqual([])
    expect(summary.unverified[0]).toMatchObject({ count: 1, why: expect.stringContaining('ldap, not internal') })
    expect(summary.protocols[0]?.control).toMatchObject({
      outcome: 'not-verified',
      detail: expect.stringContaining('ldap'),
    })
    expect([summary.isGood({ strict: false }), summary.isGood({ strict: true })]).toEqual([true, false])
  })

  it('goes through many credentials in pages, each once', async () => {
    const credentials = Array.from({ length: 230 }, (_, index) =>
      suppliedCredential(`c-${index}`, `many-${index}`, 'x'.repeat(12)),
    )
    await using setup = await setUp([client(APP, { credentials })], { sandbox: { logins: { mqtt: 0 } } })
    const { logins } = await verify(setup.mesh)
    expect(new Set(logins.map(({ consumerKey }) => consumerKey)).size).toBe(230)
    expect(logins).toHaveLength(230)
    // One more with a wrong password, however many pages there are.
    expect(setup.login.attempts).toHaveLength(231)
  })

  it('ends when it is told to, and records no verdict of what was not tried', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    const stop = new AbortController()
    login.answer = () => {
      stop.abort(new Error('enough'))
      return null
    }
    await expect(verify(mesh, { signal: stop.signal })).rejects.toThrow('enough')
    const recorded = await mesh.context.db.selectFrom('login_verdicts').select('outcome').execute()
    expect(new Set(recorded.map(({ outcome }) => outcome))).toEqual(new Set(['accepted']))
  })
})

describe('the last connection of a client', () => {
  const profiled = (limit: number) => (broker: SandboxBroker) => {
    for (const name of [
      'keymesh-direct',
      'keymesh-receive',
      'keymesh-send-receive',
      'keymesh-receive-create',
      'keymesh-send-receive-create',
    ]) {
      broker.state.clientProfiles.put(name, {
        allowGuaranteedMsgSendEnabled: true,
        allowGuaranteedMsgReceiveEnabled: true,
        allowGuaranteedEndpointCreateEnabled: true,
        allowTransactedSessionsEnabled: true,
        maxConnectionCountPerClientUsername: limit,
      })
    }
  }
  const reasonsOf = ({ logins }: Awaited<ReturnType<typeof verify>>) =>
    new Set(logins.map(({ verdict }) => (verdict.outcome === 'not-verified' ? verdict.reason : verdict.outcome)))

  it('of one is never taken: nobody logs in, and LIVE does not wait for it', async () => {
    await using setup = await setUp([client(APP)], {}, profiled(1))
    const { mesh, login } = setup
    expect(await mesh.pairs()).toMatchObject([{ state: 'in-sync' }])
    const found = await verify(mesh)
    expect(reasonsOf(found)).toEqual(new Set(['connection-limit']))
    expect(found.summary.unverified[0]?.why).toBe(
      'not verified: connection-limit, 0 of 1 allowed connections are open, and the last one is left to the client',
    )
    expect(found.summary.protocols[0]?.control?.outcome).toBe('not-verified')
    expect(login.attempts).toEqual([])
  })

  it('of two is taken while the client has none, by one probe at a time', async () => {
    await using setup = await setUp([client(APP)], {}, profiled(2))
    const { mesh, login } = setup
    const found = await verify(mesh)
    expect(reasonsOf(found)).toEqual(new Set(['accepted']))
    expect(found.summary.isGood({ strict: true })).toBe(true)
    expect(login.mostAtOnce).toBe(1)
  })

  it('of two is left to the client that has the other one', async () => {
    await using setup = await setUp([client(APP), client(OTHER)], {}, profiled(2))
    const { mesh, login } = setup
    const connected = mesh.broker().state.connect(keyOf(APP))
    expect((await verify(mesh, { protocol: 'mqtt' })).verdicts).toEqual([
      `${keyOf(APP)} mqtt not-verified`,
      `${keyOf(OTHER)} mqtt accepted`,
    ])
    expect(login.tried(APP)).toEqual([])
    mesh.broker().state.accounts.disconnect(connected)
    expect((await verify(mesh, { protocol: 'mqtt' })).verdicts).toContain(`${keyOf(APP)} mqtt accepted`)
  })

  it('of many is no reason to wait for each other', async () => {
    await using setup = await setUp([client(APP)])
    await verify(setup.mesh)
    expect(setup.login.mostAtOnce).toBeGreaterThan(1)
  })

  it('that cannot be counted for a moment is not taken either: the work ends', async () => {
    await using setup = await setUp([client(APP)], {}, profiled(2))
    const { mesh, login } = setup
    mesh.broker().setFaults([{ fault: 'junk-json', match: { path: '/SEMP/v2/monitor/' } }])
    await expect(verify(mesh)).rejects.toMatchObject({ name: 'KeymeshError' })
    expect(login.attempts).toEqual([])
  })
})

interface Result {
  readonly status: number
  readonly out: string
}

async function keymesh(mesh: TestMesh, ...words: readonly string[]): Promise<Result> {
  let out = ''
  let status = 0
  const streams = { out: { write: (text: string) => (out += text) }, err: { write: () => undefined } }
  const dependencies: CommandDependencies = {
    withContext: (work) => work(mesh.context),
    output: (command) => createOutput(streams, { json: command.opts<{ json?: boolean }>().json === true }),
    exitWith: (next) => {
      status = Math.max(status, next)
    },
    signal: new AbortController().signal,
  }
  await createProgram(dependencies, streams).parseAsync(['node', 'keymesh', ...words])
  return { status, out }
}

describe('keymesh verify', () => {
  let setup: Setup
  afterEach(() => setup[Symbol.asyncDispose]())

  it('prints what each broker and protocol came to, and lists nothing that is as it should be', async () => {
    setup = await setUp()
    const { status, out } = await keymesh(setup.mesh, 'verify')
    expect(status).toBe(0)
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/ {2,}/)),
    ).toEqual([
      ['broker', 'protocol', 'accepted', 'rejected', 'not verified', 'the broker'],
      ['broker-1', 'smf', '2', '0', '0', 'refuses a wrong password'],
      ['broker-1', 'amqp', '2', '0', '0', 'refuses a wrong password'],
      ['broker-1', 'mqtt', '2', '0', '0', 'refuses a wrong password'],
    ])
    const all = await keymesh(setup.mesh, 'verify', '--all', '--registration', APP, '--protocol', 'mqtt')
    expect(all.out).toContain(`broker-1: ${keyOf(APP)} of registration ${APP} over mqtt: accepted`)
    expect(all.out).not.toContain(keyOf(OTHER))
  })

  it('fails for a rejected login, and says which', async () => {
    setup = await setUp()
    setup.mesh.broker().state.setPassword(keyOf(APP), WRONG)
    const { status, out } = await keymesh(setup.mesh, 'verify', '--protocol', 'mqtt')
    expect(status).toBe(1)
    expect(out).toMatch(/broker-1 +mqtt +1 +1 +0 +refuses a wrong password/)
    expect(out).toContain(`broker-1: ${keyOf(APP)} of registration ${APP} over mqtt: rejected: wrong-password`)
    expect(out).not.toContain(WRONG)
  })

  it('fails for a broker that accepts anything, and warns', async () => {
    setup = await setUp()
    setup.login.answer = () => ({ outcome: 'accepted' })
    const { status, out } = await keymesh(setup.mesh, 'verify')
    expect(status).toBe(1)
    expect(out).toMatch(/broker-1 +mqtt +2 +0 +0 +ACCEPTS ANYTHING/)
    expect(out).toContain('any password is accepted over smf, amqp, mqtt; no login there proves anything')
  })

  it('reports what it could not verify by reason, and fails for that only when strict', async () => {
    setup = await setUp()
    setup.login.answer = () => notVerified('dns', 'no such host')
    const found = await keymesh(setup.mesh, 'verify', '--protocol', 'mqtt')
    expect(found.status).toBe(0)
    expect(found.out).toContain('broker-1: 2 x over mqtt: not verified: dns, no such host')
    expect(found.out).toMatch(/broker-1 +mqtt +0 +0 +2 +not verified: no such host/)
    expect((await keymesh(setup.mesh, 'verify', '--protocol', 'mqtt', '--strict')).status).toBe(1)
  })

  it('goes on when a broker cannot be reached: it is a row, and a failure', async () => {
    setup = await setUp([client(APP)], { brokers: 2 })
    await setup.mesh.broker(0).stop()
    const { status, out } = await keymesh(setup.mesh, 'verify')
    expect(status).toBe(1)
    expect(out).toMatch(/broker-1 +- +- +- +- +cannot be reached/)
    expect(out).toMatch(/broker-2 +mqtt +1 +0 +0 +refuses a wrong password/)
  })

  it('says of a broker without the protocol that there is nothing to log in to', async () => {
    setup = await setUp([client(APP)])
    const { status, out } = await keymesh(setup.mesh, 'verify', '--protocol', 'https', '--strict')
    expect(status).toBe(0)
    expect(out).toMatch(/broker-1 +none +- +- +- +not exposed, or logins are off/)
  })

  it('prints a document for each login, control and broker, without a secret', async () => {
    setup = await setUp([client(APP)])
    setup.mesh.broker().state.setPassword(keyOf(APP), WRONG)
    const { out } = await keymesh(setup.mesh, 'verify', '--protocol', 'mqtt', '--json')
    const documents = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(documents).toEqual([
      {
        type: 'login',
        brokerId: 'broker-1',
        registrationId: APP,
        consumerKey: keyOf(APP),
        protocol: 'mqtt',
        outcome: 'rejected',
        detail: 'wrong-password',
        checkedAtMs: expect.any(Number),
      },
      {
        type: 'control',
        brokerId: 'broker-1',
        protocol: 'mqtt',
        outcome: 'refused',
        detail: 'wrong-password',
        checkedAtMs: expect.any(Number),
      },
      {
        type: 'broker',
        brokerId: 'broker-1',
        protocols: [{ protocol: 'mqtt', accepted: 0, rejected: 1, notVerified: 0, control: 'refused' }],
      },
    ])
    expect(out).not.toContain(givenSecretOf(APP))
  })

  it.each([
    [['--broker', 'nowhere'], 'there is no broker nowhere'],
    [['--registration', 'nobody'], 'registration nobody is unknown'],
  ])('refuses %j', async (words, message) => {
    setup = await setUp([client(APP)])
    await expect(keymesh(setup.mesh, 'verify', ...words)).rejects.toThrow(message)
  })
})

describe('keymesh status and explain', () => {
  let setup: Setup
  afterEach(() => setup[Symbol.asyncDispose]())

  it('show what the last logins came to, and warn of a broker that accepts anything', async () => {
    setup = await setUp()
    setup.login.answer = ({ protocol }, { username }) => {
      if (protocol === 'amqp') return { outcome: 'accepted' }
      if (protocol === 'smf') return notVerified('client-not-installed', 'install it')
      return username === keyOf(OTHER) ? { outcome: 'rejected', detail: 'bad credentials' } : null
    }
    await keymesh(setup.mesh, 'verify')
    const status = await keymesh(setup.mesh, 'status')
    expect(status.out).toContain('3 accepted, 1 rejected, 2 not verified')
    expect(status.out).toContain('broker-1: warning: any password is accepted over amqp')
    const { out } = await keymesh(setup.mesh, 'explain', 'registration', OTHER)
    const lines = out
      .replaceAll(/\d+ s ago/g, 'now')
      .split('\n')
      .map((line) => line.trim())
    expect(lines.filter((line) => line.startsWith('login of'))).toEqual([
      `login of ${keyOf(OTHER)} over amqp, now: accepted (a wrong password is accepted, too)`,
      `login of ${keyOf(OTHER)} over mqtt, now: rejected: bad credentials (a wrong password is refused)`,
      `login of ${keyOf(OTHER)} over smf, now: not verified: client-not-installed, install it (a wrong password was tried and proved nothing)`,
    ])
    expect(out).not.toContain(keyOf(APP))
  })

  it('show a broker without logins as such', async () => {
    setup = await setUp([])
    const { out } = await keymesh(setup.mesh, 'status')
    expect(out).toMatch(/error +logins\n/)
    expect(out).toMatch(/ 0 +-\n/)
  })
})

describe('the job that verifies a broker', () => {
  it('logs in and keeps the verdicts; progress is told', async () => {
    await using setup = await setUp()
    const { mesh, login } = setup
    const progress: number[] = []
    const { signal } = new AbortController()
    const services = createJobServices(mesh.context)
    const { registrationId } = mesh.pair(OTHER)
    mesh.broker().state.setPassword(keyOf(OTHER), WRONG)
    await services.verifyBroker(mesh.key(), { registrationId, protocol: 'mqtt' }, signal, (done) => progress.push(done))
    expect(login.tried(APP)).toEqual([])
    expect(progress.at(-1)).toBe(1)
    expect(await laggingPairs(mesh.context.db, 10)).toEqual([mesh.pair(OTHER)])
  })
})
