import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createRestLogin } from '../../src/login/rest.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { startRestListener } from '../../src/sandbox/login/rest-listener.ts'
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
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, TRUSTED_CA } from './tls-fixtures.ts'

const login = createRestLogin()
const WRONG = attempt(ALICE, 'not the password')
const TOKEN = Buffer.from(`${ALICE}:${PASSWORD}`).toString('base64')

async function probe(target: LoginTarget, credential: LoginAttempt = GOOD, timeoutMs = TIMEOUT_MS): Promise<Verdict> {
  const verdict = await login.probe(target, credential, { timeoutMs })
  for (const secret of [PASSWORD, TOKEN]) expect(JSON.stringify(verdict)).not.toContain(secret)
  return verdict
}

/** `outcome`, or `not-verified reason`. */
const short = (verdict: Verdict): string =>
  verdict.outcome === 'not-verified' ? `not-verified ${verdict.reason}` : verdict.outcome

let tls: TlsMaterials
beforeAll(async () => {
  tls = await makeTlsMaterials()
})

interface AnsweringServer extends AsyncDisposable {
  readonly port: number
  readonly requests: IncomingMessage[]
}

async function startAnsweringServer(answer: (response: ServerResponse) => void): Promise<AnsweringServer> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

describe.each(['http', 'https'] as const)('a login over %s', (protocol) => {
  const place = () =>
    protocol === 'http'
      ? startPlace(startRestListener, { protocol })
      : startPlace(startRestListener, { protocol, tls: tls.good, ca: tls.ca.certificate })

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
      'tells a message VPN without basic authentication',
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
      'is good where the ACL profile denies the topic of the probe',
      ({ state }) => state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' }),
      GOOD,
      'denied',
    ],
    [
      'refuses a wrong password where the ACL profile denies the topic of the probe',
      ({ state }) => state.aclProfiles.change('open', { publishTopicDefaultAction: 'disallow' }),
      WRONG,
      'rejected',
    ],
    [
      'tells an ACL profile that lets no client connect',
      ({ state }) => state.aclProfiles.change('open', { clientConnectDefaultAction: 'disallow' }),
      GOOD,
      'denied',
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
        state.clientUsernames.put('ü@/ €', { enabled: true, aclProfileName: 'open', password: '~!"#: \\' }),
      attempt('ü@/ €', '~!"#: \\'),
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
    const target = targetOf(protocol, silent.port)
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

  it('says what failed below HTTP', async () => {
    expect(short(await probe(targetOf(protocol, await refusedPort())))).toBe('not-verified refused')
    expect(short(await probe({ ...targetOf(protocol, 9000), host: 'broker.invalid' }))).toBe('not-verified dns')
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
    const name = (protocol === 'http' ? kind : `${kind}-tls`) as HostileServerKind
    await using server = await startHostileServer(name, { tls: tls.good })
    const verdict = await probe({ ...targetOf(protocol, server.port), caCertificate: tls.ca.certificate })
    expect(short(verdict)).toBe(`not-verified ${reason}`)
    expect(server.connections()).toBe(1)
  })

  it('leaves nothing behind', { timeout: 180_000 }, async () => {
    await using server = await place()
    const refused = await refusedPort()
    const kinds: readonly (() => Promise<Verdict>)[] = [
      () => probe(server.target()),
      () => probe(server.target(), WRONG),
      () => probe(server.target({ port: refused })),
      () => probe(server.target(), GOOD, 1),
    ]
    await expectNoLeaks(async (index) => kinds[index % kinds.length]?.())
    await until(() => server.vpn.state.accounts.clients().length === 0)
  })
})

