import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createSmfLogin } from '../../src/login/smf.ts'
import { createSmfClient } from '../../src/login/smf-client.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { createCertificateAuthority } from '../../src/sandbox/certificates.ts'
import { encodeClientControl } from '../../src/sandbox/login/smf-control.ts'
import { startSmfListener } from '../../src/sandbox/login/smf-listener.ts'
import { encodeSmf } from '../../src/sandbox/login/smf-message.ts'
import {
  type HostileServerKind,
  refusedPort,
  startDeafServer,
  startHostileServer,
  startSlowRelay,
} from '../helpers/hostile-server.ts'
import {
  ALICE,
  attempt,
  GOOD,
  type LoginVpn,
  makeTlsMaterials,
  PASSWORD,
  startPlace,
  TIMEOUT_MS,
  type TlsMaterials,
  targetOf,
  until,
} from './login-fixtures.ts'
import { expectNoLeaks } from './login-leaks.ts'
import { startScriptedSmfServer } from './scripted-smf-server.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from './tls-fixtures.ts'

const login = createSmfLogin()
const WRONG = attempt(ALICE, 'not the password')

async function probe(
  target: LoginTarget,
  credential: LoginAttempt = GOOD,
  timeoutMs = TIMEOUT_MS,
  port = login,
): Promise<Verdict> {
  const verdict = await port.probe(target, credential, { timeoutMs })
  expect(JSON.stringify(verdict)).not.toContain(credential.password.reveal() || 'x'.repeat(99))
  if ('detail' in verdict) expect(verdict.detail).toMatch(/^[A-Z].{5,140}\.$/)
  return verdict
}

/** `outcome`, or `not-verified reason`. */
const short = (verdict: Verdict): string =>
  verdict.outcome === 'not-verified' ? `not-verified ${verdict.reason}` : verdict.outcome

let tls: TlsMaterials
beforeAll(async () => {
  tls = await makeTlsMaterials()
})
afterAll(() => login.close())

let printers: MockInstance[] = []
beforeEach(() => {
  printers = [
    ...(['log', 'info', 'warn', 'error', 'debug', 'trace'] as const).map((name) => vi.spyOn(console, name)),
    vi.spyOn(process, 'emitWarning'),
  ]
})
afterEach(() => {
  for (const printer of printers) expect(printer).not.toHaveBeenCalled()
  vi.restoreAllMocks()
})

