import { describe, expect, it } from 'vitest'
import { objectKey } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import { actionRef } from '../../src/reconcile/plan.ts'
import { type ReconcileOutcome, reconcileRegistration } from '../../src/reconcile/reconcile.ts'
import type { RunTrigger } from '../../src/reconcile/store-port.ts'
import { ledgerOf, type MemoryWorld, type RunOptions, worldOf } from '../helpers/memory-world.ts'
import { accessRequest, credential, HOUR_MS, PAIR, registrationOf } from '../helpers/sample.ts'

const LEAKED = { kind: 'clientUsername', name: 'key-leaked' } as const
const KEPT = { kind: 'clientUsername', name: 'key-kept' } as const
const both = registrationOf(PAIR, { credentials: [credential(LEAKED.name), credential(KEPT.name)] })
const revoked = registrationOf(PAIR, { credentials: [credential(KEPT.name)] })
const failure = new KeymeshError({ code: 'BROKER_UNAVAILABLE', fate: 'wait', message: 'not now' })
const NO_TOPICS: RunOptions = { settings: { maxTopics: 0 } }
const NO_DELETES: RunOptions = { settings: { maxDeletes: 0, graceMs: HOUR_MS } }

/** On the broker with two credentials, one of which has just been revoked. */
async function worldWithLeak(after = revoked): Promise<MemoryWorld> {
  const world = worldOf(both)
  await world.run()
  world.store.put(PAIR, { registration: after })
  return world
}

const run = (world: MemoryWorld, trigger: RunTrigger, options: RunOptions = {}): Promise<ReconcileOutcome> =>
  reconcileRegistration(world.dependencies(options), { pair: PAIR, trigger })
const isOn = (world: MemoryWorld, { name }: { readonly name: string }): unknown =>
  world.broker.peek({ kind: 'clientUsername', name })?.attributes.enabled
const disabling = [{ operation: 'update', kind: LEAKED.kind, name: LEAKED.name, attributes: { enabled: false } }]

