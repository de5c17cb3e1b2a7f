import { describe, expect, it } from 'vitest'
import type { BrokerObject, ObjectKind, ObjectRef } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'
import type { Pair } from '../../src/reconcile/store-port.ts'
import { findSuspects, type SweepProgress } from '../../src/reconcile/sweep.ts'
import { MemoryWorld } from '../helpers/memory-world.ts'
import {
  accessRequest,
  credential,
  DAY_MS,
  GUARANTEED,
  PAIR,
  pairOf,
  registrationOf,
  SETTINGS,
} from '../helpers/sample.ts'

const guaranteed = (pair: Pair) =>
  registrationOf(pair, {
    accessRequests: [accessRequest('request-1', { classOfServicePolicy: GUARANTEED })],
    credentials: [credential(`key-of-${pair.registrationId}`), credential(`other-of-${pair.registrationId}`)],
  })

/** Registrations that are in sync on the broker. */
async function inSync(count: number, options: ConstructorParameters<typeof MemoryWorld>[0] = {}) {
  const world = new MemoryWorld(options)
  const pairs = Array.from({ length: count }, (_, index) => pairOf(`app-${String(index).padStart(3, '0')}`))
  for (const pair of pairs) {
    world.store.put(pair, { registration: guaranteed(pair) })
    await world.run(pair)
  }
  world.broker.writes.length = 0
  world.broker.calls.clear()
  return { world, pairs }
}

async function suspectsOf(world: MemoryWorld, broker: BrokerPort = world.broker): Promise<readonly string[]> {
  const dependencies = { broker, sweepStore: world.store, settings: SETTINGS }
  const { suspects } = await findSuspects(dependencies, { broker: PAIR })
  const found: string[] = []
  for await (const registrationId of suspects) found.push(registrationId)
  return found
}

const user = (app: string): ObjectRef => ({ kind: 'clientUsername', name: `key-of-${app}` })
const acl = (app: string): ObjectRef => ({ kind: 'aclProfile', name: app })
const queueOf = (world: MemoryWorld): ObjectRef => {
  const key = world.broker.keys().find((each) => each.startsWith('queue/'))
  return { kind: 'queue', name: key?.slice('queue/'.length) ?? '' }
}
function withMember(
  world: MemoryWorld,
  ref: ObjectRef,
  kind: keyof BrokerObject['members'],
  members: readonly string[],
) {
  const object = world.broker.peek(ref)
  if (object !== undefined) world.broker.put({ ...object, members: { ...object.members, [kind]: members } })
}

describe('a sweep of a broker in sync', () => {
  it('writes nothing and reads each kind by pages, members of our own objects only, no object alone', async () => {
    const { world } = await inSync(5)
    world.broker.put({ kind: 'aclProfile', name: 'somebody' })
    world.broker.put({ kind: 'queue', name: 'orders' })
    const result = await world.sweep()
    expect(result).toEqual({
      compared: 5,
      loginsProbed: 0,
      loginsRefused: 0,
      objectsRead: 2 + 7 + 11 + 6,
      inSync: 0,
      changed: 0,
      waiting: 0,
      busy: 0,
      failed: 0,
    })
    expect(world.broker.writes).toEqual([])
    expect(Object.fromEntries(world.broker.calls)).toEqual({ facts: 1, list: 4, members: 10 })
    expect(world.store.runs.filter(({ run }) => run.trigger === 'sweep')).toEqual([])
  })

  it('follows short pages to the end', async () => {
    const { world } = await inSync(5, { pageSize: 2, chunkSize: 2 })
    expect(await suspectsOf(world)).toEqual([])
    world.broker.drop(user('app-004'))
    expect(await suspectsOf(world)).toEqual(['app-004'])
  })

  it('takes an empty page for what it is: not the end, and no absence', async () => {
    const { world } = await inSync(3)
    expect(await suspectsOf(world, withEmptyPages(world.broker))).toEqual([])
  })

  it('reports its progress', async () => {
    const { world } = await inSync(3, { chunkSize: 2 })
    world.broker.drop(user('app-001'))
    const progress: SweepProgress[] = []
    await world.sweep({}, { onProgress: (each) => progress.push(each) })
    expect(progress.filter(({ phase }) => phase === 'reading the store').map(({ done }) => done)).toEqual([2, 3])
    expect(progress.at(-1)).toEqual({ phase: 'reconciling', done: 1 })
  })
})

