import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { createCertificateAuthority } from '../../src/sandbox/certificates.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import type { FaultProxy } from '../helpers/fault-proxy.ts'
import { type RunningMesh, startRunningMesh } from '../helpers/running-mesh.ts'
import { until } from '../helpers/service.ts'
import { accessRequest, suppliedCredential } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal, snapshotOf } from '../integration/reconcile-fixtures.ts'

interface Sick {
  readonly sandbox: SandboxBroker
  readonly proxy: FaultProxy
}

interface Row {
  readonly what: string
  readonly make: (sick: Sick) => Promise<unknown> | unknown
  /** What the broker's state or a run says; null: the work is done all the same. */
  readonly code: string | null
  /** Some requests are served, so some of the work may be done. */
  readonly partly?: true
}

const http = (status: string, body: string, headers = ''): string =>
  `HTTP/1.1 ${status}\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`

const answer =
  (status: string, body = '', headers = '') =>
  ({ proxy }: Sick) =>
    proxy.set({ kind: 'answer', with: http(status, body, headers) })

const HTML = '<!doctype html><html><head><title>Welcome</title></head><body>Please sign in.</body></html>'
const OK = { responseCode: 200, request: { method: 'GET', uri: '' } }

const ROWS: readonly Row[] = [
  { what: 'answers 503', make: answer('503 Service Unavailable'), code: 'BROKER_UNAVAILABLE' },
  {
    what: 'has no SEMP session left (529)',
    make: answer('529 No SEMP Session Available'),
    code: 'SEMP_SESSIONS_EXHAUSTED',
  },
  { what: 'answers 429', make: answer('429 Too Many Requests'), code: 'BROKER_TOO_MANY_REQUESTS' },
  {
    what: 'answers 429 and names a day to wait',
    make: answer('429 Too Many Requests', '', 'Retry-After: 86400\r\n'),
    code: 'BROKER_TOO_MANY_REQUESTS',
  },
  {
    what: 'answers 503 and names a second to wait',
    make: answer('503 Service Unavailable', '', 'Retry-After: 1\r\n'),
    code: 'BROKER_UNAVAILABLE',
  },
  { what: 'answers 500', make: answer('500 Internal Server Error', 'oops'), code: 'BROKER_INTERNAL_ERROR' },
  { what: 'is behind a gateway that answers 502', make: answer('502 Bad Gateway', HTML), code: 'BROKER_GATEWAY_ERROR' },
  { what: 'refuses the SEMP login (401) for a while', make: answer('401 Unauthorized'), code: 'SEMP_LOGIN_REFUSED' },
  { what: 'answers 404 to all', make: answer('404 Not Found', HTML), code: 'BROKER_ANSWER_UNEXPECTED' },
  { what: 'answers a page of HTML with 200', make: answer('200 OK', HTML), code: 'BROKER_ANSWER_UNEXPECTED' },
  {
    what: 'sends all elsewhere (302)',
    make: answer('302 Found', '', 'Location: https://sign-in.example/\r\n'),
    code: 'BROKER_ANSWER_UNEXPECTED',
  },
  { what: 'answers half of a JSON text', make: answer('200 OK', '{"data":{"enab'), code: 'BROKER_ANSWER_UNEXPECTED' },
  { what: 'answers JSON of another shape', make: answer('200 OK', '[]'), code: 'BROKER_ANSWER_UNEXPECTED' },
  {
    what: 'answers empty lists to all',
    make: answer('200 OK', JSON.stringify({ data: [], links: [], meta: OK })),
    code: 'BROKER_ANSWER_UNEXPECTED',
  },
  {
    what: 'answers an object without attributes to all',
    make: answer('200 OK', JSON.stringify({ data: {}, links: {}, meta: OK })),
    code: 'BROKER_ANSWER_UNEXPECTED',
  },
  { what: 'refuses connections', make: ({ proxy }) => proxy.set({ kind: 'refuse' }), code: 'BROKER_UNREACHABLE' },
  { what: 'resets connections', make: ({ proxy }) => proxy.set({ kind: 'reset' }), code: 'BROKER_CONNECTION_LOST' },
  {
    what: 'takes connections and is silent',
    make: ({ proxy }) => proxy.set({ kind: 'silent' }),
    code: 'BROKER_TIMEOUT',
  },
  {
    what: 'never gets what is sent',
    make: ({ proxy }) => proxy.set({ kind: 'silent', direction: 'up' }),
    code: 'BROKER_TIMEOUT',
  },
  {
    what: 'breaks off in the middle of each answer',
    make: ({ proxy }) => proxy.set({ kind: 'cut', direction: 'down', afterBytes: 150 }),
    code: 'BROKER_CONNECTION_LOST',
  },
  {
    what: 'breaks off in the middle of each request',
    make: ({ proxy }) => proxy.set({ kind: 'cut', direction: 'up', afterBytes: 60 }),
    code: 'BROKER_CONNECTION_LOST',
  },
  {
    what: 'says goodbye before it answers',
    make: ({ proxy }) => proxy.set({ kind: 'half-close', direction: 'down' }),
    code: 'BROKER_CONNECTION_LOST',
  },
  {
    what: 'answers at 40 bytes a second',
    make: ({ proxy }) => proxy.set({ kind: 'slow', direction: 'down', bytesPerSecond: 40 }),
    code: 'BROKER_TIMEOUT',
  },
  {
    what: 'answers a little late',
    make: ({ proxy }) => proxy.set({ kind: 'late', delayMs: 30 }),
    code: null,
    partly: true,
  },
  {
    what: 'does as it is told, and its answers are lost',
    make: ({ sandbox }) =>
      sandbox.setFaults(
        ['POST', 'PATCH', 'DELETE'].map((method) => ({ fault: 'reset', applied: true, match: { method } })),
      ),
    code: 'BROKER_CONNECTION_LOST',
    partly: true,
  },
  {
    what: 'serves reads, and no writes (503)',
    make: ({ sandbox }) =>
      sandbox.setFaults(['POST', 'PATCH', 'DELETE'].map((method) => ({ fault: 'http-503', match: { method } }))),
    code: 'BROKER_UNAVAILABLE',
    partly: true,
  },
  {
    what: 'fails every third request, each time otherwise',
    make: ({ sandbox }) =>
      sandbox.setFaults([
        { fault: 'http-503', rate: 0.1 },
        { fault: 'reset', rate: 0.1, applied: true },
        { fault: 'half-body', rate: 0.1 },
        { fault: 'junk-json', rate: 0.1 },
      ]),
    code: null,
    partly: true,
  },
  {
    what: 'ends every SEMP session at once',
    make: ({ sandbox }) => {
      const timer = setInterval(() => sandbox.sessions.clear(), 5)
      endings.push(() => clearInterval(timer))
    },
    code: null,
    partly: true,
  },
]
const TLS: Row = {
  what: 'shows a certificate that expired, until it is renewed',
  make: async ({ sandbox, proxy }) => {
    const expired = await authority.issue({ names: ['localhost'], notAfter: new Date(Date.now() - 60_000) })
    const server = createTlsServer(expired, (socket) => socket.on('error', () => undefined).destroy())
    server.on('tlsClientError', () => undefined)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    proxy.targetPort = (server.address() as AddressInfo).port
    proxy.resetAll()
    endings.push(async () => {
      proxy.targetPort = sandbox.port
      proxy.resetAll()
      const closed = once(server, 'close')
      server.close()
      await closed
    })
  },
  code: 'BROKER_TLS_UNTRUSTED',
}
/** `healthy` is broker 0. */
const SICK = [TLS, ...ROWS].map((row, position) => ({ ...row, index: position + 1 }))