describe.each(['smf', 'smfs', 'smfc'] as const)('a login over %s', (protocol) => {
  const place = () =>
    protocol === 'smfs'
      ? startPlace(startSmfListener, { protocol, tls: tls.good, ca: tls.ca.certificate })
      : startPlace(startSmfListener, { protocol })

  const CASES: readonly (readonly [string, (vpn: LoginVpn) => void, LoginAttempt, string])[] = [
    ['takes the right password', () => {}, GOOD, 'accepted'],
    ['refuses a wrong password', () => {}, WRONG, 'rejected'],
    ['refuses an unknown username', () => {}, attempt('nobody', PASSWORD), 'rejected'],
    [
      'tells a username that is shut down',
      ({ state }) => state.clientUsernames.change(ALICE, { enabled: false }),
      GOOD,
      'disabled',
    ],
    ['tells a message VPN that is shut down', ({ state }) => state.changeMsgVpn({ enabled: false }), GOOD, 'vpn-down'],
    [
      'tells that basic authentication is off',
      ({ state }) => state.changeMsgVpn({ authenticationBasicEnabled: false }),
      GOOD,
      'not-verified authentication-type',
    ],
    [
      'accepts anything where the message VPN does',
      ({ state }) => state.changeMsgVpn({ authenticationBasicType: 'none' }),
      WRONG,
      'accepted',
    ],
    [
      'tells an ACL profile that lets no client connect',
      ({ state }) => state.aclProfiles.change('open', { clientConnectDefaultAction: 'disallow' }),
      GOOD,
      'denied',
    ],
    [
      'is good when the ACL profile lets the client do nothing else',
      ({ state }) =>
        state.aclProfiles.change('open', {
          publishTopicDefaultAction: 'disallow',
          subscribeTopicDefaultAction: 'disallow',
        }),
      GOOD,
      'accepted',
    ],
    [
      'tells that there are too many connections',
      ({ state }) => {
        state.clientProfiles.put('narrow', { maxConnectionCountPerClientUsername: 1 })
        state.clientUsernames.change(ALICE, { clientProfileName: 'narrow' })
        state.connect(ALICE)
      },
      GOOD,
      'busy',
    ],
    [
      'takes a username and a password with every character that they may have',
      ({ state }) =>
        state.clientUsernames.put(PRINTABLE, { enabled: true, aclProfileName: 'open', password: PRINTABLE }),
      attempt(PRINTABLE, PRINTABLE),
      'accepted',
    ],
  ]
  it.each(CASES)('%s', async (_sentence, change, credential, expected) => {
    await using server = await place()
    change(server.vpn)
    const before = server.vpn.state.accounts.clients().length
    expect(short(await probe(server.target(), credential))).toBe(expected)
    await until(() => server.vpn.state.accounts.clients().length === before)
  })

  it('tells a message VPN that is not there', async () => {
    await using server = await place()
    expect(short(await probe(server.target({ msgVpnName: 'nowhere' })))).toBe('vpn-unknown')
  })

  it.each(['localhost', 'LOCALHOST', '127.0.0.1'])('reaches %s', async (host) => {
    await using server = await place()
    expect(short(await probe(server.target({ host })))).toBe('accepted')
  })

  it('ends with the deadline when the broker says nothing, and when it is aborted', async () => {
    await using silent = await startHostileServer('silent')
    const target = targetOf(protocol, silent.port)
    expect(short(await probe(target, GOOD, 300))).toBe('not-verified timeout')
    expect(short(await probe(target, GOOD, 0))).toBe('not-verified timeout')
    const controller = new AbortController()
    const aborted = login.probe(target, GOOD, { timeoutMs: 600_000, signal: controller.signal })
    const before = silent.received().length
    await until(() => silent.received().length > before)
    controller.abort()
    expect(short(await aborted)).toBe('not-verified timeout')
    expect(short(await login.probe(target, GOOD, { timeoutMs: 600_000, signal: AbortSignal.abort() }))).toBe(
      'not-verified timeout',
    )
  })

  it('waits for a slow broker until the deadline', async () => {
    await using server = await place()
    await using slow = await startSlowRelay({ port: server.listener.port, delayMs: 100 })
    expect(short(await probe(server.target({ port: slow.port })))).toBe('accepted')
    await using slower = await startSlowRelay({ port: server.listener.port, delayMs: 60_000 })
    expect(short(await probe(server.target({ port: slower.port }), GOOD, 400))).toBe('not-verified timeout')
    expect(slower.connections()).toBe(1)
  })

  it('ends with the deadline when the host does not answer at all', async () => {
    await using deaf = await startDeafServer()
    expect(short(await probe({ ...targetOf(protocol, deaf.port), host: '127.0.0.1' }, GOOD, 300))).toBe(
      'not-verified timeout',
    )
  })

  it('says what failed below SMF', async () => {
    expect(short(await probe(targetOf(protocol, await refusedPort())))).toBe('not-verified refused')
    expect(short(await probe({ ...targetOf(protocol, 55_555), host: 'broker.invalid' }))).toBe('not-verified dns')
  })

  const HOSTILE: Readonly<Record<string, string>> = {
    silent: 'timeout',
    'close-at-once': 'closed',
    'reset-at-once': 'closed',
    'close-after-data': 'closed',
    'junk-banner': 'protocol',
    'junk-answer': 'protocol',
    // Its letters may inflate to a beginning that never ends. The server closes, too: what is seen first is told.
    http: protocol === 'smfc' ? 'timeout' : 'protocol',
    flood: 'protocol',
  }
  it.each(Object.entries(HOSTILE))('is not verified with a server that does %s', async (kind, reason) => {
    const name = (protocol === 'smfs' ? `${kind}-tls` : kind) as HostileServerKind
    await using server = await startHostileServer(name, { tls: tls.good })
    const target = { ...targetOf(protocol, server.port), caCertificate: tls.ca.certificate }
    const verdict = await probe(target, GOOD, reason === 'timeout' ? 700 : TIMEOUT_MS)
    const reasons = kind === 'http' ? [reason, 'closed', 'protocol'] : [reason]
    expect(reasons.map((each) => `not-verified ${each}`)).toContain(short(verdict))
    // One login, after one look at the certificate.
    expect(server.connections()).toBe(protocol === 'smfs' ? 2 : 1)
  })
})

