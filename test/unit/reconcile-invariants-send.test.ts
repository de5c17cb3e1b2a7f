import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { ReconcileStore } from '../../src/reconcile/store-port.ts'
import type { FakeOperation } from '../helpers/fake-broker.ts'
import { secretText } from '../helpers/memory-store.ts'
import { ledgerOf, type MemoryWorld, reconcileStore, snapshot, worldOf } from '../helpers/memory-world.ts'
import { accessRequest, credential, DAY_MS, GUARANTEED, PAIR, pairOf, registrationOf } from '../helpers/sample.ts'

const KEY = 'key-of-parcel-app'
const USER = { kind: 'clientUsername', name: KEY } as const
const ACL = { kind: 'aclProfile', name: 'parcel-app' } as const

const guaranteed = (version = 1) =>
  registrationOf(PAIR, {
    accessRequests: [accessRequest('request-1', { classOfServicePolicy: GUARANTEED })],
    credentials: [credential(KEY, version)],
  })

const crash = new KeymeshError({ code: 'CRASH', fate: 'retry', message: 'the process died' })

/** The process dies as this call is made, or as it returns: nothing after it happens in the process. */
function dying(world: MemoryWorld, call: keyof ReconcileStore, when: 'before' | 'after'): ReconcileStore {
  let dead = false
  const { store } = world
  const guarded =
    <Input extends unknown[], Output>(name: keyof ReconcileStore, work: (...input: Input) => Promise<Output>) =>
    async (...input: Input): Promise<Output> => {
      if (dead || (name === call && when === 'before')) {
        dead = true
        throw crash
      }
      const output = await work(...input)
      if (name !== call) return output
      dead = true
      throw crash
    }
  return {
    acquire: guarded('acquire', store.acquire.bind(store)),
    facts: guarded('facts', store.facts.bind(store)),
    mayWrite: guarded('mayWrite', store.mayWrite.bind(store)),
    intend: guarded('intend', store.intend.bind(store)),
    logins: guarded('logins', store.logins.bind(store)),
    secret: guarded('secret', store.secret.bind(store)),
    finish: guarded('finish', store.finish.bind(store)),
    distrust: guarded('distrust', store.distrust.bind(store)),
  }
}

describe('invariant 1: store before send', () => {
  const calls: readonly (keyof ReconcileStore)[] = ['facts', 'intend', 'secret', 'mayWrite', 'finish']
  const points = calls.flatMap((call) => (['before', 'after'] as const).map((when) => ({ call, when })))

  it.each(points)('a crash $when $call rolls forward to the same secret', async ({ call, when }) => {
    const expected = worldOf(guaranteed())
    await expected.run()

    const world = worldOf(guaranteed())
    await expect(world.run(PAIR, { store: dying(world, call, when) })).rejects.toThrow('the process died')
    // Nobody gives the lease of a dead process back: it runs out. Only what had finished gave it back itself.
    const finished = call === 'finish' && when === 'after'
    expect((await world.run(PAIR, { holder: 'worker-2' })).status).toBe(finished ? 'done' : 'busy')
    world.nowMs += 31_000
    expect(await world.run(PAIR, { holder: 'worker-2' })).toMatchObject({
      status: 'done',
      plan: { drift: [], conflicts: [] },
    })
    expect(snapshot(world.broker)).toEqual(snapshot(expected.broker))
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
    expect(ledgerOf(world)).toEqual(ledgerOf(expected))
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })

  const writes: readonly FakeOperation[] = ['create', 'addMember', 'update']
  const losses = writes.flatMap((on) =>
    [0, 1, 2, 3].flatMap((after) => [true, false].map((applied) => ({ on, after, applied }))),
  )
  it.each(losses)('so does $on number $after without an answer (taken: $applied)', async ({ on, after, applied }) => {
    const expected = worldOf(guaranteed(2))
    await expected.run()

    const world = worldOf(guaranteed(1))
    if (on === 'update') await world.run()
    world.store.put(PAIR, { registration: guaranteed(2) })
    world.broker.failNext({ error: crash, on, after, applied })
    await world.run().catch(() => undefined)
    await world.run()
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 2))
    expect(snapshot(world.broker)).toEqual(snapshot(expected.broker))
    expect(await world.writesDuring(() => world.run())).toEqual([])
  })

  it('a secret that was replaced meanwhile is not sent', async () => {
    const world = worldOf(guaranteed())
    const { store } = world
    const secret: ReconcileStore['secret'] = async (pair, key) => {
      store.put(PAIR, { registration: guaranteed(2) })
      return store.secret(pair, key)
    }
    await expect(world.run(PAIR, { store: { ...reconcileStore(store), secret } })).rejects.toMatchObject({
      code: 'SUPERSEDED',
    })
    expect(world.broker.passwords.has(KEY)).toBe(false)
    await world.run()
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 2))
  })

  it('a secret of another version than the one planned for is not sent, whatever the generation', async () => {
    const world = worldOf(guaranteed())
    world.store.putSecret(PAIR, KEY, { version: 2, secret: new Secret('another') })
    await expect(world.run()).rejects.toMatchObject({ code: 'SUPERSEDED' })
    expect(world.broker.passwords.has(KEY)).toBe(false)
  })
})