describe('a revoked credential', () => {
  it.each(['revocation', 'on-demand', 'poll', 'sweep', 'operator'] as const)(
    'is switched off by a run %s although the rest cannot be expressed, once',
    async (trigger) => {
      const world = await worldWithLeak()
      const writes = await world.writesDuring(async () => {
        await expect(run(world, trigger, NO_TOPICS)).rejects.toMatchObject({ code: 'CANNOT_EXPRESS' })
        await expect(run(world, 'poll', NO_TOPICS)).rejects.toMatchObject({ code: 'CANNOT_EXPRESS' })
      })
      expect(writes).toMatchObject(disabling)
      expect([isOn(world, LEAKED), isOn(world, KEPT)]).toEqual([false, true])
      expect(world.store.runs.at(-2)?.run).toMatchObject({ state: 'error', stepsRun: 1 })
      await run(world, 'poll')
      expect(ledgerOf(world)[objectKey(LEAKED)]).toMatchObject({ withdrawnAtMs: world.nowMs })
      expect(isOn(world, LEAKED)).toBe(false)
    },
  )

  it('is switched off although the plan is refused', async () => {
    const world = await worldWithLeak(both)
    const stale = { kind: 'clientUsername', name: 'key-old' } as const
    world.broker.put({ ...stale, attributes: { enabled: false } })
    const [entry] = world.store.ledger(PAIR).filter(({ object }) => object.kind === 'clientUsername')
    if (entry === undefined) throw new Error('nothing is on the broker')
    const disabled = { attributes: { enabled: false }, members: {} }
    world.store.setLedger(PAIR, {
      ...entry,
      object: stale,
      applied: disabled,
      withdrawnAtMs: world.nowMs - 2 * HOUR_MS,
    })
    world.store.put(PAIR, { registration: revoked })
    const writes = await world.writesDuring(() => run(world, 'poll', NO_DELETES))
    expect(world.store.row(PAIR).state).toBe('refused')
    expect(writes).toMatchObject(disabling)
    expect(await world.writesDuring(() => run(world, 'poll', NO_DELETES))).toEqual([])
  })

  it('is switched off although another object cannot be read', async () => {
    const world = await worldWithLeak()
    world.broker.failNext({ error: failure, on: 'get', ref: { kind: 'aclProfile', name: PAIR.registrationId } })
    const writes = await world.writesDuring(() => expect(run(world, 'sweep')).rejects.toBe(failure))
    expect(writes).toMatchObject(disabling)
  })

  it('that cannot be switched off is the failure of the run, so that it is tried again', async () => {
    const world = await worldWithLeak()
    world.broker.failNext({ error: failure, on: 'update', times: 2 })
    await expect(run(world, 'poll', NO_TOPICS)).rejects.toBe(failure)
    await expect(run(world, 'revocation', NO_TOPICS)).rejects.toBe(failure)
    expect(world.store.row(PAIR)).toMatchObject({ state: 'error', reason: 'not now', leaseHolder: null })
  })

  it('is switched off by a revocation while another run holds the pair, and settled after it', async () => {
    const world = await worldWithLeak()
    const lease = await world.store.acquire(PAIR, 'slow-worker', 30_000)
    const writes = await world.writesDuring(async () => {
      expect(await run(world, 'poll')).toEqual({ status: 'busy' })
      expect(await run(world, 'revocation')).toEqual({ status: 'busy' })
    })
    expect(writes).toMatchObject(disabling)
    if (lease === null) throw new Error('the pair is held')
    // The other one had the older generation in hand, and switched the username on again with its last write.
    world.broker.tamper(LEAKED, { enabled: true })
    world.store.row(PAIR).leaseHolder = null
    expect(await run(world, 'revocation')).toMatchObject({ status: 'done' })
    expect(isOn(world, LEAKED)).toBe(false)
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })

  it('is switched off by a revocation before anything else is read or written', async () => {
    const world = await worldWithLeak(
      registrationOf(PAIR, { credentials: [credential(KEPT.name), credential('key-new')] }),
    )
    world.broker.failNext({ error: failure, on: 'get', ref: { kind: 'aclProfile', name: PAIR.registrationId } })
    const writes = await world.writesDuring(() => expect(run(world, 'revocation')).rejects.toBe(failure))
    expect(writes).toMatchObject(disabling)
    const { executed } = (await run(world, 'revocation')) as Extract<ReconcileOutcome, { status: 'done' }>
    expect(executed.map((action) => actionRef(action).name)).toEqual(['key-new'])
  })

  it('that is on again is drift, and switched off again', async () => {
    const world = await worldWithLeak()
    await run(world, 'revocation')
    world.broker.tamper(LEAKED, { enabled: true })
    await run(world, 'sweep')
    expect(isOn(world, LEAKED)).toBe(false)
    expect(world.store.runs.at(-1)?.run.drift).toMatchObject([
      { drift: { object: LEAKED, before: { enabled: true } }, action: 'repaired' },
    ])
  })

  it.each(['observe-only', 'create-only'] as const)('stays on where the policy is %s', async (mode) => {
    const world = await worldWithLeak()
    world.store.setPolicy(PAIR, { mode })
    expect(await world.writesDuring(() => run(world, 'revocation'))).toEqual([])
  })

  it('of a registration that leaves the broker is left to the guard, unless it is revoked by itself', async () => {
    const leaving = registrationOf(PAIR, { accessRequests: [], credentials: [credential(KEPT.name)] })
    const world = await worldWithLeak(leaving)
    world.store.setPolicy(PAIR, { maxWithdrawals: 0 })
    expect(await world.writesDuring(() => run(world, 'poll'))).toEqual([])
    expect(world.store.row(PAIR).state).toBe('refused')
    expect(await world.writesDuring(() => run(world, 'revocation'))).toMatchObject(disabling)
    expect(isOn(world, KEPT)).toBe(true)
  })

  it('whose username is gone, or not ours, is left alone', async () => {
    const world = await worldWithLeak()
    world.broker.drop(LEAKED)
    world.broker.put({ kind: 'clientUsername', name: 'key-of-somebody', attributes: { enabled: true } }, 'theirs')
    expect(await world.writesDuring(() => run(world, 'revocation'))).toEqual([])
    expect(isOn(world, { name: 'key-of-somebody' })).toBe(true)
  })

  it("is nobody else's business: a run with nothing revoked reads what it always did", async () => {
    const world = worldOf(registrationOf(PAIR, { accessRequests: [accessRequest('one')] }))
    await world.run()
    const before = world.broker.calls.get('get')
    await run(world, 'on-demand')
    const reads = (world.broker.calls.get('get') ?? 0) - (before ?? 0)
    await run(world, 'revocation')
    expect((world.broker.calls.get('get') ?? 0) - (before ?? 0) - reads).toBe(reads)
  })
})