const PRINTABLE = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))

describe('a certificate', () => {
  const connect = async (material: TlsMaterials['good'], ca: string | undefined, host = 'localhost') => {
    await using server = await startPlace(startSmfListener, { protocol: 'smfs', tls: material })
    return short(await probe(server.target({ host, ...(ca === undefined ? {} : { caCertificate: ca }) })))
  }

  it.each([
    ['of an authority that is not trusted', () => connect(tls.good, undefined), 'tls-untrusted'],
    [
      'that signed itself',
      () => connect({ key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE }, tls.ca.certificate),
      'tls-untrusted',
    ],
    ['when what to trust cannot be read', () => connect(tls.good, 'no certificate'), 'tls-untrusted'],
    ['that has expired', () => connect(tls.expired, tls.ca.certificate), 'tls-expired'],
    ['that is not valid yet', () => connect(tls.notYet, tls.ca.certificate), 'tls-expired'],
    ['for another host', () => connect(tls.otherName, tls.ca.certificate), 'tls-wrong-name'],
    ['for another address', () => connect(tls.otherName, tls.ca.certificate, '127.0.0.1'), 'tls-wrong-name'],
  ])('%s is not taken', async (_sentence, run, reason) => {
    expect(await run()).toBe(`not-verified ${reason}`)
  })

  it('for localhost is not taken at an address, nor one for an address at localhost', async () => {
    const trusted = tls.ca.certificate
    const forName = await tls.ca.issue({ names: ['localhost'] })
    const forAddress = await tls.ca.issue({ names: ['127.0.0.1'] })
    expect(await connect(forName, trusted, '127.0.0.1')).toBe('not-verified tls-wrong-name')
    expect(await connect(forAddress, trusted, '127.0.0.1')).toBe('accepted')
    expect(await connect(forName, trusted, 'localhost')).toBe('accepted')
    expect(await connect(forAddress, trusted, 'localhost')).toBe('not-verified tls-wrong-name')
  })

  it('for an address is taken by its common name, whatever that is', async () => {
    const named = await tls.ca.issue({ names: ['broker.example', '127.0.0.1'] })
    expect(await connect(named, tls.ca.certificate, '127.0.0.1')).toBe('accepted')
  })

  it('is found among several that are trusted', async () => {
    const other = await createCertificateAuthority('another authority')
    expect(await connect(tls.good, `${other.certificate}\n${tls.ca.certificate}`)).toBe('accepted')
  })

  it.each(['expired', 'otherName'] as const)('that is %s is not told the password', async (kind) => {
    await using server = await startHostileServer('silent-tls', { tls: tls[kind] })
    await probe({ ...targetOf('smfs', server.port), caCertificate: tls.ca.certificate })
    expect(server.received()).toHaveLength(0)
  })
})

describe('a port of another kind', () => {
  const PORTS = {
    smf: () => startPlace(startSmfListener, { protocol: 'smf' }),
    smfc: () => startPlace(startSmfListener, { protocol: 'smfc' }),
    smfs: () => startPlace(startSmfListener, { protocol: 'smfs', tls: tls.good, ca: tls.ca.certificate }),
  }
  const CASES = (['smf', 'smfc', 'smfs'] as const).flatMap((spoken) =>
    (['smf', 'smfc', 'smfs'] as const).filter((port) => port !== spoken).map((port) => [spoken, port] as const),
  )
  it.each(CASES)('is not verified: %s on %s', async (spoken, port) => {
    await using server = await PORTS[port]()
    const verdict = await probe({ ...server.target(), protocol: spoken }, GOOD, 1500)
    expect(short(verdict)).toMatch(/^not-verified (?:closed|timeout|protocol)$/)
    expect(server.vpn.state.accounts.clients()).toEqual([])
  })
})

