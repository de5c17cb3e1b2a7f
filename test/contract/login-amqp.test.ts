import { createRequire } from 'node:module'
import { afterEach, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createAmqpLogin } from '../../src/login/amqp.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { startAmqpListener } from '../../src/sandbox/login/amqp-listener.ts'
import { type HostileServerKind, refusedPort, startHostileServer, startSlowRelay } from '../helpers/hostile-server.ts'
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
import {
  AMQP_HEADER,
  type AmqpScript,
  challenge,
  close,
  mechanisms,
  open,
  outcome,
  SASL_HEADER,
  startScriptedAmqpServer,
} from './scripted-amqp-server.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, TRUSTED_CA } from './tls-fixtures.ts'

const login = createAmqpLogin()
const WRONG = attempt(ALICE, 'not the password')

async function probe(target: LoginTarget, credential: LoginAttempt = GOOD, timeoutMs = TIMEOUT_MS): Promise<Verdict> {
  const verdict = await login.probe(target, credential, { timeoutMs })
  expect(JSON.stringify(verdict)).not.toContain(credential.password.reveal() || 'x'.repeat(99))
  return verdict
}

/** `outcome`, or `not-verified reason`. */
const short = (verdict: Verdict): string =>
  verdict.outcome === 'not-verified' ? `not-verified ${verdict.reason}` : verdict.outcome

let tls: TlsMaterials
beforeAll(async () => {
  tls = await makeTlsMaterials()
})

// The library prints when it meets something that nobody listens for.
let printers: MockInstance[] = []
beforeEach(() => {
  printers = (['log', 'info', 'warn', 'error', 'trace'] as const).map((name) => vi.spyOn(console, name))
})
afterEach(() => {
  for (const printer of printers) expect(printer).not.toHaveBeenCalled()
  vi.restoreAllMocks()
})

