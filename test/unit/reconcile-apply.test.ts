import { describe, expect, it } from 'vitest'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { type ApplyDependencies, apply, supersededError } from '../../src/reconcile/apply.ts'
import type { Action, Step } from '../../src/reconcile/plan.ts'
import { FakeBroker, type FakeBrokerOptions } from '../helpers/fake-broker.ts'

const object = (
  kind: BrokerObject['kind'],
  name: string,
  attributes: BrokerObject['attributes'] = {},
): BrokerObject => ({
  kind,
  name,
  attributes,
  members: {},
})
const create = (created: BrokerObject, credentialVersion?: number): Action => ({
  type: 'create',
  object: created,
  ...(credentialVersion === undefined ? {} : { credentialVersion }),
  reason: 'not-created-yet',
})
const add = (member: string): Action => ({
  type: 'add-member',
  kind: 'aclProfile',
  name: 'app',
  memberKind: 'publishTopicExceptions',
  member,
  reason: 'not-created-yet',
})
const run = (actions: readonly Action[]): readonly Step[] =>
  actions.map((action) => ({ action, disruptive: false, decision: 'run' }))
const moveProfile = (disables: readonly string[]): Action => ({
  type: 'update',
  kind: 'clientUsername',
  name: 'key-1',
  changes: { aclProfileName: { before: 'default', after: 'app' } },
  disables,
  reason: 'changed-in-catalogue',
})
const failure = (code: string): KeymeshError => new KeymeshError({ code, fate: 'stop', message: code })
const createUser = create(object('clientUsername', 'key-1', { enabled: true, aclProfileName: 'app' }), 1)

async function setUp(options: FakeBrokerOptions = {}) {
  const broker = new FakeBroker(options)
  await broker.facts()
  let checks = 0
  const dependencies: ApplyDependencies = {
    broker,
    beforeWrite: async () => {
      checks += 1
    },
    secret: async (name, version) => new Secret(`${name}/${version}`),
  }
  return { broker, dependencies, checks: () => checks }
}

describe('apply', () => {
  it('runs level after level whatever the order of the steps, and asks before each write', async () => {
    const { broker, dependencies, checks } = await setUp()
    const actions = [createUser, add('a'), add('b'), create(object('aclProfile', 'app'))]
    const applied = await apply(run(actions), dependencies)
    expect(applied).toMatchObject({ error: null, notCreated: [] })
    expect(applied.executed).toHaveLength(4)
    expect(broker.writes.map(({ operation }) => operation)).toEqual(['create', 'addMember', 'addMember', 'create'])
    expect(broker.passwords.get('key-1')).toBe('key-1/1')
    expect(checks()).toBe(4)
  })

  it('runs the steps of one level side by side', async () => {
    const { broker, dependencies } = await setUp()
    let waiting = 0
    let release = (): void => undefined
    const both = new Promise<void>((resolve) => {
      release = resolve
    })
    const beforeWrite = async (): Promise<void> => {
      waiting += 1
      if (waiting === 2) release()
      await both
    }
    broker.put({ kind: 'aclProfile', name: 'app' })
    await apply(run([add('a'), add('b')]), { ...dependencies, beforeWrite })
    expect(broker.peek({ kind: 'aclProfile', name: 'app' })?.members.publishTopicExceptions).toEqual(['a', 'b'])
  })

  it('leaves held steps alone', async () => {
    const { broker, dependencies } = await setUp()
    const held: Step = { action: createUser, disruptive: true, decision: 'held', because: 'so' }
    expect(await apply([held], dependencies)).toEqual({ executed: [], notCreated: [], sent: [], error: null })
    expect(broker.writes).toEqual([])
  })

  it('finishes the level that fails and runs no later one', async () => {
    const { broker, dependencies } = await setUp()
    broker.put({ kind: 'aclProfile', name: 'app' })
    const error = failure('SEMP_FAILED')
    broker.failNext({ error, on: 'addMember' })
    const applied = await apply(run([add('a'), add('b'), createUser]), dependencies)
    expect(applied.error).toBe(error)
    expect(applied.executed).toEqual([add('b')])
    expect(broker.writes.map(({ operation }) => operation)).toEqual(['addMember'])
  })

  it('says which objects were certainly not created', async () => {
    const { broker, dependencies } = await setUp()
    broker.put({ kind: 'aclProfile', name: 'app' })
    const names = ['taken', 'unknown', 'fine']
    const users = names.map((name) => create(object('clientUsername', name, { aclProfileName: 'app' }), 1))
    broker.put({ kind: 'clientUsername', name: 'taken' })
    broker.failNext({
      error: failure('BROKER_TIMEOUT'),
      on: 'create',
      ref: { kind: 'clientUsername', name: 'unknown' },
    })
    const later = create(object('queue', 'later'))
    const applied = await apply(run([...users, later]), dependencies)
    expect(applied.sent).toEqual(names.map((name) => ({ kind: 'clientUsername', name })))
    expect(applied.notCreated).toEqual([
      object('clientUsername', 'taken', { aclProfileName: 'app' }),
      object('queue', 'later'),
    ])
  })

  it('sends nothing when the write is refused before it goes out', async () => {
    const { broker, dependencies } = await setUp()
    const superseded = supersededError('registration x')
    const beforeWrite = () => Promise.reject(superseded)
    const applied = await apply(run([create(object('aclProfile', 'app'))]), { ...dependencies, beforeWrite })
    expect(applied).toMatchObject({ executed: [], sent: [], error: superseded, notCreated: [{ name: 'app' }] })
    expect(broker.writes).toEqual([])
  })

  it('sends nothing when the secret moved on', async () => {
    const { broker, dependencies } = await setUp()
    broker.put({ kind: 'aclProfile', name: 'app' })
    const secret = () => Promise.reject(supersededError('credential key-1'))
    expect((await apply(run([createUser]), { ...dependencies, secret })).notCreated).toHaveLength(1)
    expect(broker.writes).toEqual([])
  })

  it('writes a password alone, without any attribute', async () => {
    const { broker, dependencies } = await setUp()
    broker.put({ kind: 'clientUsername', name: 'key-1', attributes: { enabled: true } }, 'old')
    const action: Action = {
      type: 'set-password',
      kind: 'clientUsername',
      name: 'key-1',
      credentialVersion: 5,
      reason: 'password-reapply-requested',
    }
    await apply(run([action]), dependencies)
    expect(broker.writes).toMatchObject([{ operation: 'update', attributes: {}, withPassword: true }])
    expect(broker.passwords.get('key-1')).toBe('key-1/5')
  })
})