const endings: (() => unknown)[] = []
let authority: Awaited<ReturnType<typeof createCertificateAuthority>>
let world: RunningMesh
const before = new Map<number, object>()
const during = new Map<number, object>()
/** Of the healthy broker while the others were sick. */
let enabledMeanwhile: readonly unknown[] = []
let healthy: ReturnType<typeof snapshotOf>
const codes = new Map<string, Set<string>>()

const NEXT_SECRET = 'next-secret-of-rotated-Qm77'
const BEFORE = ['same', 'drifted', 'revoked', 'rotated'].map((id) => client(id))
const AFTER: readonly PortalRegistration[] = [
  client('same'),
  client('drifted'),
  client('revoked', { accessRequests: [accessRequest({ state: 'REVOKED' })] }),
  client('rotated', { credentials: [suppliedCredential('main', keyOf('rotated'), NEXT_SECRET)] }),
  client('new'),
]
const LEGACY = { enabled: true, password: 'the-password-of-a-legacy-client' }

/** All faults at once, each on a broker of its own, while the same work is waiting for each of them. */
beforeAll(async () => {
  authority = await createCertificateAuthority('a test')
  const tls = await authority.issue({ names: ['localhost'] })
  world = await startRunningMesh({
    brokers: [{}, { tls }, ...ROWS.map(() => ({}))],
    // Sweeps of so many brokers in each second would be all that a small machine does.
    env: { KEYMESH_SWEEP_CRON: '*/5 * * * * *' },
    broker: (broker, index) => {
      const { management } = broker
      if (index !== 1 || management === null) return broker
      const url = management.url.replace('127.0.0.1', 'localhost')
      return { ...broker, management: { ...management, url, caCertificate: authority.certificate } }
    },
  })
  await world.import(ordersPortal(world.brokers, BEFORE))
  const { enqueue } = await world.start()
  const all = world.brokers.map((_, index) => index)
  await world.settled(all)

  for (const { index, make } of SICK) {
    const sandbox = world.sandbox(index)
    sandbox.state.clientUsernames.put('legacy', LEGACY)
    before.set(index, snapshotOf(sandbox))
    await make({ sandbox, proxy: world.proxy(index) })
  }
  const { state } = world.sandbox(0)
  state.clientUsernames.remove(keyOf('drifted'))
  state.aclProfiles.addMember('drifted', 'publishTopicExceptions', 'smf,payroll/>')
  await world.import({ registrations: AFTER })
  for (const { id } of AFTER) await enqueue.registration(world.mesh.context.accountId, id)
  await world.settled([0])
  // What was changed by hand is no lag: its run may still be under way.
  await until('the healthy broker is as it should be', () => {
    const isHealed = state.clientUsernames.has(keyOf('drifted'))
    const topics = state.aclProfiles.members('drifted', 'publishTopicExceptions')
    return isHealed && topics.length === 1 ? true : null
  })
  healthy = snapshotOf(world.sandbox(0))
  enabledMeanwhile = enabledOn(world.sandbox(0))
  await until('each fault shows', async () => {
    await collectCodes()
    const missing = SICK.filter(({ index, code }) => code !== null && !codesOf(index).has(code))
    return missing.length === 0 ? true : null
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(SICK.map(({ what, index }) => [what, [...codesOf(index)]]))}`)
  })
  for (const { index } of SICK) during.set(index, snapshotOf(world.sandbox(index)))

  for (const { index } of SICK) {
    await world.proxy(index).set({ kind: 'none' })
    world.sandbox(index).setFaults([])
  }
  for (const end of endings.splice(0)) await end()
  await world.settled(all)
}, 300_000)
afterAll(async () => {
  for (const end of endings.splice(0)) await end()
  await world[Symbol.asyncDispose]()
})

const codesOf = (index: number): ReadonlySet<string> => codes.get(String(world.brokers[index]?.id)) ?? new Set()

async function collectCodes(): Promise<void> {
  const { db } = world.mesh.context
  const status = await db.selectFrom('broker_status').select(['broker_id', 'error_code']).execute()
  const runs = await db.selectFrom('runs').select(['broker_id', 'error_code']).execute()
  for (const { broker_id: broker, error_code: code } of [...status, ...runs]) {
    if (code !== null && broker !== null) codes.set(broker, (codes.get(broker) ?? new Set()).add(code))
  }
}

const enabledOn = ({ state }: SandboxBroker): readonly unknown[] =>
  AFTER.map(({ id }) => state.clientUsernames.get(keyOf(id))?.enabled)
const passwordOf = (id: string): string => (id === 'rotated' ? NEXT_SECRET : givenSecretOf(id))

describe('while other brokers are sick', () => {
  it('a healthy one is worked on at once', () => {
    expect(enabledMeanwhile).toEqual([true, true, false, true, true])
    expect(healthy.clientUsernames[keyOf('rotated')]?.password === NEXT_SECRET).toBe(true)
    expect(healthy.aclProfiles.drifted?.publish).toEqual(['smf,orders/*/cancel'])
  })
})

describe('a broker that', () => {
  it.each(SICK.filter(({ partly }) => partly !== true))(
    '$what: nothing is done there, nothing is lost',
    ({ index }) => {
      expect(during.get(index)).toEqual(before.get(index))
    },
  )

  it.each(SICK)('$what: all is done soon after it is well again', ({ index }) => {
    const sandbox = world.sandbox(index)
    const { state } = sandbox
    expect(enabledOn(sandbox)).toEqual([true, true, false, true, true])
    for (const id of ['same', 'drifted', 'rotated', 'new']) {
      expect(state.passwordOf(keyOf(id)) === passwordOf(id)).toBe(true)
      expect(state.aclProfiles.members(id, 'publishTopicExceptions')).toEqual(['smf,orders/*/cancel'])
      expect(state.aclProfiles.members(id, 'subscribeTopicExceptions')).toHaveLength(3)
      expect(state.queues.members(objectsOf(sandbox, id).queue, 'subscriptions')).toHaveLength(3)
    }
    expect(state.queues.size).toBe(5)
    expect(state.clientUsernames.get('legacy')?.enabled).toBe(true)
    expect(state.passwordOf('legacy')).toBe(LEGACY.password)
  })
})

describe('after all faults', () => {
  it('no secret is anywhere but on its own username', () => world.expectSecretsInPlace())

  it('nothing is in conflict, and no drift is left open', async () => {
    expect(await world.mesh.drift({ openOnly: true })).toEqual([])
    expect((await world.mesh.drift()).filter(({ kind }) => kind === 'conflict')).toEqual([])
  })
})