describe.each(['amqp', 'amqps'] as const)('a login over %s', (protocol) => {
  const place = () =>
    protocol === 'amqp'
      ? startPlace(startAmqpListener, { protocol })
      : startPlace(startAmqpListener, { protocol, tls: tls.good, ca: tls.ca.certificate })

  const CASES: readonly (readonly [string, (vpn: LoginVpn) => void, LoginAttempt, string])[] = [
    ['takes the right password', () => {}, GOOD, 'accepted'],
    ['refuses a wrong password', () => {}, WRONG, 'rejected'],
    ['refuses an unknown username', () => {}, attempt('nobody', PASSWORD), 'rejected'],
    [
      'cannot tell a shut down username from a wrong password',
      ({ state }) => state.clientUsernames.change(ALICE, { enabled: false }),
      GOOD,
      'rejected',
    ],
    ['tells a message VPN that is shut down', ({ state }) => state.changeMsgVpn({ enabled: false }), GOOD, 'vpn-down'],
    [
      'does not log in as anonymous where nothing else is offered',
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
      'is good when the ACL profile lets the client publish nothing',
      ({ state }) => state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' }),
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
        state.clientUsernames.put('ü:@/ €', { enabled: true, aclProfileName: 'open', password: '~!"#: \\' }),
      attempt('ü:@/ €', '~!"#: \\'),
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

  it.each(['localhost', '127.0.0.1'])('reaches %s', async (host) => {
    await using server = await place()
    expect(short(await probe(server.target({ host })))).toBe('accepted')
  })

  it('ends with the deadline when the broker says nothing, and when it is aborted', async () => {
    await using silent = await startHostileServer('silent')
    const target = { ...targetOf(protocol, silent.port) }
    expect(short(await probe(target, GOOD, 100))).toBe('not-verified timeout')
    expect(short(await probe(target, GOOD, 0))).toBe('not-verified timeout')
    const controller = new AbortController()
    const aborted = login.probe(target, GOOD, { timeoutMs: 600_000, signal: controller.signal })
    await until(() => silent.received().length > 0)
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
    expect(short(await probe(server.target({ port: slower.port }), GOOD, 300))).toBe('not-verified timeout')
    expect(slower.connections()).toBe(1)
  })

  it('says what failed below AMQP', async () => {
    expect(short(await probe(targetOf(protocol, await refusedPort())))).toBe('not-verified refused')
    expect(short(await probe({ ...targetOf(protocol, 5672), host: 'broker.invalid' }))).toBe('not-verified dns')
  })

  const HOSTILE: Readonly<Record<string, string>> = {
    'close-at-once': 'closed',
    'reset-at-once': 'closed',
    'close-after-data': 'closed',
    'junk-banner': 'protocol',
    'junk-answer': 'protocol',
    http: 'protocol',
    flood: 'protocol',
  }
  it.each(Object.entries(HOSTILE))('is not verified with a server that does %s', async (kind, reason) => {
    const name = (protocol === 'amqp' ? kind : `${kind}-tls`) as HostileServerKind
    await using server = await startHostileServer(name, { tls: tls.good })
    const verdict = await probe({ ...targetOf(protocol, server.port), caCertificate: tls.ca.certificate })
    expect(short(verdict)).toBe(`not-verified ${reason}`)
    expect(server.connections()).toBe(1)
    expect(server.received().includes(PASSWORD)).toBe(false)
  })

  it('leaves nothing behind', { timeout: 180_000 }, async () => {
    await using server = await place()
    const refused = await refusedPort()
    const kinds: readonly (() => Promise<Verdict>)[] = [
      () => probe(server.target()),
      () => probe(server.target(), WRONG),
      () => probe(server.target({ port: refused })),
      () => probe(server.target(), GOOD, 20),
    ]
    await expectNoLeaks(async (index) => kinds[index % kinds.length]?.())
    await until(() => server.vpn.state.accounts.clients().length === 0)
  })
})

describe('a certificate', () => {
  const connect = async (material: TlsMaterials['good'], ca: string | undefined, host = 'localhost') => {
    await using server = await startPlace(startAmqpListener, { protocol: 'amqps', tls: material })
    const target = server.target({ host, ...(ca === undefined ? {} : { caCertificate: ca }) })
    return short(await probe(target))
  }

  it.each([
    ['of an authority that is not trusted', () => connect(tls.good, undefined), 'tls-untrusted'],
    [
      'that signed itself',
      () => connect({ key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE }, tls.ca.certificate),
      'tls-untrusted',
    ],
    ['that has expired', () => connect(tls.expired, tls.ca.certificate), 'tls-expired'],
    ['that is not valid yet', () => connect(tls.notYet, tls.ca.certificate), 'tls-expired'],
    ['for another host', () => connect(tls.otherName, tls.ca.certificate), 'tls-wrong-name'],
    ['for another address', () => connect(tls.otherName, tls.ca.certificate, '127.0.0.1'), 'tls-wrong-name'],
    [
      'for the name of the host but not its address',
      () => connect({ key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE }, TRUSTED_CA, '127.0.0.1'),
      'tls-wrong-name',
    ],
  ])('%s is not taken', async (_sentence, run, reason) => {
    expect(await run()).toBe(`not-verified ${reason}`)
  })
})

describe('a port with the other kind of transport', () => {
  it('is not verified in clear text where the broker speaks TLS', async () => {
    await using server = await startPlace(startAmqpListener, { protocol: 'amqps', tls: tls.good })
    expect(short(await probe({ ...server.target(), protocol: 'amqp' }))).toMatch(/^not-verified (?:protocol|closed)$/)
  })

  it('is not verified with TLS where the broker speaks clear text', async () => {
    await using server = await startPlace(startAmqpListener, { protocol: 'amqp' })
    expect(short(await probe({ ...server.target(), protocol: 'amqps' }))).toMatch(/^not-verified (?:protocol|closed)$/)
  })
})

describe('a broker that says', () => {
  const PLAIN = { onHeader: [SASL_HEADER, mechanisms('PLAIN')] }
  const LET_IN = { ...PLAIN, onInit: [outcome(0)] }
  const opens = (...then: readonly Buffer[]) => ({ ...LET_IN, onOpen: [AMQP_HEADER, open(), ...then] })
  const closesWith = (condition: string, description?: string) => opens(close(condition, description))

  const CASES: readonly (readonly [string, AmqpScript, string])[] = [
    ['SASL outcome 1', { ...PLAIN, onInit: [outcome(1)] }, 'rejected'],
    ['SASL outcome 1 and goes', { ...PLAIN, onInit: [outcome(1)], endAfter: 'onInit' }, 'rejected'],
    ['SASL outcome 2', { ...PLAIN, onInit: [outcome(2)] }, 'not-verified unknown'],
    ['SASL outcome 3', { ...PLAIN, onInit: [outcome(3)] }, 'not-verified unknown'],
    ['SASL outcome 4', { ...PLAIN, onInit: [outcome(4)] }, 'busy'],
    ['SASL outcome 9', { ...PLAIN, onInit: [outcome(9)] }, 'not-verified protocol'],
    ['nothing after the password', PLAIN, 'not-verified timeout'],
    ['goodbye after the password', { ...PLAIN, endAfter: 'onInit' }, 'not-verified closed'],
    ['that SASL went well, and no more', LET_IN, 'not-verified timeout'],
    ['that SASL went well, and goodbye', { ...LET_IN, endAfter: 'onInit' }, 'not-verified closed'],
    ['that it has a question', { ...PLAIN, onInit: [challenge()] }, 'not-verified protocol'],
    [
      'that it takes anonymous clients only',
      { onHeader: [SASL_HEADER, mechanisms('ANONYMOUS')] },
      'not-verified authentication-type',
    ],
    [
      'that it takes what no client has',
      { onHeader: [SASL_HEADER, mechanisms('toString', '__proto__')] },
      'not-verified authentication-type',
    ],
    [
      'that it takes anonymous clients too',
      { ...opens(), onHeader: [SASL_HEADER, mechanisms('ANONYMOUS', 'PLAIN')], onClose: [close()] },
      'accepted',
    ],
    ['that it needs no SASL', { onHeader: [AMQP_HEADER, open()] }, 'not-verified protocol'],
    [
      'that all is well before it has the password',
      { onHeader: [SASL_HEADER, mechanisms('ANONYMOUS'), outcome(0), AMQP_HEADER, open()] },
      'not-verified authentication-type',
    ],
    [
      'that all is well without asking for the password',
      { onHeader: [SASL_HEADER, outcome(0)], onOpen: [AMQP_HEADER, open()] },
      'not-verified protocol',
    ],
    ['open, and answers the close', { ...opens(), onClose: [close()] }, 'accepted'],
    [
      'all it has to say at once',
      { ...PLAIN, onInit: [Buffer.concat([outcome(0), AMQP_HEADER, open()])], onClose: [close()] },
      'accepted',
    ],
    ['open, and does not answer the close', opens(), 'accepted'],
    ['open, and leaves at the close', { ...opens(), endAfter: 'onClose' }, 'accepted'],
    [
      'open, with a heartbeat that is due at once',
      { ...LET_IN, onOpen: [AMQP_HEADER, open(1)], onClose: [close()] },
      'accepted',
    ],
    ['open and close', opens(close()), 'not-verified closed'],
    ['open and goodbye', { ...opens(), endAfter: 'onOpen' }, 'not-verified closed'],
    ['open, close: not allowed', closesWith('amqp:not-allowed'), 'denied'],
    ['open, close: unauthorized', closesWith('amqp:unauthorized-access', 'Failed to authenticate: 1'), 'denied'],
    ['open, close: too many', closesWith('amqp:resource-limit-exceeded'), 'busy'],
    ['open, close: forced', closesWith('amqp:connection:forced'), 'busy'],
    ['open, close: internal error', closesWith('amqp:internal-error'), 'not-verified unknown'],
    ['open, close: not implemented', closesWith('amqp:not-implemented'), 'not-verified protocol'],
    ['open, close: a condition of its own', closesWith('solace:whatever'), 'not-verified unknown'],
    [
      'open, close: client username shut down',
      closesWith('amqp:not-allowed', 'Client Username Is Shutdown'),
      'disabled',
    ],
    ['open, close: message VPN unknown', closesWith('amqp:not-allowed', 'Message VPN Not Allowed'), 'vpn-unknown'],
    [
      'open, close: message VPN unavailable',
      closesWith('amqp:connection:forced', 'Message VPN Unavailable'),
      'vpn-down',
    ],
    [
      'open, and close a little later: not allowed',
      { ...opens(), late: [close('amqp:not-allowed')], onClose: [close()] },
      'denied',
    ],
    ['half a frame', { ...PLAIN, onInit: [outcome(0).subarray(0, 9)] }, 'not-verified timeout'],
    [
      'a frame that is too short for one',
      { ...PLAIN, onInit: [Buffer.from([0, 0, 0, 4, 2, 1, 0, 0])] },
      'not-verified protocol',
    ],
    [
      'a frame that it never ends',
      { ...PLAIN, onInit: [Buffer.from([0x7f, 0, 0, 0, 2, 1, 0, 0]), Buffer.alloc(100_000)] },
      'not-verified protocol',
    ],
  ]
  it.each(CASES)('%s', async (_sentence, script, expected) => {
    await using server = await startScriptedAmqpServer(script)
    const timeoutMs = expected === 'not-verified timeout' ? 300 : TIMEOUT_MS
    expect(short(await probe(targetOf('amqp', server.port), GOOD, timeoutMs))).toBe(expected)
    expect(server.connections()).toBe(1)
    // Whoever is asked in the right way gets the password, and nobody else.
    const isAsked = script.onHeader?.[0] === SASL_HEADER && script.onHeader.some((bytes) => bytes.includes('PLAIN'))
    expect(server.received().includes(PASSWORD)).toBe(isAsked)
  })

  it('the password back, and it is not repeated', async () => {
    await using server = await startScriptedAmqpServer(closesWith('amqp:not-allowed', `not you, ${PASSWORD}`))
    expect(await probe(targetOf('amqp', server.port))).toEqual({
      outcome: 'denied',
      detail: 'The login is good; the broker then closed with amqp:not-allowed.',
    })
  })

  it('goodbye, and hears no heartbeat of a probe that has ended', async () => {
    await using server = await startScriptedAmqpServer({ ...LET_IN, onOpen: [AMQP_HEADER, open(2)] })
    const target = targetOf('amqp', server.port)
    await expectNoLeaks(async () => expect(short(await probe(target, GOOD, 70))).toBe('not-verified timeout'), {
      rounds: 20,
      atOnce: 4,
    })
  })
})

it('prints no frame, even where all libraries are asked to print', async () => {
  const debug: { enable(names: string): void; disable(): void } = createRequire(
    createRequire(import.meta.url).resolve('rhea'),
  )('debug')
  const printed: string[] = []
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
  debug.enable('*')
  try {
    await using server = await startPlace(startAmqpListener, { protocol: 'amqp' })
    expect(short(await probe(server.target()))).toBe('accepted')
  } finally {
    debug.disable()
    write.mockRestore()
  }
  expect(printed.join('')).toContain('rhea:events')
  expect(printed.join('')).not.toMatch(/rhea:(?:frames|raw)/)
})

describe('what no broker takes', () => {
  it.each([
    ['no username', attempt('', PASSWORD)],
    ['no password', attempt(ALICE, '')],
    ['a NUL in the username', attempt('a\0b', PASSWORD)],
    ['a NUL in the password', attempt(ALICE, 'a\0b')],
  ])('%s is not sent', async (_sentence, credential) => {
    await using server = await startHostileServer('silent')
    expect(short(await probe(targetOf('amqp', server.port), credential))).toBe('not-verified bad-input')
    expect(server.connections()).toBe(0)
  })
})