/** Empty pages before, between and after the others, as a broker may send them. */
function withEmptyPages(broker: BrokerPort): BrokerPort {
  async function* list(kind: ObjectKind): AsyncGenerator<readonly BrokerObject[]> {
    for await (const page of broker.list(kind)) {
      yield []
      for (const object of page) {
        yield [object]
        yield []
      }
    }
  }
  return Object.assign(Object.create(broker) as BrokerPort, {
    list,
    facts: () => broker.facts(),
    members: (ref: ObjectRef) => broker.members(ref),
  })
}

describe('suspects of a sweep', () => {
  const suspicious: Readonly<Record<string, (world: MemoryWorld) => void>> = {
    'a missing username': ({ broker }) => broker.drop(user('app-001')),
    'a missing ACL profile': ({ broker }) => broker.drop(acl('app-001')),
    'a changed attribute': ({ broker }) => broker.tamper(user('app-001'), { enabled: false }),
    'an attribute that opens a way round the queue permission': ({ broker }) =>
      broker.tamper(user('app-001'), { subscriptionManagerEnabled: true }),
    'an exception that somebody added': (world) =>
      withMember(world, acl('app-001'), 'publishTopicExceptions', ['parcel/*/scanned', 'everything/*']),
    'an exception in MQTT syntax that somebody added': (world) =>
      withMember(world, acl('app-001'), 'subscribeTopicExceptionsMqtt', ['#']),
    'an exception that somebody removed': (world) => withMember(world, acl('app-001'), 'subscribeTopicExceptions', []),
  }
  it.each(Object.entries(suspicious))('%s', async (_, tamper) => {
    const { world } = await inSync(3)
    tamper(world)
    expect(await suspectsOf(world)).toEqual(['app-001'])
    expect(await world.sweep()).toMatchObject({ compared: 3, changed: 1, failed: 0 })
    expect(world.broker.writes.length).toBeGreaterThan(0)
    expect(await suspectsOf(world)).toEqual([])
  })

  it('a changed queue', async () => {
    const { world } = await inSync(1)
    world.broker.tamper(queueOf(world), { egressEnabled: false })
    withMember(world, queueOf(world), 'subscriptions', [])
    expect(await world.sweep()).toMatchObject({ changed: 1 })
    expect(await world.sweep()).toMatchObject({ changed: 0, waiting: 0 })
  })

  it('a changed shared profile makes one registration a suspect, not all', async () => {
    const { world } = await inSync(4)
    world.broker.tamper(
      { kind: 'clientProfile', name: 'keymesh-send-receive' },
      { allowBridgeConnectionsEnabled: true },
    )
    expect(await suspectsOf(world)).toHaveLength(1)
    expect(await world.sweep()).toMatchObject({ changed: 1 })
    expect(world.broker.writes).toHaveLength(1)
  })

  it('nothing that is not ours, whatever its name', async () => {
    const { world } = await inSync(2)
    world.broker.put({ kind: 'clientUsername', name: 'key-of-somebody', attributes: { enabled: true } })
    world.broker.put({ kind: 'queue', name: 'keymesh-of-somebody' })
    world.broker.put({ kind: 'clientProfile', name: 'keymesh-receive' })
    expect(await suspectsOf(world)).toEqual([])
    await world.sweep()
    expect(world.broker.writes).toEqual([])
  })

  it('an attribute that Keymesh does not set makes no suspect', async () => {
    const { world } = await inSync(2)
    world.broker.tamper(queueOf(world), { maxBindCount: 7 })
    expect(await suspectsOf(world)).toEqual([])
  })

  it('a registration that lags, and each only once', async () => {
    const { world } = await inSync(3)
    const pair = pairOf('app-002')
    world.store.put(pair, { registration: guaranteed(pair) })
    world.broker.drop(user('app-002'))
    world.broker.drop(user('app-000'))
    expect(await suspectsOf(world)).toEqual(['app-000', 'app-002'])
  })

  it('a password that an operator asked for while a run was under way', async () => {
    const { world } = await inSync(2)
    const entry = world.store.ledger(PAIR).find(({ object }) => object.name === user('app-001').name)
    if (entry === undefined) throw new Error('no entry')
    world.store.setLedger(PAIR, { ...entry, passwordDue: true })
    expect(await suspectsOf(world)).toEqual(['app-001'])
    await world.sweep()
    expect(world.broker.writes).toMatchObject([{ operation: 'update', withPassword: true }])
    expect(await suspectsOf(world)).toEqual([])
  })

  it('a withdrawn username that somebody enabled again, of a registration that stays or goes', async () => {
    const { world } = await inSync(3)
    const staying = pairOf('app-001')
    world.store.put(staying, {
      registration: { ...guaranteed(staying), credentials: [credential('other-of-app-001')] },
    })
    const going = pairOf('app-002')
    world.store.put(going, { registration: registrationOf(going, { accessRequests: [], credentials: [] }) })
    for (const pair of [staying, going]) await world.run(pair, { settings: { allowDisruptive: true } })
    expect(await suspectsOf(world)).toEqual([])
    for (const app of ['app-001', 'app-002']) world.broker.tamper(user(app), { enabled: true })
    expect(await suspectsOf(world)).toEqual(['app-001', 'app-002'])
    world.broker.writes.length = 0
    await world.sweep()
    expect(world.broker.writes.map(({ name, attributes }) => ({ name, attributes }))).toEqual([
      { name: 'key-of-app-001', attributes: { enabled: false } },
      { name: 'key-of-app-002', attributes: { enabled: false } },
    ])
    expect(world.store.runs.at(-1)?.run.drift).toMatchObject([{ action: 'repaired', drift: { kind: 'changed' } }])
    expect(await suspectsOf(world)).toEqual([])
  })

  it('a withdrawn registration no longer once its objects are gone', async () => {
    const { world } = await inSync(1)
    const pair = pairOf('app-000')
    world.store.put(pair, { registration: registrationOf(pair, { accessRequests: [], credentials: [] }) })
    await world.run(pair)
    world.nowMs += 2 * DAY_MS
    await world.run(pair)
    expect(world.store.ledger(PAIR).map(({ object }) => object.kind)).toEqual(['clientProfile'])
    expect(await world.sweep()).toMatchObject({ compared: 0 })
  })
})

