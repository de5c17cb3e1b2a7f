import { describe, expect, it } from 'vitest'
import {
  createSolaceBroker,
  type SolaceBroker,
  type SolaceBrokerOptions,
} from '../../src/brokers/solace/solace-broker.ts'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import type { ManagementSettings } from '../../src/domain/catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxBroker, SandboxBrokerOptions } from '../../src/sandbox/sandbox-broker.ts'
import { brokerPortContract } from './broker-port-contract.ts'
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, TRUSTED_CA } from './tls-fixtures.ts'

const settingsOf = (broker: SandboxBroker, changes: Partial<ManagementSettings> = {}): ManagementSettings => ({
  url: broker.url,
  msgVpnName: broker.msgVpnName,
  username: broker.username,
  maxConcurrentRequests: 8,
  requestTimeoutMs: 10_000,
  ...changes,
})

async function start(
  options: SandboxBrokerOptions = {},
  changes: Partial<ManagementSettings> = {},
  clientOptions: SolaceBrokerOptions = {},
): Promise<AsyncDisposable & { readonly broker: SandboxBroker; readonly port: SolaceBroker }> {
  const sandbox = await startSandbox({ brokers: [{ msgVpn: { authenticationBasicType: 'internal' }, ...options }] })
  const broker = sandbox.broker()
  const url = options.tls === undefined ? broker.url : broker.url.replace('127.0.0.1', 'localhost')
  const port = createSolaceBroker(settingsOf(broker, { url, ...changes }), new Secret(broker.password), {
    repeatDelayMs: 1,
    ...clientOptions,
  })
  return {
    broker,
    port,
    async [Symbol.asyncDispose]() {
      await port.close()
      await sandbox.close()
    },
  }
}

const contractSubject = async (
  options: SandboxBrokerOptions,
  changes: Partial<ManagementSettings> = {},
  clientOptions: SolaceBrokerOptions = {},
) => {
  const started = await start(options, changes, clientOptions)
  const { broker, port } = started
  return {
    port,
    hands: {
      removeMsgVpn: () => broker.state.removeMsgVpn(),
      passwordOf: (clientUsername: string) => broker.state.passwordOf(clientUsername),
      setQueuedMessages: (queueName: string, count: number) =>
        broker.state.setQueued(queueName, { messages: count, bytes: count * 100 }),
      limitConnections: (clientProfile: string, limit: number) =>
        broker.state.clientProfiles.change(clientProfile, { maxConnectionCountPerClientUsername: limit }),
      connect: (clientUsername: string) => void broker.state.connect(clientUsername),
      writes: () => broker.requests.writes,
    },
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  }
}

brokerPortContract('the Solace adapter', () => contractSubject({ sessions: { slots: 1 } }))

const MISBEHAVING: SandboxBrokerOptions = {
  paging: { shortPageRate: 0.5, emptyPageRate: 0.4 },
  faults: [
    { fault: 'http-503', rate: 0.1 },
    { fault: 'http-529', rate: 0.05 },
    { fault: 'reset', rate: 0.1, match: { method: 'GET' } },
  ],
}

brokerPortContract('the Solace adapter, on a broker that misbehaves', () =>
  contractSubject(MISBEHAVING, {}, { maxRepeats: 20 }),
)

brokerPortContract('the Solace adapter, over TLS', () =>
  contractSubject({ tls: { key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE } }, { caCertificate: TRUSTED_CA }),
)

const QUEUE = { kind: 'queue', name: 'q' } as const
const object = (ref: Pick<BrokerObject, 'kind' | 'name'>): BrokerObject => ({ ...ref, attributes: {}, members: {} })