describe('a broker that answers', () => {
  const message = { protocol: 0x0c, timeToLive: 1, correlationTag: null, username: null, password: null }
  const control = { messageType: 0, msgVpnName: null, inboxTopic: null, authenticationScheme: 0 }
  const response = (code: number, text: string, inboxTopic: string | null = null) =>
    encodeSmf({ ...message, response: { code, text }, body: encodeClientControl({ ...control, inboxTopic }) })
  const UP = response(200, 'OK', '#P2P/1')
  const subscribed = encodeSmf({
    ...message,
    protocol: 0x0f,
    correlationTag: 1,
    response: { code: 200, text: 'OK' },
    body: Buffer.from('800000000f0c235032502f312f3e00', 'hex'),
  })

  const REFUSALS: Readonly<Record<string, string>> = {
    '401 Unauthorized': 'rejected',
    '401 whatever it likes': 'rejected',
    '404 Not Found': 'rejected',
    '403 Client Username Is Shutdown': 'disabled',
    '403 Forbidden': 'denied',
    '403 Message VPN Not Allowed': 'vpn-unknown',
    '503 Message VPN Unavailable': 'vpn-down',
    '503 Too Many Clients': 'busy',
    '503 Too Many Connections for VPN': 'busy',
    '503 Subscriber Delete In Progress': 'busy',
    '503 Service Unavailable': 'busy',
    '403 Basic Authentication is Shutdown': 'not-verified authentication-type',
    '403 Dynamic Clients Not Allowed': 'not-verified unknown',
    '403 Client Name Already In Use': 'not-verified unknown',
    '403 Replication Is Standby': 'not-verified unknown',
    '403 Invalid Virtual Router Address': 'not-verified unknown',
    '400 Client Name Parse Error': 'not-verified unknown',
    '403 Something New': 'not-verified unknown',
    '500 Internal Error': 'not-verified unknown',
    [`403 ${PASSWORD}`]: 'not-verified unknown',
  }
  it.each(Object.entries(REFUSALS))('%s', async (line, expected) => {
    const [code = '', ...words] = line.split(' ')
    await using server = await startScriptedSmfServer([response(Number(code), words.join(' '))])
    expect(short(await probe(targetOf('smf', server.port)))).toBe(expected)
    expect(server.connections()).toBe(1)
  })

  const CASES: readonly (readonly [string, readonly (Buffer | null)[], RegExp])[] = [
    ['that all is well and then nothing', [UP], /^not-verified timeout$/],
    ['that all is well and then goodbye', [UP, null], /^not-verified closed$/],
    ['that all is well and names no inbox', [response(200, 'OK')], /^not-verified protocol$/],
    ['that all is well and then junk', [UP, Buffer.from('junk that is no SMF at all')], /^not-verified/],
    ['that all is well and refuses the inbox', [UP, response(403, 'Subscription ACL Denied')], /^not-verified/],
    ['half an answer', [UP.subarray(0, 20)], /^not-verified timeout$/],
    ['half an answer and goodbye', [UP.subarray(0, 20), null], /^not-verified (?:closed|timeout)$/],
    ['to another question', [subscribed], /^not-verified/],
    ['with a message that has no end', [Buffer.from('030c00010000000c7fffffff', 'hex')], /^not-verified/],
    [
      'with a parameter that is cut off, which the library throws out of an event',
      [Buffer.from('030c00010000000f00000015080000010000000006', 'hex')],
      /^not-verified unknown$/,
    ],
  ]
  it.each(CASES)('%s', async (_sentence, answers, expected) => {
    await using server = await startScriptedSmfServer(answers)
    expect(short(await probe(targetOf('smf', server.port), GOOD, 700))).toMatch(expected)
    expect(server.connections()).toBe(1)
    // And the next login is as good as any.
    await using place = await startPlace(startSmfListener, { protocol: 'smf' })
    expect(short(await probe(place.target()))).toBe('accepted')
  })
})