describe('a sweep of a sick broker', () => {
  const failure = (fate: 'retry' | 'stop') => new KeymeshError({ code: 'SICK', fate, message: 'sick' })

  it('stops at a listing that fails: nothing is taken for missing', async () => {
    const { world } = await inSync(3, { pageSize: 1 })
    world.broker.failNext({ error: failure('retry'), on: 'list', after: 6 })
    await expect(world.sweep()).rejects.toThrow('sick')
    expect(world.broker.writes).toEqual([])
    expect(world.store.runs.filter(({ run }) => run.trigger === 'sweep')).toEqual([])
  })

  it('stops when its message VPN is gone', async () => {
    const { world } = await inSync(1)
    world.broker.msgVpnMissing = true
    await expect(world.sweep()).rejects.toMatchObject({ code: 'MSG_VPN_NOT_FOUND' })
    expect(world.broker.writes).toEqual([])
    expect(world.store.ledger(PAIR)).not.toEqual([])
  })

  it('gives up after failures in a row that may pass, and goes on after those that will not', async () => {
    for (const [fate, expected] of [
      ['retry', 'rejected'],
      ['stop', 'fulfilled'],
    ] as const) {
      const { world, pairs } = await inSync(20)
      for (const pair of pairs) world.broker.drop(user(pair.registrationId))
      world.broker.failNext({ error: failure(fate), on: 'create', times: 100 })
      const [result] = await Promise.allSettled([world.sweep()])
      expect(result?.status).toBe(expected)
      const tried = world.store.runs.filter(({ run }) => run.trigger === 'sweep').length
      if (fate === 'retry') expect(tried).toBeLessThan(20)
      else expect(result).toMatchObject({ value: { failed: 20 } })
    }
  })

  it('stops when told, between two registrations', async () => {
    const { world, pairs } = await inSync(4)
    for (const pair of pairs) world.broker.drop(user(pair.registrationId))
    const controller = new AbortController()
    const onProgress = ({ phase }: SweepProgress): void => {
      if (phase === 'reconciling') controller.abort(new Error('told to stop'))
    }
    await expect(world.sweep({ concurrency: 2 }, { signal: controller.signal, onProgress })).rejects.toThrow(
      'told to stop',
    )
    expect(world.store.runs.filter(({ run }) => run.trigger === 'sweep').length).toBeLessThan(4)
    for (const pair of pairs) expect(world.store.row(pair).leaseHolder).toBeNull()
  })
})