describe('a certificate', () => {
  const connect = async (material: TlsMaterials['good'], ca: string | undefined, host = 'localhost') => {
    await using server = await startPlace(startRestListener, { protocol: 'https', tls: material })
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

  it('that is not taken gets no password', async () => {
    await using server = await startHostileServer('silent-tls', { tls: tls.good })
    expect(short(await probe(targetOf('https', server.port)))).toBe('not-verified tls-untrusted')
    expect(server.received()).toHaveLength(0)
  })
})

describe('a port with the other kind of transport', () => {
  it('is not verified in clear text where the broker speaks TLS', async () => {
    await using server = await startPlace(startRestListener, { protocol: 'https', tls: tls.good })
    expect(short(await probe({ ...server.target(), protocol: 'http' }))).toMatch(/^not-verified (?:protocol|closed)$/)
  })

  it('is not verified with TLS where the broker speaks clear text', async () => {
    await using server = await startPlace(startRestListener, { protocol: 'http' })
    expect(short(await probe({ ...server.target(), protocol: 'https' }))).toBe('not-verified protocol')
  })
})

describe('the request', () => {
  it('is one empty message in direct mode to a topic that nobody uses, on a connection of its own', async () => {
    await using server = await startAnsweringServer((response) => response.end())
    const sockets: Socket[] = []
    for (let round = 0; round < 2; round += 1) {
      expect(short(await probe(targetOf('http', server.port)))).toBe('accepted')
      const request = server.requests[round]
      if (request !== undefined) sockets.push(request.socket)
      expect(request).toMatchObject({
        method: 'POST',
        url: expect.stringMatching(/^\/TOPIC\/keymesh-probe\/[0-9a-f-]{36}$/),
        headers: {
          authorization: `Basic ${TOKEN}`,
          'content-length': '0',
          'solace-delivery-mode': 'Direct',
          connection: 'close',
        },
      })
    }
    expect(new Set(server.requests.map(({ url }) => url)).size).toBe(2)
    expect(new Set(sockets).size).toBe(2)
  })
})

describe('an answer', () => {
  const PAGE = '<html><body><h1>Some text</h1></body></html>'
  type Row = readonly [sentence: string, status: number, reason: string | null, body: string, expected: string]
  const CASES: readonly Row[] = [
    ['200', 200, null, '', 'accepted'],
    ['202', 202, null, 'text', 'accepted'],
    ['301', 301, null, '', 'not-verified protocol'],
    ['302', 302, null, '', 'not-verified protocol'],
    ['307', 307, null, '', 'not-verified protocol'],
    ['400', 400, null, 'Bad topic', 'not-verified protocol'],
    ['401', 401, null, '', 'rejected'],
    ['401 of a username that is shut down', 401, null, 'Client Username Is Shutdown', 'disabled'],
    ['403 of a username that is shut down', 403, null, 'Client Username Is Shutdown\n', 'disabled'],
    ['403 of a username that is shut down, in the status line', 403, 'Client Username Is Shutdown', '', 'disabled'],
    ['403 of a topic', 403, null, 'Publish ACL Denied', 'denied'],
    ['403 of a topic, in the status line', 403, 'Publish ACL Denied', '', 'denied'],
    ['403 of a topic, in other words', 403, null, 'Publishing to topic a/b is not permitted', 'denied'],
    ['403 of the client', 403, null, 'Forbidden', 'denied'],
    ['403 of a credential', 403, null, 'Unauthorized', 'rejected'],
    ['403 of basic authentication', 403, null, 'Basic Authentication is Shutdown', 'not-verified authentication-type'],
    ['403 of the message VPN', 403, null, 'Message VPN Not Allowed', 'vpn-unknown'],
    ['403 without a word', 403, null, '', 'not-verified unknown'],
    ['403 of a web server', 403, null, PAGE, 'not-verified unknown'],
    ['404', 404, null, PAGE, 'not-verified protocol'],
    ['405', 405, null, '', 'not-verified protocol'],
    ['407', 407, null, '', 'not-verified protocol'],
    ['429', 429, null, '', 'busy'],
    ['500', 500, null, 'whatever', 'busy'],
    ['503', 503, null, 'Service Unavailable', 'busy'],
    ['503 of the message VPN', 503, null, 'Message VPN Unavailable', 'vpn-down'],
    ['503 of too many clients', 503, null, 'Too Many Clients', 'busy'],
  ]
  it.each(CASES)('%s', async (_sentence, status, reason, body, expected) => {
    await using server = await startAnsweringServer((response) => {
      response.writeHead(status, reason ?? undefined, { location: 'http://127.0.0.1:1/elsewhere' }).end(body)
    })
    expect(short(await probe(targetOf('http', server.port)))).toBe(expected)
    expect(server.requests).toHaveLength(1)
  })

  it('is quoted shortly, without what would repeat the password', async () => {
    const said = async (body: string) => {
      await using server = await startAnsweringServer((response) => response.writeHead(403).end(body))
      const verdict = await probe(targetOf('http', server.port))
      return 'detail' in verdict ? verdict.detail : ''
    }
    expect(await said('not\r\nfor \u0007 you')).toBe(
      'The port answered HTTP 403 ("not for you"), which does not say why.',
    )
    expect(await said(PASSWORD)).toBe('The port answered HTTP 403, which does not say why.')
    expect(await said(`Authorization: Basic ${TOKEN}`)).toBe('The port answered HTTP 403, which does not say why.')
    expect((await said('long '.repeat(10_000))).length).toBeLessThan(250)
  })

  it.each([
    [
      'that is not whole by the deadline',
      (response: ServerResponse) => void response.writeHead(401).write('Un'),
      'timeout',
    ],
    [
      'that breaks off',
      (response: ServerResponse) => {
        response.writeHead(401, { 'content-length': 100 }).write('Un', () => response.destroy())
      },
      'closed',
    ],
    [
      'of another protocol',
      (response: ServerResponse) => void response.writeHead(101, { upgrade: 'h2c', connection: 'upgrade' }).end(),
      'closed',
    ],
  ])('%s is none', async (_sentence, answer, reason) => {
    await using server = await startAnsweringServer(answer)
    const timeoutMs = reason === 'timeout' ? 300 : TIMEOUT_MS
    expect(short(await probe(targetOf('http', server.port), GOOD, timeoutMs))).toBe(`not-verified ${reason}`)
  })

  it('without end is read in part', async () => {
    await using server = await startAnsweringServer((response) => {
      response.writeHead(401)
      const fill = (): void => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      }
      response.on('drain', fill)
      fill()
    })
    expect(short(await probe(targetOf('http', server.port)))).toBe('rejected')
  })
})

describe('what no broker takes', () => {
  it.each([
    ['no username', attempt('', PASSWORD)],
    ['no password', attempt(ALICE, '')],
    ['a colon in the username', attempt('a:b', PASSWORD)],
  ])('%s is not sent', async (_sentence, credential) => {
    await using server = await startHostileServer('silent')
    expect(short(await probe(targetOf('http', server.port), credential))).toBe('not-verified bad-input')
    expect(server.connections()).toBe(0)
  })
})
