import { describe, expect, it } from 'vitest'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { ReconcileStore } from '../../src/reconcile/store-port.ts'
import { ledgerOf, reconcileStore, worldOf } from '../helpers/memory-world.ts'
import { accessRequest, credential, GUARANTEED, PAIR, registrationOf } from '../helpers/sample.ts'

const KEY = 'key-of-parcel-app'

const guaranteed = (version = 1) =>
  registrationOf(PAIR, {
    accessRequests: [accessRequest('request-1', { classOfServicePolicy: GUARANTEED })],
    credentials: [credential(KEY, version)],
  })

const crash = new KeymeshError({ code: 'CRASH', fate: 'retry', message: 'the process died' })

describe('a run', () => {
  it('ends once: a failed one is recorded once and gives its lease back', async () => {
    const world = worldOf(guaranteed())
    world.broker.failNext({ error: crash, on: 'create' })
    await expect(world.run()).rejects.toBe(crash)
    expect(world.store.runs).toHaveLength(1)
    expect(world.store.runs[0]?.run).toMatchObject({
      state: 'error',
      reachedGeneration: null,
      error: { code: 'CRASH' },
    })
    expect(world.store.row(PAIR).leaseHolder).toBeNull()
  })

  it('tells its own error even when that cannot be recorded', async () => {
    const world = worldOf(guaranteed())
    world.broker.failNext({ error: crash, on: 'get' })
    const finish = () => Promise.reject(new Error('the database is gone'))
    await expect(world.run(PAIR, { store: { ...reconcileStore(world.store), finish } })).rejects.toBe(crash)
  })

  it('is not done when its lease went to another before it could be recorded', async () => {
    const world = worldOf(guaranteed())
    const { store } = world
    const finish: ReconcileStore['finish'] = async (lease, run) => {
      world.nowMs += 31_000
      await store.acquire(PAIR, 'worker-2', 1000)
      return store.finish(lease, run)
    }
    await expect(world.run(PAIR, { store: { ...reconcileStore(store), finish } })).rejects.toMatchObject({
      code: 'SUPERSEDED',
    })
    expect(store.runs).toEqual([])
  })

  it('has its passwords written again when they may have come after those of the next holder', async () => {
    const world = worldOf(guaranteed())
    const { store, broker } = world
    const finish: ReconcileStore['finish'] = async (lease, run) => {
      world.nowMs += 31_000
      await world.run()
      return store.finish(lease, run)
    }
    const late = world.run(PAIR, { store: { ...reconcileStore(store), finish } })
    await expect(late).rejects.toMatchObject({ code: 'SUPERSEDED' })
    expect(store.row(PAIR).reachedGeneration).toBeLessThan(store.row(PAIR).generation)
    expect(ledgerOf(world)[`clientUsername/${KEY}`]).toMatchObject({ passwordDue: true })
    const writes = broker.writes.length
    await world.run()
    expect(broker.writes.slice(writes)).toMatchObject([{ operation: 'update', name: KEY, withPassword: true }])
    expect(ledgerOf(world)[`clientUsername/${KEY}`]).toMatchObject({ passwordDue: false })
  })

  it('stops writing in the middle when its lease goes to another', async () => {
    const world = worldOf(guaranteed())
    const { store } = world
    let writes = 0
    const mayWrite: ReconcileStore['mayWrite'] = async (...input) => {
      writes += 1
      if (writes === 3) world.nowMs += 31_000
      return store.mayWrite(...input)
    }
    const run = world.run(PAIR, { store: { ...reconcileStore(store), mayWrite } })
    await expect(run).rejects.toMatchObject({ code: 'SUPERSEDED', fate: 'retry' })
    expect(world.broker.writes).toHaveLength(2)
    await world.run()
    expect(world.store.row(PAIR).state).toBe('in-sync')
  })

  it('reports what a shared profile of somebody else does not allow, and does the rest, for a person to finish', async () => {
    const world = worldOf(guaranteed())
    const profile: BrokerObject = { kind: 'clientProfile', name: 'keymesh-send-receive', attributes: {}, members: {} }
    world.broker.put(profile)
    await world.run()
    expect(world.store.runs.at(-1)?.run.drift).toMatchObject([{ action: 'reported', drift: { kind: 'unsuitable' } }])
    expect(world.store.row(PAIR)).toMatchObject({
      state: 'conflict',
      reachedGeneration: 0,
      reason:
        'the client profile keymesh-send-receive is not ours and allows less than is needed. Switch on ' +
        'allowGuaranteedMsgReceiveEnabled, allowGuaranteedMsgSendEnabled, allowTransactedSessionsEnabled on the broker.',
    })
    expect(world.broker.writes.map(({ kind }) => kind)).toContain('clientUsername')
    expect(world.broker.peek(profile)?.attributes.allowGuaranteedMsgSendEnabled).toBe(false)
  })
})