describe('what cannot be sent as it is', () => {
  const CASES: readonly (readonly [string, LoginAttempt, Partial<LoginTarget>])[] = [
    ['an empty username', attempt('', PASSWORD), {}],
    ['an empty password', attempt(ALICE, ''), {}],
    ['a username that is too long', attempt('u'.repeat(190), PASSWORD), {}],
    ['a password that is too long', attempt(ALICE, 'p'.repeat(129)), {}],
    ['a password with a letter of two bytes', attempt(ALICE, 'pässword'), {}],
    ['a password that another one looks like', attempt(ALICE, 'pass€'), {}],
    ['a username with an emoji', attempt('🙂', PASSWORD), {}],
    ['a NUL', attempt(ALICE, 'a\0b'), {}],
    ['no message VPN', GOOD, { msgVpnName: '' }],
    ['a message VPN with a name that is too long', GOOD, { msgVpnName: 'v'.repeat(33) }],
    ['no host', GOOD, { host: '' }],
    ['two hosts', GOOD, { host: 'localhost,127.0.0.1' }],
    ['a host with a path', GOOD, { host: 'localhost/x' }],
    ['another protocol', GOOD, { protocol: 'mqtt' }],
  ]
  it.each(CASES)('%s is not sent', async (_sentence, credential, change) => {
    await using server = await startHostileServer('silent')
    const target = { ...targetOf('smf', server.port), ...change }
    expect(short(await probe(target, credential))).toBe('not-verified bad-input')
    expect(server.connections()).toBe(0)
  })

  it('the longest of all is sent', async () => {
    const credential = attempt('u'.repeat(189), 'p'.repeat(128))
    await using server = await startPlace(startSmfListener, { protocol: 'smf' })
    server.vpn.state.clientUsernames.put('u'.repeat(189), {
      enabled: true,
      aclProfileName: 'open',
      password: 'p'.repeat(128),
    })
    expect(short(await probe(server.target(), credential))).toBe('accepted')
  })
})

describe('a probe over and over', () => {
  // In this very process, where what the library leaves would show.
  const own = createSmfLogin({ client: createSmfClient(async () => (await import('solclientjs')).default) })
  afterAll(() => own.close())

  /** What is looked for is what stays, however busy the machine is. */
  const PATIENT_MS = 30_000

  it('leaves nothing behind in hundreds of logins', { timeout: 120_000 }, async () => {
    await using clear = await startPlace(startSmfListener, { protocol: 'smf' })
    await using secure = await startPlace(startSmfListener, { protocol: 'smfs', tls: tls.good, ca: tls.ca.certificate })
    await using compressed = await startPlace(startSmfListener, { protocol: 'smfc' })
    const kinds: readonly (readonly [() => Promise<Verdict>, string])[] = [
      [() => probe(clear.target(), GOOD, PATIENT_MS, own), 'accepted'],
      [() => probe(clear.target(), WRONG, PATIENT_MS, own), 'rejected'],
      [() => probe(compressed.target(), GOOD, PATIENT_MS, own), 'accepted'],
      [() => probe(secure.target(), GOOD, PATIENT_MS, own), 'accepted'],
      [() => probe(compressed.target(), WRONG, PATIENT_MS, own), 'rejected'],
    ]
    await expectNoLeaks(
      async (index) => {
        const [run, expected] = kinds[index % kinds.length] ?? []
        expect(short((await run?.()) ?? { outcome: 'accepted' })).toBe(expected)
      },
      { rounds: 400, atOnce: 25 },
    )
    for (const { vpn } of [clear, secure, compressed]) {
      await until(() => vpn.state.accounts.clients().length === 0)
    }
  })

  it('leaves nothing behind where every login fails', { timeout: 120_000 }, async () => {
    await using silent = await startHostileServer('silent')
    await using closing = await startHostileServer('close-after-data')
    await using junk = await startHostileServer('junk-answer')
    await using deaf = await startDeafServer()
    const refused = await refusedPort()
    const kinds: readonly (() => Promise<Verdict>)[] = [
      () => probe({ ...targetOf('smf', deaf.port), host: '127.0.0.1' }, GOOD, 20, own),
      () => probe(targetOf('smf', refused), GOOD, TIMEOUT_MS, own),
      () => probe(targetOf('smfs', refused), GOOD, TIMEOUT_MS, own),
      () => probe(targetOf('smf', silent.port), GOOD, 20, own),
      () => probe(targetOf('smfs', silent.port), GOOD, 20, own),
      () => probe(targetOf('smf', closing.port), GOOD, TIMEOUT_MS, own),
      () => probe(targetOf('smfs', closing.port), GOOD, TIMEOUT_MS, own),
      () => probe(targetOf('smfc', junk.port), GOOD, 20, own),
      () => probe(targetOf('smf', junk.port), GOOD, TIMEOUT_MS, own),
    ]
    await expectNoLeaks(
      async (index) => expect((await kinds[index % kinds.length]?.())?.outcome).toBe('not-verified'),
      { rounds: 450, atOnce: 18 },
    )
  })
})