describe('invariant 3: level-triggered', () => {
  it('a change during a run is not lost, whatever the run thinks of it', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    expect(world.store.lagging()).toEqual([])
    world.broker.drop(ACL)
    const { store } = world
    const intend: ReconcileStore['intend'] = async (lease, intents) => {
      const moved = await store.intend(lease, intents)
      store.put(PAIR, { registration: guaranteed(2) })
      return moved
    }
    const changing = { ...reconcileStore(store), intend }
    await expect(world.run(PAIR, { store: changing })).rejects.toMatchObject({ code: 'SUPERSEDED' })
    expect(world.store.lagging()).toEqual([PAIR])
  })

  it('a change during a run that needs a person makes the pair due at once', async () => {
    const world = worldOf(
      registrationOf(PAIR, { accessRequests: [accessRequest('request-1', { filters: { id: ['a/b'] } })] }),
    )
    const { store } = world
    const facts: ReconcileStore['facts'] = async (pair) => {
      const found = await store.facts(pair)
      store.put(PAIR, { registration: guaranteed() })
      return found
    }
    const run = world.run(PAIR, { store: { ...reconcileStore(store), facts } })
    await expect(run).rejects.toMatchObject({ code: 'CANNOT_EXPRESS', fate: 'stop' })
    expect(world.store.lagging()).toEqual([PAIR])
  })

  it('what failed for good is not tried again until something changes', async () => {
    const world = worldOf(guaranteed())
    const error = new KeymeshError({ code: 'UNAUTHORIZED_SCOPE', fate: 'stop', message: 'no' })
    world.broker.failNext({ error, on: 'create' })
    await expect(world.run()).rejects.toBe(error)
    world.nowMs += 100 * DAY_MS
    expect(world.store.lagging()).toEqual([])
    world.store.put(PAIR, { registration: guaranteed() })
    expect(world.store.lagging()).toEqual([PAIR])
  })

  it('a pair that the store does not know is gone, not busy', async () => {
    expect(await worldOf(guaranteed()).run(pairOf('nobody'))).toEqual({ status: 'gone' })
  })
})

describe('invariant 4: diff against the broker', () => {
  it('every change on the broker is found though the store knows of none', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    const whole = snapshot(world.broker)
    for (const tamper of [
      () => world.broker.drop(USER),
      () => world.broker.tamper(ACL, { publishTopicDefaultAction: 'allow' }),
      () => world.broker.put({ ...ACL, attributes: { publishTopicDefaultAction: 'allow' }, members: {} }),
    ]) {
      tamper()
      expect(snapshot(world.broker)).not.toEqual(whole)
      const outcome = await world.run()
      if (outcome.status !== 'done') throw new Error(outcome.status)
      expect(outcome.plan.drift).toHaveLength(1)
      expect(snapshot(world.broker)).toEqual(whole)
    }
  })

  it('what somebody already repaired is not written again', async () => {
    const world = worldOf(guaranteed())
    await world.run()
    const entry = world.store.ledger(PAIR).find(({ object }) => object.name === ACL.name)
    if (entry === undefined) throw new Error('no entry')
    world.store.setLedger(PAIR, { ...entry, applied: { attributes: {}, members: {} } })
    expect(await world.writesDuring(() => world.run())).toEqual([])
  })
})

describe('invariant 9: a secret has an opaque type', () => {
  it('the broker gets the text, and nothing else does', async () => {
    const world = worldOf(guaranteed())
    const outcome = await world.run()
    world.broker.failNext({ error: crash, on: 'update' })
    world.store.put(PAIR, { registration: guaranteed(2) })
    const error: unknown = await world.run().catch((thrown: unknown) => thrown)
    expect(world.broker.passwords.get(KEY)).toBe(secretText(PAIR, KEY, 1))
    const kept = JSON.stringify([outcome, error, world.store.runs, world.store.ledger(PAIR), world.broker.writes])
    expect(kept).not.toContain('s3cret')
    expect(kept).toContain('"credentialVersion":1')
  })
})
