import { describe, expect, it } from 'vitest'
import { objectKey } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'
import type { FakeOperation } from '../helpers/fake-broker.ts'
import { secretText } from '../helpers/memory-store.ts'
import { brokerPort, ledgerOf, MemoryWorld, snapshot, worldOf } from '../helpers/memory-world.ts'
import {
  accessRequest,
  credential,
  DAY_MS,
  GUARANTEED,
  HOUR_MS,
  PAIR,
  pairOf,
  registrationOf,
} from '../helpers/sample.ts'

const KEY = 'key-of-parcel-app'
const USER = { kind: 'clientUsername', name: KEY } as const

const guaranteed = (version = 1) =>
  registrationOf(PAIR, {
    accessRequests: [accessRequest('request-1', { classOfServicePolicy: GUARANTEED })],
    credentials: [credential(KEY, version)],
  })
const nothing = registrationOf(PAIR, { accessRequests: [], credentials: [] })

describe('invariant 6: absent means the broker said so', () => {
  const answers: Readonly<Record<string, KeymeshError>> = {
    'a timeout': new KeymeshError({ code: 'BROKER_TIMEOUT', fate: 'retry', message: 'no answer' }),
    'a 401': new KeymeshError({ code: 'SEMP_LOGIN_REFUSED', fate: 'stop', message: 'refused' }),
    'a 503': new KeymeshError({ code: 'BROKER_UNAVAILABLE', fate: 'wait', message: 'not ready' }),
    'an odd body': new KeymeshError({ code: 'UNEXPECTED_ANSWER', fate: 'retry', message: 'odd' }),
    'a surprise': new KeymeshError({ code: 'UNEXPECTED', fate: 'retry', message: 'what' }),
  }
  const reads: readonly FakeOperation[] = ['facts', 'get', 'members']
  const cases = Object.entries(answers).flatMap(([words, error]) => reads.map((on) => [words, on, error] as const))
  it.each(cases)('%s to %s is an error: nothing is created, deleted or forgotten', async (_, on, error) => {
    for (const registration of [guaranteed(2), nothing]) {
      const world = worldOf(guaranteed())
      await world.run()
      world.store.put(PAIR, { registration })
      world.nowMs += 10 * DAY_MS
      const [broker, ledger] = [snapshot(world.broker), ledgerOf(world)]
      world.broker.failNext({ error, on })
      await expect(world.run()).rejects.toBe(error)
      expect(snapshot(world.broker)).toEqual(broker)
      expect(ledgerOf(world)).toEqual(ledger)
      expect(world.store.row(PAIR)).toMatchObject({ state: 'error', leaseHolder: null })
      expect(world.store.runs.at(-1)?.run).toMatchObject({ error: { code: error.code, fate: error.fate } })
    }
  })

  it.each([
    ['wanted', guaranteed(2)],
    ['withdrawn', nothing],
  ])('a missing message VPN is a named error and nothing %s is forgotten or sent', async (_, registration) => {
    const world = worldOf(guaranteed())
    await world.run()
    world.store.put(PAIR, { registration })
    const ledger = ledgerOf(world)
    world.broker.msgVpnMissing = true
    expect(
      await world.writesDuring(() => expect(world.run()).rejects.toMatchObject({ code: 'MSG_VPN_NOT_FOUND' })),
    ).toEqual([])
    expect(ledgerOf(world)).toEqual(ledger)
  })

  it('a message VPN that goes after it was read is noticed before anything is believed absent', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    world.store.put(PAIR, { registration: nothing })
    const ledger = ledgerOf(world)
    const { broker } = world
    const vanishing: BrokerPort = {
      ...brokerPort(broker),
      // SEMP answers "not found" for what is in a message VPN that is not there.
      get: async () => {
        broker.msgVpnMissing = true
        return null
      },
    }
    await expect(world.run(PAIR, { broker: vanishing })).rejects.toMatchObject({ code: 'MSG_VPN_NOT_FOUND' })
    expect(ledgerOf(world)).toEqual(ledger)
    expect(world.store.row(PAIR).state).toBe('error')
  })

  it('a queue whose messages cannot be counted is not deleted', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    world.store.put(PAIR, { registration: nothing })
    await world.run()
    world.nowMs += 2 * DAY_MS
    const queue = world.broker.keys().find((key) => key.startsWith('queue/')) ?? ''
    world.broker.messages.set(queue.slice('queue/'.length), null)
    await world.run()
    expect(world.broker.keys()).toContain(queue)
    expect(world.broker.keys()).not.toContain(objectKey(USER))
    expect(world.store.row(PAIR).dueAtMs).toBe(world.nowMs + DAY_MS)
  })
})