describe('apply on a broker of SEMP 2.30, which changes some attributes only while the object is off', () => {
  async function withUser(sempVersion: string) {
    const subject = await setUp({ sempVersion })
    subject.broker.put({ kind: 'aclProfile', name: 'app' })
    subject.broker.put({ kind: 'clientUsername', name: 'key-1', attributes: { enabled: true } })
    const attributes = () => subject.broker.peek({ kind: 'clientUsername', name: 'key-1' })?.attributes
    return { ...subject, attributes }
  }

  it('switches off, changes and switches on again, asking before each', async () => {
    const { broker, dependencies, checks } = await withUser('2.30')
    const applied = await apply(run([moveProfile(['enabled'])]), dependencies)
    expect(applied.error).toBeNull()
    expect(broker.writes.map(({ attributes }) => attributes)).toEqual([
      { enabled: false },
      { aclProfileName: 'app' },
      { enabled: true },
    ])
    expect(checks()).toBe(3)
  })

  it('is one write where the broker does not ask for it', async () => {
    const { broker, dependencies } = await withUser('2.41')
    await apply(run([moveProfile([])]), dependencies)
    expect(broker.writes.map(({ attributes }) => attributes)).toEqual([{ aclProfileName: 'app' }])
  })

  it('switches on again when the change is refused: clients are not locked out', async () => {
    const { broker, dependencies, attributes } = await withUser('2.30')
    const error = failure('SEMP_INVALID_PARAMETER')
    broker.failNext({ error, on: 'update', after: 1 })
    expect(await apply(run([moveProfile(['enabled'])]), dependencies)).toMatchObject({ executed: [], error })
    expect(attributes()).toMatchObject({ enabled: true, aclProfileName: 'default' })
  })

  it('switches on again when work is told to stop in between', async () => {
    const { broker, dependencies, attributes } = await withUser('2.30')
    const controller = new AbortController()
    let writes = 0
    const beforeWrite = async (): Promise<void> => {
      writes += 1
      if (writes === 2) controller.abort(new Error('stop'))
    }
    const { error } = await apply(run([moveProfile(['enabled'])]), {
      ...dependencies,
      beforeWrite,
      signal: controller.signal,
    })
    expect(error).toMatchObject({ code: 'ABORTED' })
    expect(broker.writes).toHaveLength(2)
    expect(attributes()).toMatchObject({ enabled: true })
  })

  it('leaves the switch to the next holder when the lease is lost in between', async () => {
    const { broker, dependencies } = await withUser('2.30')
    let writes = 0
    const beforeWrite = async (): Promise<void> => {
      writes += 1
      if (writes > 1) throw supersededError('registration x')
    }
    const { error } = await apply(run([moveProfile(['enabled'])]), { ...dependencies, beforeWrite })
    expect(error).toMatchObject({ code: 'SUPERSEDED' })
    expect(broker.writes).toHaveLength(1)
  })
})