describe('the Solace adapter on a simulated broker', () => {
  it('goes on after its session ended', async () => {
    let nowMs = 0
    await using started = await start({ sessions: { slots: 1, idleTimeoutMs: 1_000, nowMs: () => nowMs } })
    const { broker, port } = started
    await port.facts()
    nowMs = 60_000
    await Promise.all(Array.from({ length: 6 }, () => port.get(QUEUE)))
    expect(broker.sessions.size).toBe(1)
  })

  it.each([
    ['2.30', true],
    ['2.31', false],
    ['2.9', true],
    ['2.49', false],
    ['3.0', false],
  ])('SEMP %s: changes require disabling is %s', async (sempVersion, requiresDisable) => {
    await using started = await start({ sempVersion })
    expect(await started.port.facts()).toMatchObject({ sempVersion, requiresDisable })
  })

  it('names the scope that a client profile needs', async () => {
    await using started = await start({ sempScope: 'vpn' })
    await expect(started.port.create(object({ kind: 'clientProfile', name: 'p' }), null)).rejects.toMatchObject({
      code: 'UNAUTHORIZED_SCOPE',
      fate: 'stop',
      hint: expect.stringContaining('global/mesh-manager'),
    })
  })

  it.each(['http-503', 'http-401', 'reset', 'half-body', 'junk-json', 'timeout'] as const)(
    'never takes %s for absent',
    async (fault) => {
      await using started = await start({}, { requestTimeoutMs: 500 })
      const { broker, port } = started
      await port.facts()
      await port.create(object(QUEUE), null)
      broker.setFaults([{ fault, match: { method: 'GET' } }])
      for (const read of [() => port.get(QUEUE), () => port.members(QUEUE), () => port.queuedMessages('q')]) {
        const outcome = await read().then(
          (value) => `answered ${value}`,
          (error: unknown) => error,
        )
        expect(outcome).toMatchObject({ name: 'KeymeshError', code: expect.not.stringMatching(/NOT_FOUND/) })
      }
    },
  )

  it('does not send a create again when nobody knows what came of it; the next one says that it is there', async () => {
    await using started = await start()
    const { broker, port } = started
    await port.facts()
    broker.setFaults([{ fault: 'reset', applied: true, times: 1, match: { method: 'POST' } }])
    broker.requests.reset()
    await expect(port.create(object(QUEUE), null)).rejects.toMatchObject({ code: 'BROKER_CONNECTION_LOST' })
    expect(broker.requests.writes).toBe(1)
    await expect(port.create(object(QUEUE), null)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  })

  it('asks for connections once a minute while no client profile limits them, and once a login where one does', async () => {
    await using started = await start({ paging: { shortPageRate: 0, emptyPageRate: 0 } })
    const { broker, port } = started
    broker.state.clientUsernames.put('one')
    await port.facts()
    broker.requests.reset()
    for (let count = 0; count < 5; count += 1) expect(await port.connections('one')).toBeNull()
    expect(broker.requests.snapshot().byOperation).toEqual({ 'list clientProfiles': 1 })
    await using limited = await start({ paging: { shortPageRate: 0, emptyPageRate: 0 } })
    limited.broker.state.clientUsernames.put('one')
    limited.broker.state.clientProfiles.change('default', { maxConnectionCountPerClientUsername: 1000 })
    limited.broker.requests.reset()
    for (let count = 0; count < 2; count += 1) expect(await limited.port.connections('one')).toMatchObject({ open: 0 })
    expect(limited.broker.requests.snapshot().byOperation).toEqual({
      'list clientProfiles': 1,
      'get clientUsernames': 2,
      'list clients': 2,
    })
  })

  it.each([
    ['SMF', { serviceSmfMaxConnectionCountPerClientUsername: 3 }, 3],
    ['web transport', { serviceWebMaxConnectionCountPerClientUsername: 2 }, 2],
    ['SMF, which is off', { serviceSmfMaxConnectionCountPerClientUsername: 0 }, 7],
    ['all', { maxConnectionCountPerClientUsername: 0 }, 0],
  ])('takes the smallest limit that a client profile has: of %s', async (_, limits, limit) => {
    await using started = await start()
    const { broker, port } = started
    broker.state.clientProfiles.change('default', { maxConnectionCountPerClientUsername: 7, ...limits })
    broker.state.clientUsernames.put('one')
    expect(await port.connections('one')).toEqual({ open: 0, limit })
  })

  it('reads a kind by pages of 100, a profile by two listings and a queue by one', async () => {
    await using started = await start({ paging: { shortPageRate: 0, emptyPageRate: 0 } })
    const { broker, port } = started
    for (let index = 0; index < 250; index += 1) broker.state.aclProfiles.put(`acl-${index}`)
    broker.state.queues.put('q')
    await port.facts()
    broker.requests.reset()
    for await (const _page of port.list('aclProfile'));
    expect(broker.requests.snapshot().byOperation).toEqual({ 'list aclProfiles': 3 })
    await port.members({ kind: 'aclProfile', name: 'acl-1' })
    await port.members(QUEUE)
    expect(broker.requests.snapshot().byOperation).toEqual({
      'list aclProfiles': 3,
      'list publishTopicExceptions': 1,
      'list subscribeTopicExceptions': 1,
      'list subscriptions': 1,
    })
  })
})