describe('invariant 7: no needless disruption', () => {
  const moved = () => {
    const receiving = accessRequest('request-1', { classOfServicePolicy: GUARANTEED })
    return registrationOf(PAIR, { accessRequests: [receiving] })
  }

  it.each(['2.30', '2.49'])(
    'nothing is switched off by itself on SEMP %s: what drops clients waits for a person',
    async (sempVersion) => {
      const world = worldOf(registrationOf(PAIR), { sempVersion })
      await world.run()
      world.store.put(PAIR, { registration: moved() })
      const writes = await world.writesDuring(() => world.run())
      expect(writes.filter(({ kind }) => kind === 'clientUsername')).toEqual([])
      expect(world.store.row(PAIR)).toMatchObject({ state: 'held', dueAtMs: world.nowMs + HOUR_MS })
      expect(world.store.row(PAIR).reachedGeneration).toBeLessThan(world.store.row(PAIR).generation)

      const byHand = await world.writesDuring(() => world.run(PAIR, { settings: { allowDisruptive: true } }))
      const move = { clientProfileName: 'keymesh-send-receive' }
      const expected = sempVersion === '2.30' ? [{ enabled: false }, move, { enabled: true }] : [move]
      expect(byHand.map(({ attributes }) => attributes)).toEqual(expected)
      expect(world.store.row(PAIR).state).toBe('in-sync')
    },
  )

  it('waits for the window of the broker and looks again when it opens, however short it is', async () => {
    const world = worldOf(registrationOf(PAIR))
    await world.run()
    // The clock stands at 10:00.
    world.store.setPolicy(PAIR, { disruptive: 'window', window: { fromMinute: 10 * 60 + 25, toMinute: 10 * 60 + 30 } })
    world.store.put(PAIR, { registration: moved() })
    await world.run()
    expect(world.store.row(PAIR)).toMatchObject({ state: 'held', dueAtMs: world.nowMs + 25 * 60_000 })
    world.nowMs += 25 * 60_000
    expect(world.store.lagging()).toEqual([PAIR])
    await world.run()
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })

  it('a username that is withdrawn is switched off at once all the same', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    world.store.put(PAIR, { registration: nothing })
    await world.run()
    expect(world.broker.peek(USER)?.attributes.enabled).toBe(false)
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
    expect(world.store.row(PAIR)).toMatchObject({ state: 'in-sync', dueAtMs: world.nowMs + DAY_MS })
  })

  it('one that comes back within its grace period works again without a person, on another profile too', async () => {
    const world = worldOf(registrationOf(PAIR))
    await world.run()
    world.store.put(PAIR, { registration: nothing })
    await world.run()
    world.nowMs += HOUR_MS
    world.store.put(PAIR, { registration: moved() })
    await world.run()
    expect(world.broker.peek(USER)?.attributes).toMatchObject({
      enabled: true,
      clientProfileName: 'keymesh-send-receive',
    })
    expect(world.store.row(PAIR)).toMatchObject({ state: 'in-sync', dueAtMs: null })
  })

  it('an addition is made before a removal', async () => {
    const world = worldOf(registrationOf(PAIR))
    await world.run()
    const request = accessRequest('request-1', { filters: { id: ['a', 'b'] } })
    world.store.put(PAIR, { registration: registrationOf(PAIR, { accessRequests: [request] }) })
    const operations = (await world.writesDuring(() => world.run())).map(({ operation }) => operation)
    expect(operations).toEqual([...Array(4).fill('addMember'), ...Array(2).fill('removeMember')])
  })
})

describe('invariant 10: a suspicious plan is refused', () => {
  it('emptying a broker of many registrations waits for a person, who may confirm it', async () => {
    const world = new MemoryWorld()
    const pairs = Array.from({ length: 12 }, (_, index) => pairOf(`app-${index}`))
    for (const pair of pairs) {
      world.store.put(pair, { registration: registrationOf(pair) })
      await world.run(pair)
    }
    for (const pair of pairs) world.store.put(pair, { registration: registrationOf(pair, { accessRequests: [] }) })
    expect(await world.writesDuring(() => world.sweep())).toEqual([])
    for (const pair of pairs) expect(world.store.row(pair).state).toBe('refused')
    for (const pair of pairs) world.store.row(pair).withdrawalConfirmed = true
    expect(await world.sweep()).toMatchObject({ changed: 12 })
    for (const pair of pairs) expect(world.store.row(pair).state).toBe('in-sync')
  })

  it('a registration that never had an object there is not held up by it', async () => {
    const world = new MemoryWorld()
    const pairs = Array.from({ length: 12 }, (_, index) => pairOf(`app-${index}`))
    for (const pair of pairs) {
      world.store.put(pair, { registration: registrationOf(pair) })
      await world.run(pair)
    }
    for (const pair of pairs) world.store.put(pair, { registration: registrationOf(pair, { accessRequests: [] }) })
    const newcomer = pairOf('newcomer')
    world.store.put(newcomer, { registration: registrationOf(newcomer, { accessRequests: [] }) })
    await world.run(newcomer)
    expect(world.store.row(newcomer).state).toBe('in-sync')
  })
})
