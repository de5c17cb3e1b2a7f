import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { brokerPortContract } from './broker-port-contract.ts'
import { type GivenBroker, givenBroker, newPrefix, objectsNamed, subjectOn } from './given-broker.ts'

let sandbox: Sandbox
let broker: GivenBroker
let before: string
beforeAll(async () => {
  sandbox = await startSandbox({ brokers: [{ msgVpn: { authenticationBasicType: 'internal' } }] })
  const { url, msgVpnName, username, password, state } = sandbox.broker()
  const found = givenBroker({
    KEYMESH_TEST_SEMP_URL: url,
    KEYMESH_TEST_SEMP_VPN: msgVpnName,
    KEYMESH_TEST_SEMP_USERNAME: username,
    KEYMESH_TEST_SEMP_PASSWORD: password,
  })
  if (found === null) throw new Error('no broker was given')
  broker = found
  state.queues.put('queue/1')
  state.aclProfiles.put('acl-1')
  state.clientUsernames.put('user-1')
  before = snapshot()
})
afterAll(() => sandbox?.close())

function snapshot(): string {
  const { state } = sandbox.broker()
  const tables = [state.queues, state.aclProfiles, state.clientProfiles, state.clientUsernames]
  return JSON.stringify(tables.map((table) => [...table.names()].sort().map((name) => [name, table.get(name)])))
}

describe('a broker that the tests were given', () => {
  const prefix = newPrefix()
  brokerPortContract('the Solace adapter', () => subjectOn(broker), { prefix, simulated: false })

  it('is left as it was', async () => {
    expect(await objectsNamed(broker, prefix)).toEqual([])
    expect(snapshot()).toBe(before)
  })

  it('is left as it was by a test that fails in the middle', async () => {
    const subject = await subjectOn(broker)
    await subject.port.facts()
    await subject.port.create({ kind: 'aclProfile', name: `${prefix}left`, attributes: {}, members: {} }, null)
    await expect(
      subject.port.create({ kind: 'aclProfile', name: 'acl-1', attributes: {}, members: {} }, null),
    ).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
    await subject[Symbol.asyncDispose]()
    expect(snapshot()).toBe(before)
  })

  it.each(['VPN', 'USERNAME', 'PASSWORD'])('needs %s', (missing) => {
    const env = Object.fromEntries(
      ['URL', 'VPN', 'USERNAME', 'PASSWORD']
        .filter((name) => name !== missing)
        .map((name) => [`KEYMESH_TEST_SEMP_${name}`, 'https://broker.example.org']),
    )
    expect(() => givenBroker(env)).toThrow(`KEYMESH_TEST_SEMP_${missing} is not`)
  })

  it('is none without its address', () => expect(givenBroker({ KEYMESH_TEST_SEMP_URL: '' })).toBeNull())
})
