import { describe, expect, it } from 'vitest'
import { type ObjectRef, objectKey } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'
import type { ReconcileStore } from '../../src/reconcile/store-port.ts'
import { secretText } from '../helpers/memory-store.ts'
import { brokerPort, ledgerOf, MemoryWorld, reconcileStore, worldOf } from '../helpers/memory-world.ts'
import { accessRequest, credential, DAY_MS, GUARANTEED, PAIR, pairOf, registrationOf } from '../helpers/sample.ts'

const KEY = 'key-of-parcel-app'
const USER = { kind: 'clientUsername', name: KEY } as const
const ACL = { kind: 'aclProfile', name: 'parcel-app' } as const

const guaranteed = (version = 1) =>
  registrationOf(PAIR, {
    accessRequests: [accessRequest('request-1', { classOfServicePolicy: GUARANTEED })],
    credentials: [credential(KEY, version)],
  })
const nothing = registrationOf(PAIR, { accessRequests: [], credentials: [] })

const crash = new KeymeshError({ code: 'CRASH', fate: 'retry', message: 'the process died' })

describe('invariant 5: own what you touch', () => {
  it('the intent is in the ledger after the object was seen absent and before it is sent', async () => {
    const world = worldOf(guaranteed())
    const { broker, store } = world
    const events: string[] = []
    const note = (text: string): number => events.push(text)
    const watching: BrokerPort = {
      ...brokerPort(broker),
      get: async (ref) => {
        const found = await broker.get(ref)
        note(`${found === null ? 'absent' : 'present'} ${objectKey(ref)}`)
        return found
      },
      create: (object, password) => {
        const known = store.ledger(PAIR).some((entry) => objectKey(entry.object) === objectKey(object))
        note(`${known ? 'intended' : 'unknown'} create ${objectKey(object)}`)
        return broker.create(object, password)
      },
    }
    const intend: ReconcileStore['intend'] = async (lease, intents) => {
      for (const { object } of intents) note(`intend ${objectKey(object)}`)
      return store.intend(lease, intents)
    }
    await world.run(PAIR, { broker: watching, store: { ...reconcileStore(store), intend } })
    const keys = [...new Set(events.map((event) => event.split(' ').at(-1)))]
    expect(keys).toHaveLength(4)
    for (const key of keys) {
      expect(events.filter((event) => event.endsWith(` ${key}`))).toEqual([
        `absent ${key}`,
        `intend ${key}`,
        `intended create ${key}`,
      ])
    }
  })

  const names: Readonly<Record<string, ObjectRef>> = { username: USER, 'ACL profile': ACL }
  it.each(Object.entries(names))('a foreign %s of our name is a conflict and stays as it is', async (_, ref) => {
    const world = worldOf(guaranteed())
    world.broker.put({ ...ref, attributes: { enabled: true } }, 'theirs')
    const before = [world.broker.peek(ref), world.broker.passwords.get(ref.name)]
    const outcome = await world.run(PAIR, { settings: { allowDisruptive: true } })
    if (outcome.status !== 'done') throw new Error(outcome.status)
    expect(outcome.plan.conflicts[0]?.object).toEqual(ref)
    expect([world.broker.peek(ref), world.broker.passwords.get(ref.name)]).toEqual(before)
    expect(ledgerOf(world)).not.toHaveProperty(objectKey(ref))
    expect(world.store.row(PAIR)).toMatchObject({ state: 'conflict', reachedGeneration: 0 })
    world.store.put(PAIR, { registration: nothing })
    world.nowMs += 30 * DAY_MS
    await world.run()
    expect([world.broker.peek(ref), world.broker.passwords.get(ref.name)]).toEqual(before)
  })

  it('a foreign object that comes between our look and our create is a conflict too', async () => {
    const world = worldOf(guaranteed())
    const { broker } = world
    const racing: BrokerPort = {
      ...brokerPort(broker),
      create: (object, password) => {
        if (object.kind === 'clientUsername') broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
        return broker.create(object, password)
      },
    }
    const outcome = await world.run(PAIR, { broker: racing })
    if (outcome.status !== 'done') throw new Error(outcome.status)
    expect(outcome.plan.conflicts.map(({ reason }) => reason)).toContain('foreign-username')
    expect(broker.passwords.get(KEY)).toBe('theirs')
    expect(ledgerOf(world)).not.toHaveProperty(objectKey(USER))
  })

  it('a username that moves here is ours, though the last run of its former registration still made it', async () => {
    const world = worldOf(nothing)
    const { broker, store } = world
    const next = pairOf('next-app')
    store.put(next, { registration: registrationOf(next, { credentials: [credential(KEY)] }) })
    const row = { registrationId: PAIR.registrationId, origin: 'created', applied: null } as const
    store.setLedger(PAIR, {
      ...row,
      object: USER,
      confirmedCredentialVersion: null,
      passwordDue: false,
      withdrawnAtMs: null,
    })
    const racing: BrokerPort = {
      ...brokerPort(broker),
      create: (object, password) => {
        const isFirst = object.kind === 'clientUsername' && broker.peek(USER) === undefined
        if (isFirst) broker.put({ ...USER, attributes: { enabled: true } }, 'of the former')
        return broker.create(object, password)
      },
    }
    expect(await world.run(next, { broker: racing })).toMatchObject({ status: 'done', plan: { conflicts: [] } })
    await world.run(PAIR)
    expect(broker.passwords.get(KEY)).toBe(secretText(next, KEY, 1))
    expect(ledgerOf(world)[objectKey(USER)]).toMatchObject({
      registrationId: 'next-app',
      confirmedCredentialVersion: 1,
    })
  })

  it('a foreign object that comes after a run that failed before it sent ours is a conflict too', async () => {
    const world = worldOf(guaranteed())
    const error = new KeymeshError({ code: 'UNAUTHORIZED_SCOPE', fate: 'stop', message: 'no' })
    world.broker.failNext({ error, on: 'create', ref: ACL })
    await expect(world.run()).rejects.toBe(error)
    expect(ledgerOf(world)).not.toHaveProperty(objectKey(USER))
    world.broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
    await world.run()
    expect(world.broker.passwords.get(KEY)).toBe('theirs')
    expect(world.store.row(PAIR).state).toBe('conflict')
  })

  it('a create without an answer stays ours: the object that it made is not foreign', async () => {
    const world = worldOf(guaranteed())
    world.broker.failNext({ error: crash, on: 'create', ref: USER, applied: true })
    await expect(world.run()).rejects.toBe(crash)
    expect(await world.run()).toMatchObject({ plan: { conflicts: [], drift: [] } })
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })

  it('a shared profile that two runs create at once is created once and belongs to both', async () => {
    const world = new MemoryWorld()
    const pairs = ['app-1', 'app-2', 'app-3'].map((name) => pairOf(name))
    for (const pair of pairs) world.store.put(pair, { registration: registrationOf(pair) })
    const outcomes = await Promise.all(pairs.map((pair) => world.run(pair)))
    expect(outcomes.map(({ status }) => status)).toEqual(['done', 'done', 'done'])
    expect(world.broker.writes.filter(({ kind }) => kind === 'clientProfile')).toHaveLength(1)
    expect(world.store.ledger(PAIR).filter((entry) => entry.registrationId === null)).toMatchObject([
      { object: { name: 'keymesh-direct' }, applied: { attributes: { allowBridgeConnectionsEnabled: false } } },
    ])
    for (const pair of pairs) expect(world.store.row(pair).state).toBe('in-sync')
  })

  const adoptions: Readonly<Record<string, readonly ['never' | 'identical' | 'always', boolean, boolean]>> = {
    'never: a conflict': ['never', true, false],
    'identical and it is: taken over': ['identical', true, true],
    'identical and it is not: a conflict': ['identical', false, false],
    'always: taken over and corrected': ['always', false, true],
  }
  it.each(Object.entries(adoptions))('adoption of an ACL profile, %s', async (_, [adopt, identical, adopted]) => {
    const world = worldOf(registrationOf(PAIR))
    await world.run()
    const acl = world.broker.peek(ACL)
    if (acl === undefined) throw new Error('no ACL profile')
    const other = worldOf(registrationOf(PAIR))
    other.broker.put(identical ? acl : { ...acl, members: {} })
    other.store.setPolicy(PAIR, { adopt })
    await other.run()
    expect(other.store.row(PAIR).state).toBe(adopted ? 'in-sync' : 'conflict')
    if (adopted) expect(other.broker.peek(ACL)).toEqual(acl)
    const entry = other.store.ledger(PAIR).find(({ object }) => object.name === ACL.name)
    expect(entry?.origin).toBe(adopted ? 'adopted' : undefined)
  })

  it('a username is adopted only when a person named it', async () => {
    const world = worldOf(guaranteed())
    world.broker.put({ ...USER, attributes: { enabled: true } }, 'theirs')
    world.store.setPolicy(PAIR, { adopt: 'always' })
    await world.run()
    expect(world.broker.passwords.get(KEY)).toBe('theirs')
    world.store.put(PAIR, { registration: guaranteed(), adoptions: new Set([objectKey(USER)]) })
    await world.run(PAIR, { settings: { allowDisruptive: true } })
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })
})

describe('invariant 13: accounts are walls', () => {
  it('two accounts with the same ids each have their own broker, secret and state', async () => {
    const world = worldOf(guaranteed())
    const foreign = pairOf('parcel-app', 'broker1', 'globex')
    world.store.put(foreign, { registration: registrationOf(foreign) })
    await world.run()
    const other = new MemoryWorld()
    await world.run(foreign, { broker: other.broker })
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
    expect(other.broker.passwords.get(KEY)).toBe(secretText(foreign, KEY, 1))
    world.store.put(foreign, { registration: registrationOf(foreign, { accessRequests: [], credentials: [] }) })
    await world.run(foreign, { broker: other.broker })
    expect(world.broker.peek(USER)?.attributes.enabled).toBe(true)
    expect(await world.writesDuring(() => world.run())).toEqual([])
  })

  it('a username that is there because of another account is a conflict', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    const foreign = pairOf('their-app', 'broker1', 'globex')
    const registration = registrationOf(foreign, { credentials: [credential(KEY)] })
    world.store.put(foreign, { registration })
    world.store.setPolicy(foreign, { adopt: 'always' })
    await world.run(foreign)
    expect(world.store.row(foreign).state).toBe('conflict')
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
  })
})
