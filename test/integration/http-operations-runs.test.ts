import { describe, expect, it } from 'vitest'
import { codeOf } from '../../src/domain/errors.ts'
import { createJobServices } from '../../src/services.ts'
import { requestRuns } from '../../src/store/pairs.ts'
import { pause, resume, setBrokerPaused } from '../../src/store/pause.ts'
import { withMesh } from '../helpers/mesh.ts'
import { client, keyOf, objectsOf, ordersPortal } from './reconcile-fixtures.ts'

const meshOf = (...ids: readonly string[]) =>
  withMesh({
    portal: (brokers) =>
      ordersPortal(
        brokers,
        ids.map((id) => client(id)),
      ),
  })
const failing = (run: Promise<unknown>): Promise<string> => run.then(() => 'done', codeOf)

describe('a pause', () => {
  it('of a registration lets nothing be written for it, by runs, sweeps and jobs; the others go on', async () => {
    await using mesh = await meshOf('app', 'other')
    const { db, engine, accountId } = mesh.context
    await pause(db, { accountId, registrationId: 'app' }, 'admin')
    expect(await failing(engine.reconcilePair(mesh.pair('app'), { trigger: 'operator' }))).toBe('PAUSED')
    const services = createJobServices(mesh.context)
    const { signal } = new AbortController()
    expect(await services.reconcilePair(mesh.pair('app'), 'poll', signal)).toBe('done')
    expect(mesh.writes()).toBe(0)
    expect(await mesh.sweep()).toMatchObject({ changed: 1, busy: 1, failed: 0 })
    expect(mesh.broker().state.clientUsernames.names()).toContain(keyOf('other'))
    expect(mesh.broker().state.clientUsernames.names()).not.toContain(keyOf('app'))

    await resume(db, { accountId, registrationId: 'app' })
    expect(await services.laggingPairs(10)).toEqual([mesh.pair('app')])
    expect(await services.reconcilePair(mesh.pair('app'), 'poll', signal)).toBe('done')
    expect(mesh.broker().state.clientUsernames.names()).toContain(keyOf('app'))
  })

  it.each([
    ['a broker', true],
    ['everything', false],
  ])('of %s stops its sweeps and runs, and its queue', async (_what, ofBroker) => {
    await using mesh = await meshOf('app')
    const { db, engine, accountId } = mesh.context
    const set = (paused: boolean) =>
      ofBroker
        ? setBrokerPaused(db, mesh.key(), paused)
        : paused
          ? pause(db, { accountId, registrationId: null }, 'admin')
          : resume(db, { accountId, registrationId: null })
    await set(true)
    expect(await failing(mesh.sweep())).toBe('PAUSED')
    expect(await failing(engine.reconcilePair(mesh.pair('app'), { trigger: 'poll' }))).toBe('PAUSED')
    expect(mesh.writes()).toBe(0)
    const services = createJobServices(mesh.context)
    expect(await services.usableBrokers()).toMatchObject([{ paused: true }])
    await services.sweepBroker(mesh.key(), 'sweep', new AbortController().signal, () => undefined)
    await set(false)
    expect(await services.usableBrokers()).toMatchObject([{ paused: false }])
    expect(await mesh.sweep()).toMatchObject({ changed: 1 })
  })
})

describe('an operator who accepts once that live clients drop', () => {
  it('lets the next run do what waits, and no later one', async () => {
    await using mesh = await meshOf('app')
    await mesh.sweep()
    const { db, accountId } = mesh.context
    const { queue } = objectsOf(mesh.broker(), 'app')
    const spoil = (): void => mesh.broker().state.queues.change(queue, { accessType: 'non-exclusive' })
    const accessType = () => mesh.broker().state.queues.get(queue)?.accessType
    spoil()
    expect(await mesh.sweep()).toMatchObject({ waiting: 1 })
    const request = { accountId, heldOnly: true, disruptiveUntilMs: Date.now() + 60_000 }
    expect(await requestRuns(db, request)).toEqual([mesh.pair('app')])
    expect(await mesh.sweep()).toMatchObject({ changed: 1, waiting: 0 })
    expect(accessType()).toBe('exclusive')
    spoil()
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 1 })
  })

  it('gives a permission that ends', async () => {
    await using mesh = await meshOf('app')
    await mesh.sweep()
    const { db, accountId } = mesh.context
    mesh.broker().state.queues.change(objectsOf(mesh.broker(), 'app').queue, { accessType: 'non-exclusive' })
    await requestRuns(db, { accountId, registrationId: 'app', disruptiveUntilMs: Date.now() - 1 })
    expect(await mesh.sweep()).toMatchObject({ changed: 0, waiting: 1 })
  })
})
